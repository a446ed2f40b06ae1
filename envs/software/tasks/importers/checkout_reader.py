"""A user's file or checkout of somebody else's problems, read with care: small files, safe names, one-line errors."""

import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from manyturn.envs.contract.registration.env_registry import NeedsSetup

LARGEST = 4_000_000
"""Bytes of a file that belongs to one problem; the real ones have a few thousand."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")


class DataError(NeedsSetup):
    """The file or checkout is missing, or is not what it should be; the text names the fix."""


class OtherRelease(UserWarning):
    """The files are sound, but not those that this importer was tried on."""


def warn_of_other(where: Path, what: str) -> None:
    """Say that the files differ from those that were tried; they are used all the same."""
    warnings.warn(f"{where}: {what}; its problems are used as they are, unverified", OtherRelease, stacklevel=3)


class Checkout:
    """A folder whose files are read by relative paths that stay inside it.

    Args:
        root: the folder.
        source: where the files are from, for error messages.
        folders: that it must have.

    Raises:
        DataError: it is no folder, or lacks one of ``folders``.
    """

    def __init__(self, root: str | Path, source: str, folders: tuple[str, ...]):
        self.root, self.source = Path(root).expanduser().resolve(), source
        missing = [folder for folder in folders if not (self.root / folder).is_dir()]
        if missing:
            raise DataError(f"{self.root} has no folder {missing[0]}: give a checkout of {source}")

    def names(self, folder: str, pattern: str) -> list[str]:
        """Names in a folder that match a shell pattern, sorted. Raises DataError for one that is no plain name."""
        return [plain_name(path.name, self.root / folder) for path in sorted((self.root / folder).glob(pattern))]

    def has(self, path: str) -> bool:
        return (self.root / path).is_file()

    def read(self, path: str) -> bytes:
        """The content of a file. Raises DataError if it is missing, too large, or outside of the checkout."""
        full = (self.root / inside(path, self.root)).resolve()
        if not full.is_relative_to(self.root):
            raise DataError(f"{self.root / path} leads out of the checkout: fetch {self.source} again")
        return read_small(full, self.source)

    def text(self, path: str) -> str:
        """The content of a file as text. Raises DataError."""
        try:
            return self.read(path).decode()
        except UnicodeDecodeError:
            raise DataError(f"{self.root / path} is not UTF-8: fetch {self.source} again") from None

    def table(self, path: str) -> Mapping[str, Any]:
        """The JSON object that a file holds. Raises DataError."""
        return json_object(self.text(path), f"{self.root / path}", self.source)


def read_small(path: Path, source: str, largest: int = LARGEST) -> bytes:
    """A file's content. Raises DataError if there is none, or more than ``largest`` bytes."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise DataError(f"{path} is no regular file: give a file of {source}")
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): give a file of {source}") from None
    if len(content) > largest:
        raise DataError(f"{path} has more than {largest:,} bytes, which no file of {source} has: fetch it again")
    return content


def json_object(text: str | bytes, where: str, source: str) -> Mapping[str, Any]:
    """The JSON object of a text. Raises DataError."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{where} is not JSON: fetch {source} again") from None
    if not isinstance(plain, dict):
        raise DataError(f"{where} holds a {type(plain).__name__}, not an object: fetch {source} again")
    return plain


def texts_of(row: Mapping[str, Any], names: tuple[str, ...], where: str) -> tuple[str, ...]:
    """The fields of a row, all of which must be text that a file can hold. Raises DataError."""
    for name in names:
        if not isinstance(row.get(name), str):
            kind = type(row[name]).__name__ if name in row else "missing"
            raise DataError(f"{where}: {name} is {kind}, not text: fetch the file again")
        if not row[name].isascii() and any("\ud800" <= sign <= "\udfff" for sign in row[name]):
            raise DataError(f"{where}: {name} holds half of a character: fetch the file again")
    return tuple(row[name] for name in names)


def plain_name(name: str, where: object) -> str:
    """A name of letters, digits and ``_.+-`` that is no path and no option. Raises DataError."""
    if not _NAME.fullmatch(name):
        raise DataError(f"{where}: {name!r:.60} is no plain name: fetch the files again")
    return name


def inside(path: Any, where: object) -> str:
    """A relative path of plain names, hidden ones allowed, that does not climb. Raises DataError."""
    parts = PurePosixPath(path).parts if isinstance(path, str) else ()
    if not parts or not all(_NAME.fullmatch(part.removeprefix(".")) for part in parts) or "/".join(parts) != path:
        raise DataError(f"{where}: {path!r:.60} is no path below it: fetch the files again")
    return path


def sha256_of(content: bytes) -> str:
    """Hexadecimal hash."""
    return hashlib.sha256(content).hexdigest()
