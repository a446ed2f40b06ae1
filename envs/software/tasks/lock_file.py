"""The lock file: tasks as edits of pinned releases, in JSON lines. It holds no line of anybody's source.

A line for each library has its release, the hashes of the files that are edited, and the ids of all its tests; then
follows a line for each of its tasks, with numbers of tests in place of ids.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from manyturn.envs.software.source import number_ranges
from manyturn.envs.software.source.edits import Edit, Piece
from manyturn.envs.software.source.libraries import library
from manyturn.envs.software.source.library_sources import sha256, tree
from manyturn.envs.software.tasks.task_entry import Entry

FORMAT = 1


class Release(NamedTuple):
    """Entry of a library in a lock file.

    Attributes:
        version, sha256: as in ``libraries``.
        files: path of each file that a task edits -> SHA-256 of its released content.
        tests: ids of its tests, in the order in which the tasks number them.
    """

    version: str
    sha256: str
    files: Mapping[str, str]
    tests: tuple[str, ...]


class Lock(NamedTuple):
    """Releases by the name of the library, and tasks in the order of the file."""

    releases: Mapping[str, Release]
    entries: tuple[Entry, ...]

    def split(self, name: str) -> list[Entry]:
        """The tasks of a split."""
        return [entry for entry in self.entries if entry.split == name]


@cache
def ours() -> Lock:
    """The tasks that come along."""
    return load(files("manyturn.envs.software").joinpath("tasks.jsonl"))


def load(file: Traversable) -> Lock:
    """Read a lock file. Raises ValueError if it is none, or of releases that are not the pinned ones."""
    releases: dict[str, Release] = {}
    entries: list[Entry] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            if "release" in record:
                name, release = record["release"], _release(record)
                _check(name, release, file)
                releases[name] = release
            else:
                entries.append(_entry(record, releases[record["library"]].tests))
        except (KeyError, TypeError, IndexError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"{file} is no file of software tasks, line {number}: {error!r}") from None
    return Lock(releases, tuple(entries))


def save(entries: Iterable[Entry]) -> str:
    """The text of a lock file: libraries in alphabetical order, each with its tasks in the order given."""
    by_library: dict[str, list[Entry]] = {}
    for entry in entries:
        by_library.setdefault(entry.library, []).append(entry)
    lines: list[Any] = []
    for name, some in sorted(by_library.items()):
        tests = sorted({test for entry in some for test in (*entry.fail_to_pass, *entry.pass_to_pass)})
        release, source = library(name), tree(library(name))
        edited = sorted({path for entry in some for path, _ in entry.edits})
        lines.append(
            {
                "release": name,
                "format": FORMAT,
                "version": release.version,
                "sha256": release.sha256,
                "files": {path: sha256(source[path]) for path in edited},
                "tests": _folded(tests),
            }
        )
        places = {test: at for at, test in enumerate(tests)}
        lines += [_record(entry, places) for entry in some]
    return "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)


def _check(name: str, release: Release, file: Traversable) -> None:
    pinned = library(name)
    if (release.version, release.sha256) != (pinned.version, pinned.sha256):
        raise ValueError(
            f"the tasks of {file} are of {name} {release.version}, but the pinned release is {pinned.version}: "
            'make them again with "manyturn tasks software"'
        )


def _release(record: Mapping[str, Any]) -> Release:
    if record["format"] != FORMAT:
        raise KeyError(f"format {record['format']}")
    tests = tuple(f"{file}::{test}" for file, names in record["tests"].items() for test in names)
    return Release(record["version"], record["sha256"], record["files"], tests)


def _folded(tests: Iterable[str]) -> dict[str, list[str]]:
    ranges_of: dict[str, list[str]] = {}
    for test in tests:
        file, _, rest = test.partition("::")
        ranges_of.setdefault(file, []).append(rest)
    return ranges_of


def _record(entry: Entry, places: Mapping[str, int]) -> dict[str, Any]:
    return {
        "library": entry.library,
        "id": entry.id,
        "split": entry.split,
        "difficulty": entry.difficulty,
        "edits": [[path, *edit] for path, edit in entry.edits],
        "fails": number_ranges.written(places[test] for test in entry.fail_to_pass),
        "passes": number_ranges.written(places[test] for test in entry.pass_to_pass),
        "symptoms": [[places[test], message] for test, message in entry.symptoms],
        **({} if entry.reached is None else {"reached": entry.reached}),
    }


def _entry(record: Mapping[str, Any], tests: tuple[str, ...]) -> Entry:
    return Entry(
        id=record["id"],
        library=record["library"],
        split=record["split"],
        difficulty=record["difficulty"],
        edits=tuple((path, _edit(edit)) for path, *edit in record["edits"]),
        fail_to_pass=tuple(tests[at] for at in number_ranges.read(record["fails"])),
        pass_to_pass=tuple(tests[at] for at in number_ranges.read(record["passes"])),
        symptoms=tuple((tests[at], message) for at, message in record["symptoms"]),
        reached=_share(record.get("reached")),
    )


def _share(value: Any) -> float | None:
    if value is None or (isinstance(value, int | float) and 0 <= value <= 1):
        return value
    raise TypeError(f"reached is {value!r:.20}, not a share")


def _edit(fields: list[Any]) -> Edit:
    operator, function, span, pieces = fields
    return Edit(operator, function, (span[0], span[1]), tuple(map(_piece, pieces)))


def _piece(piece: Any) -> Piece:
    return piece if isinstance(piece, str) else (piece[0], piece[1])
