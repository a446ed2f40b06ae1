"""Metrics as a table, ``metrics.csv`` in the run's folder: a row for each line, a column for each key."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.recipe.logger import LOGGERS, Logger


class CsvConfig(Named):
    name: Literal["csv"] = "csv"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if sum(logger.name == self.name for logger in run.loggers) > 1:
            return "loggers names csv twice, and both would write metrics.csv: leave one out"
        return None


@LOGGERS.register(CsvConfig)
class CsvTable(Logger):
    """Columns are in the order in which keys first appear; a key that appears later adds one at the right."""

    def __init__(self, config: CsvConfig):
        self._file = Path()
        self._columns: list[str] = []

    def begin(self, folder: Path, config: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
        self._file = folder / "metrics.csv"
        self._columns = list(dict.fromkeys(key for line in lines for key in line))
        self._rewrite(lines)

    def line(self, line: Mapping[str, Any]) -> None:
        if new := [key for key in line if key not in self._columns]:
            with self._file.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self._columns += new
            self._rewrite([*rows, line])
            return
        with self._file.open("a", newline="", encoding="utf-8") as file:
            self._writer(file).writerow(line)

    def _rewrite(self, rows: Iterable[Mapping[str, Any]]) -> None:
        text = io.StringIO()
        writer = self._writer(text)
        if self._columns:
            writer.writeheader()
        writer.writerows(rows)
        replace_text(self._file, text.getvalue())

    def _writer(self, file: Any) -> "csv.DictWriter[str]":
        return csv.DictWriter(file, self._columns, restval="", lineterminator="\n")
