"""Rows of SWE-bench and of the sets of its form, from a file of the user's: JSON, JSON lines or Parquet.

Known forms: SWE-bench (Jimenez et al. 2024, arXiv 2310.06770; Lite and Verified, with or without the columns of harness
5), SWE-Gym (2412.21139), SWE-smith (2504.21798), R2E-Gym (2504.07164) and SWE-rebench (2505.20411).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyturn.envs.benchmarks.swebench.log_parsers import parser_of
from manyturn.envs.contract.registration.env_registry import NeedsSetup

LARGEST_FILE, LARGEST_ROW = 4_000_000_000, 50_000_000
SWEBENCH, SWEGYM, SWESMITH, R2EGYM, REBENCH = "swe-bench", "swe-gym", "swe-smith", "r2e-gym", "swe-rebench"
_SOURCE = "rows of SWE-bench, SWE-Gym, SWE-smith, R2E-Gym or SWE-rebench"
_INSTANCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}")
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")


class DataError(NeedsSetup):
    """The file is missing, or a row is not what it should be; the text names the fix."""


@dataclass(frozen=True)
class Row:
    """One instance.

    Args:
        family: the set that it is of.
        instance: its id.
        repository: ``owner/name``, as the row has it.
        commit: that the agent starts from; "" for the state of the image (SWE-smith, R2E-Gym).
        statement: what the agent is told.
        hints: remarks that the set gives besides, which are not told by default.
        image: that the row names, or "".
        fault: patch that brings the fault into the image's state (SWE-smith), or "".
        gold: patch that fixes the fault, or "" if the row has none.
        test_patch: patch of the tests, or "".
        fail_to_pass: tests that the gold patch fixes.
        pass_to_pass: tests that pass before and after it.
        script: that runs the tests between markers, or "".
        command: that runs the tests, or "".
        log_parser: name of the parser of the log, or "".
        expected: test -> status after the gold patch, in place of the lists of tests (R2E-Gym).
    """

    family: str
    instance: str
    repository: str
    commit: str
    statement: str
    hints: str = ""
    image: str = ""
    fault: str = ""
    gold: str = ""
    test_patch: str = ""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    script: str = ""
    command: str = ""
    log_parser: str = ""
    expected: Mapping[str, str] | None = None


def load(path: str | Path) -> list[Row]:
    """The rows of a file, in its order. Raises DataError."""
    file = Path(path).expanduser()
    readers = {".json": _json, ".jsonl": _json_lines, ".parquet": _parquet}
    reader = readers.get(file.suffix)
    if reader is None or not file.is_file():
        raise DataError(f"{file} is no file of {_SOURCE}: give a .json, .jsonl or .parquet that exists")
    if file.stat().st_size > LARGEST_FILE:
        raise DataError(f"{file} has {file.stat().st_size:,} bytes: give one of at most {LARGEST_FILE:,}")
    rows: dict[str, Row] = {}
    for number, record in enumerate(reader(file), 1):
        row = row_of(record, f"{file}, row {number}")
        if row.instance in rows:
            raise DataError(f"{file}, row {number}: {row.instance} is there twice: leave one of them out")
        rows[row.instance] = row
    if not rows:
        raise DataError(f"{file} has no rows: give {_SOURCE}")
    return list(rows.values())


def _json(file: Path) -> Iterator[Any]:
    content = _parsed(file.read_bytes(), f"{file}")
    yield from content if isinstance(content, list) else [content]


def _json_lines(file: Path) -> Iterator[Any]:
    with file.open("rb") as lines:
        number = 0
        while line := lines.readline(LARGEST_ROW + 1):
            number += 1
            if len(line) > LARGEST_ROW:
                raise DataError(f"{file}, line {number} has more than {LARGEST_ROW:,} bytes: leave it out")
            if line.strip():
                yield _parsed(line, f"{file}, line {number}")


def _parquet(file: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            for batch in table.iter_batches(batch_size=64):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{file} is no Parquet file ({str(error).splitlines()[0]:.200}): fetch it again") from None


def _parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{where} is not JSON: fetch the file again") from None


class _Fields:
    """A row's columns, each checked as it is asked for."""

    def __init__(self, row: Any, where: str):
        if not isinstance(row, dict):
            raise DataError(f"{where} is a {type(row).__name__}, not an object: give {_SOURCE}")
        self.row, self.where = row, where

    def fault(self, name: str, expected: str) -> DataError:
        value = f"{self.row[name]!r:.60}" if name in self.row else "missing"
        return DataError(f"{self.where}: {name} is {value}, not {expected}: give {_SOURCE}")

    def text(self, name: str, pattern: re.Pattern[str] | None = None) -> str:
        """A column that must hold text."""
        value = self.row.get(name)
        if not isinstance(value, str) or "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
            raise self.fault(name, "text")
        if pattern is not None and not pattern.fullmatch(value):
            raise self.fault(name, "of the form that such columns have")
        return value

    def perhaps(self, name: str) -> str:
        """A column that may be missing or empty."""
        return "" if self.row.get(name) in (None, "") else self.text(name)

    def table(self, name: str) -> Mapping[str, Any]:
        """A column that holds an object, or the JSON text of one; empty if it is missing."""
        value = self._plain(name)
        if value in (None, ""):
            return {}
        if not isinstance(value, dict):
            raise self.fault(name, "an object")
        return {key: part for key, part in value.items() if part is not None}

    def tests(self, name: str) -> tuple[str, ...]:
        """A column that holds a list of texts, or the JSON text of one."""
        value = self._plain(name)
        if not isinstance(value, list) or not all(isinstance(test, str) and test for test in value):
            raise self.fault(name, "a list of tests")
        return tuple(value)

    def _plain(self, name: str) -> Any:
        value = self.row.get(name)
        return _parsed(value.encode(errors="replace"), f"{self.where}: {name}") if isinstance(value, str) else value


