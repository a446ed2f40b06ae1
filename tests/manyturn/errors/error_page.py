"""docs/errors.md: what commands and configurations are refused with, from the cases that the tests try.

python tests/manyturn/errors/error_page.py > docs/errors.md
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "errors.md"
AGAIN = "docs/errors.md says something else: make it again, python tests/manyturn/errors/error_page.py > docs/errors.md"
ROWS = re.findall(r"^\| `.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

HEAD = """# Errors, and what to do

This page is generated: `python tests/manyturn/errors/error_page.py > docs/errors.md`. Tests make each of these errors,
and compare it with its line here. `...` stands for the possible names, or for words of another package.
[`manyturn check`](checking.md) finds wrong return values of an environment.
[Exit codes](faults.md#exit-codes) have their own list.
"""
ON_THE_LINE = """## On the command line

The common mistakes, each once. The command ends with exit code 2, and changes nothing.

| command | message |
| --- | --- |"""
OF_OPTIONS = """## Options that do not fit each other

All reasons to refuse a configuration, with the advantage `gigpo` and the other defaults unless the first column says
otherwise.

| options | message | fix |
| --- | --- | --- |"""
OF_ENVIRONMENTS = """## Options that the environment does not fit

These are checked before the warm-up. `doors.py:Doors` and `appointments.py:Calendar` stand for environments of yours.

| options | message | fix |
| --- | --- | --- |"""


LISTED = r"(?:[\w.-]+, ){5,}[\w.-]+"
KINDS = r"(?:[\w.-]+, ){2,}[\w.-]+"  # which tests may add to
LONG = re.compile(rf"(?<=There are ){KINDS}|(?<=\(){LISTED}(?=\))|(?<=Available commands: ).*|(?<=; )We couldn't .*")


def words_of(line: str) -> list[str]:
    return line.replace("MAZE", "manyturn/Maze-v0").replace("'", '"').split()


def input_row(line: str, said: str, folder: Path) -> str:
    words = " ".join(word if '"' not in word else f"'{word}'" for word in words_of(line))
    return row(f"manyturn {words}", said.removeprefix("manyturn: ").replace(f"{folder.resolve()}/", ""))


def refusal_row(entries: Mapping[str, Any], said: str, works: Mapping[str, Any]) -> str:
    return row(written(entries), said, written(works))


def row(*cells: str) -> str:
    """A line of a table. Lists of names are cut, since they grow, and so are paths of this machine."""
    short = [LONG.sub("...", re.sub(r"/\S+/(?=\w+\.py)", "", cell.strip())).replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(f'`{cell}`' for cell in short)} |"


def written(entries: Mapping[str, Any]) -> str:
    """Entries of a configuration, as a recipe has them."""
    return "; ".join(f"{name} = {inline(value)}" for name, value in entries.items())


def inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name} = {inline(entry)}' for name, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return json.dumps(value)


def tests(path: str) -> ModuleType:
    """A module of tests, whose tables of cases are wanted."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "tests" / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def all_cases() -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    combinations = tests("trainers/recipe/test_combinations.py")
    return tests("manyturn/test_errors.py").BAD_INPUT, combinations.REFUSED, combinations.UNFIT


def bad_input() -> Iterator[str]:
    from manyturn.cli import app

    errors = tests("manyturn/test_errors.py")
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        errors.fill(Path(name))
        for line, _ in errors.BAD_INPUT:
            sys.argv, said = ["manyturn", *words_of(line)], io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
                app.main()
            yield input_row(line, said.getvalue(), Path(name))


def refusals(table: str) -> Iterator[str]:
    from manyturn.envs.contract.options.option_conflicts import refuse_unfit
    from manyturn.envs.contract.options.options import ConfigError

    combinations = tests("trainers/recipe/test_combinations.py")
    for entries, _, works in getattr(combinations, table):
        try:
            config = combinations.run(**entries)
            refuse_unfit(config, combinations.open_for(config))
        except ConfigError as refusal:
            yield refusal_row(entries, str(refusal), works)


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.pop("OPENAI_BASE_URL", None)
    sys.path[:0] = [str(ROOT / "tests" / place) for place in ("manyturn/errors", "trainers", "trainers/credit")]
    tables = ((ON_THE_LINE, bad_input()), (OF_OPTIONS, refusals("REFUSED")), (OF_ENVIRONMENTS, refusals("UNFIT")))
    text = "\n\n".join("\n".join([head, *rows]) for head, rows in tables)
    print(f"{HEAD}\n{text}")


if __name__ == "__main__":
    main()
