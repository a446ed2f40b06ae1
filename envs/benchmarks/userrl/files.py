"""The files of a checkout of UserRL, which do not come with this package (SalesforceAIResearch/UserRL, Apache-2.0).

A gym's problems are JSON in its own folder; the official splits are Parquet files in the folder ``data``.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import SPLITS, Task, split_of

CLONE = "git clone https://github.com/SalesforceAIResearch/UserRL && git -C UserRL checkout cf55a30"
_LARGEST = 64 * 2**20  # bytes of a file
_HELD_BACK = {"train": 0.9, "validation": 0.1}  # the official splits have no validation

Record = Mapping[str, Any]


class DataError(NeedsSetup):
    """The folder lacks a file, or a file is not what it should be; the text names the fix."""


class Source(NamedTuple):
    """The file of a gym's problems.

    Attributes:
        rows: name of the folder of Parquet files, without ``_multiturn``.
        files: JSON files of records; none where the rows say everything.
        row_key, record_key: the fields by which a row finds its record.
    """

    rows: str
    files: tuple[str, ...] = ()
    row_key: str = "id"
    record_key: str = "id"


@lru_cache(maxsize=16)
def tasks_of(
    folder: str | Path | None, source: Source, problem: Callable[[Record], Mapping[str, Any]]
) -> Mapping[str, Sequence[Task]]:
    """The tasks of each split, the official train split being divided into train and validation by content.

    What stands in the official test split too, word for word, is left out of train.

    Args:
        folder: a checkout.
        source: where the problems are.
        problem: a record -> the parameters of its task. Raises KeyError, TypeError or ValueError for a strange one.

    Raises:
        DataError: a file is missing or strange.
    """
    if folder is None:
        raise DataError(
            f'the files of UserRL do not come with this package: "{CLONE}" fetches them; give data="UserRL"'
        )
    root = Path(folder).expanduser().resolve()
    try:
        records = _records(root, source)

        def official(split: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
            for row in _rows(root / "data" / f"{source.rows}_multiturn" / f"{split}.parquet"):
                name, record = records[str(row[source.row_key])] if source.files else (str(row["id"]), row)
                yield name, dict(problem(record))

        test = [Task(f"test/{name}", "test", params) for name, params in official("test")]
        seen = {task.content for task in test}
        others = [(name, Task("", "train", params)) for name, params in official("train")]
    except DataError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        fault = f"{type(error).__name__}: {error}"
        raise DataError(f'{root} is not as UserRL is ({fault:.200}): "{CLONE}" fetches it') from None
    tasks: dict[str, list[Task]] = {split: [] for split in SPLITS} | {"test": test}
    for name, task in others:
        if task.content not in seen:
            split = split_of(task.content, _HELD_BACK)
            tasks[split].append(Task(f"{split}/{name}", split, task.params))
    return {split: tuple(problems) for split, problems in tasks.items()}


def _records(root: Path, source: Source) -> dict[str, tuple[str, Record]]:
    """Key -> id and record."""
    named: dict[str, tuple[str, Record]] = {}
    for path in source.files:
        content = json.loads(_bytes(root / path))
        pairs = content.items() if isinstance(content, dict) else ((str(record["id"]), record) for record in content)
        named |= {str(record.get(source.record_key, name)): (name, record) for name, record in pairs}
    return named


def _rows(file: Path) -> list[Record]:
    """The column that says which problem a row is."""
    content = _bytes(file)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(content)) as table:
            return table.read(columns=["reward_model"], use_threads=False)["reward_model"].to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file} is no Parquet file ({str(error).splitlines()[0]:.200}): fetch it again") from None


def _bytes(file: Path) -> bytes:
    if not file.is_file():
        raise DataError(f'there is no {file}: "{CLONE}" fetches it; give the folder of the checkout as data')
    if file.stat().st_size > _LARGEST:
        raise DataError(f"{file} has {file.stat().st_size:,} bytes, at most {_LARGEST:,} are read: fetch it again")
    return file.read_bytes()