def row_of(record: Any, where: str) -> Row:
    """One row, whichever set it is of. Raises DataError.

    Args:
        record: columns by name.
        where: it is from, for errors.
    """
    fields = _Fields(record, where)
    if "expected_output_json" in fields.row:
        return _r2e(fields)
    if "swesmith." in str(fields.row.get("image_name")):
        family = SWESMITH
    elif "install_config" in fields.row or "swerebench/" in str(fields.row.get("docker_image")):
        family = REBENCH
    else:
        official = any(name in fields.row for name in ("environment_setup_commit", "eval_script"))
        family = SWEBENCH if official else SWEGYM
    smith, install = family == SWESMITH, fields.table("install_config")
    patch = fields.perhaps("patch")
    row = Row(
        family=family,
        instance=fields.text("instance_id", _INSTANCE),
        repository=fields.text("repo"),
        commit="" if smith else fields.text("base_commit", _COMMIT),
        statement=fields.text("problem_statement"),
        hints=fields.perhaps("hints_text"),
        image=next((fields.text(n) for n in ("image", "docker_image", "image_name") if fields.row.get(n)), ""),
        fault=patch if smith else "",
        gold="" if smith else patch,
        test_patch=fields.perhaps("test_patch"),
        fail_to_pass=fields.tests("FAIL_TO_PASS"),
        pass_to_pass=fields.tests("PASS_TO_PASS"),
        script=fields.perhaps("eval_script"),
        command=_Fields(install, where).perhaps("test_cmd") or fields.perhaps("test_cmd"),
        log_parser=_Fields(install, where).perhaps("log_parser") or fields.perhaps("log_parser"),
    )
    _check(row, fields)
    return row


def _check(row: Row, fields: _Fields) -> None:
    """Raise DataError for what no episode could be made of."""
    if not row.fail_to_pass:
        raise fields.fault("FAIL_TO_PASS", "a list with a test in it")
    if row.family == SWESMITH and not row.fault:
        raise fields.fault("patch", "the patch that brings the fault")
    if fields.row.get("eval_type") == "fail_only":
        raise fields.fault("eval_type", "pass_and_fail: only Python repositories can be graded")
    try:
        parser_of(row.repository, row.log_parser)
    except KeyError:
        raise fields.fault("log_parser", "a parser of SWE-bench's Python repositories") from None


def _r2e(fields: _Fields) -> Row:
    """A row of R2E-Gym, which has neither ids nor lists of tests."""
    expected = fields.table("expected_output_json")
    if not expected or not all(isinstance(status, str) for status in expected.values()):
        raise fields.fault("expected_output_json", "an object of tests and statuses")
    statement = fields.text("problem_statement")
    issue = re.search(r"\[ISSUE\](.*?)\[/ISSUE\]", statement, re.DOTALL)
    repository, commit = fields.text("repo_name", _INSTANCE), fields.text("commit_hash", _COMMIT)
    return Row(
        family=R2EGYM,
        instance=f"{repository}__{commit}",
        repository=repository,
        commit="",
        statement=(issue[1] if issue else statement).strip(),
        image=fields.text("docker_image"),
        expected=expected,
    )
