"""Hashes of a folder's files, remembered from their last full reading: no start reads 5 GB again."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from manyturn.envs.contract.atomic_files import cache_of, replace_text
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.shop.webshop.records import ATTRIBUTES, HUMAN, PRODUCTS, DataError

# Git's names of the files' contents in a public copy, github.com/WooooDyy/AgentGym at 3ef9235 (MIT licence).
PUBLIC_COPY = "github.com/WooooDyy/AgentGym"
KNOWN = {
    PRODUCTS: "08dfda9a1c896e0f69d50e3437dd3fe94419b7d7",
    ATTRIBUTES: "22837ad99f3173712fc9cb1cce7de6b75fe90595",
    HUMAN: "b2ab7479b9798e0b62ea394e065f3d506875f090",
}
_READ = 1 << 20  # bytes at a time


@dataclass(frozen=True, slots=True)
class Facts:
    """A file: bytes, nanoseconds of its last change, SHA-256, and the name that git gives its content."""

    size: int
    changed: int
    sha256: str
    git: str


def facts_of(file: Path) -> Facts:
    """Read a file through."""
    stat = file.stat()
    sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % stat.st_size, usedforsecurity=False)
    with file.open("rb") as stream:
        while block := stream.read(_READ):
            sha256.update(block)
            git.update(block)
    return Facts(stat.st_size, stat.st_mtime_ns, sha256.hexdigest(), git.hexdigest())


def cache_folder() -> Path:
    """Cache of prepared files: ``$MANYTURN_CACHE/webshop``, or ``~/.cache/manyturn/webshop``."""
    return cache_of("webshop")


def recorded(folder: Path) -> dict[str, Facts]:
    """The facts recorded of a folder's files, by name; none if it was never looked through."""
    try:
        record = json.loads(_record(folder).read_text(encoding="utf-8"))
        return {name: Facts(**facts) for name, facts in record["files"].items()}
    except (OSError, ValueError, TypeError, KeyError):
        return {}  # a record that cannot be read is made again


def record(folder: Path, facts: Mapping[str, Facts]) -> None:
    """Remember facts of a folder's files, besides those of its other files."""
    record = {name: asdict(entry) for name, entry in {**recorded(folder), **facts}.items()}
    file = _record(folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, json.dumps({"folder": str(folder), "files": record}, indent=1) + "\n")


def _record(folder: Path) -> Path:
    return cache_folder() / "manifests" / f"{digest(str(folder))}.json"


def recorded_hashes(files: Sequence[Path]) -> tuple[str, ...]:
    """SHA-256 of files of one folder, without reading them. Raises DataError if they were changed or never recorded."""
    record = recorded(files[0].parent)
    for file in files:
        stat, facts = file.stat(), record.get(file.name)
        if facts is None or (facts.size, facts.changed) != (stat.st_size, stat.st_mtime_ns):
            what = "is not prepared yet" if facts is None else "has changed since it was prepared"
            raise DataError(f'{file} {what}: run "manyturn data webshop {file.parent}" once')
    return tuple(record[file.name].sha256 for file in files)
