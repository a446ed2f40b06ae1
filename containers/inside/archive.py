"""Workspaces as archives: a tar that depends on nothing but paths, kinds, executable bits and contents.

Used on both sides. It is written and read here in the few forms that are needed (GNU's, without extensions but long
names): that takes half of the time that tarfile does, and leaves a hostile archive little to try.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

FILE, FOLDER, LINK = "file", "folder", "link"
_LETTERS = {FILE: b"0", FOLDER: b"5", LINK: b"2"}
_KINDS = {b"0": FILE, b"\0": FILE, b"5": FOLDER, b"2": LINK}
_LONG_NAME, _LONG_TARGET = b"L", b"K"
_BLOCK, _NAME = 512, 100
# name, mode, user, group, size, time, checksum, kind, where a link points to, magic
_HEADER = struct.Struct("100s8s8s8s12s12s8s1s100s8s247x")
_NOBODY, _NEVER, _MAGIC = b"0000000\0", b"00000000000\0", b"ustar  \0"
_SUM = slice(148, 156)
_END = bytes(2 * _BLOCK)


class BadArchive(ValueError):
    """No archive of a workspace, or one beyond the limits."""


class ArchivedPath(NamedTuple):
    """One path of a workspace.

    Attributes:
        path: relative, its parts separated by "/"; bytes that are not UTF-8 are surrogates, as in os.fsdecode.
        kind: FILE, FOLDER or LINK.
        content: a file's, or where a link points to.
        executable: for files only.
    """

    path: str
    kind: str
    content: bytes = b""
    executable: bool = False


def order(path: str) -> bytes:
    """Paths are packed in this order."""
    return path.encode("utf-8", "surrogateescape")


def complete(entries: Iterable[ArchivedPath]) -> list[ArchivedPath]:
    """In order and with the folders above each, as a workspace has them; ``pack`` then gives that workspace's key."""
    by_path = {entry.path: entry for entry in entries}
    for path in list(by_path):
        while path := path.rpartition("/")[0]:
            by_path.setdefault(path, ArchivedPath(path, FOLDER))
    return sorted(by_path.values(), key=lambda entry: order(entry.path))


def pack(entries: Iterable[ArchivedPath]) -> tuple[str, bytes]:
    """Key and archive of entries, which come in order and with every folder above them."""
    digest, blocks = hashlib.sha256(), []
    for path, kind, content, executable in entries:
        name = order(path)
        digest.update(b"%s %d %d %d\n" % (kind.encode(), executable, len(name), len(content)) + name)
        digest.update(content)
        target, data = (content, b"") if kind == LINK else (b"", content)
        for letter, text in ((_LONG_NAME, name), (_LONG_TARGET, target)):
            if len(text) > _NAME:
                blocks += [_header(b"././@LongLink", letter, len(text) + 1), *_padded(text + b"\0")]
        mode = b"0000755\0" if executable or kind == FOLDER else b"0000644\0"
        blocks += [_header(name, _LETTERS[kind], len(data), mode, target), *_padded(data)]
    blocks.append(_END)
    return digest.hexdigest(), b"".join(blocks)


def unpack(archive: bytes, max_entries: int, max_bytes: int) -> Iterator[ArchivedPath]:
    """Entries in the archive's order, folders before what is in them. Raises BadArchive, before the first one."""
    members, total, kinds = [], 0, {"": FOLDER}
    for member in _members(archive):
        members.append(member)
        total += member.size
        path, above = member.path, member.path.rpartition("/")[0]
        if len(members) > max_entries or total > max_bytes:
            raise BadArchive(f"the archive holds more than {max_entries} entries or {max_bytes} bytes")
        if any(part in ("", ".", "..") for part in path.split("/")):
            raise BadArchive(f"{path!r} is no path inside")
        if path in kinds or kinds.get(above) != FOLDER:
            raise BadArchive(f"{path!r} comes twice, or not after its folder")
        kinds[path] = member.kind
    return (_entry(archive, member) for member in members)


class _Member(NamedTuple):
    path: str
    kind: str
    target: bytes
    executable: bool
    start: int
    size: int


def _entry(archive: bytes, member: _Member) -> ArchivedPath:
    content = member.target if member.kind == LINK else archive[member.start : member.start + member.size]
    return ArchivedPath(member.path, member.kind, content, member.executable)


def _header(name: bytes, letter: bytes, size: int, mode: bytes = b"0000644\0", target: bytes = b"") -> bytes:
    length = b"%011o\0" % size
    block = _HEADER.pack(name, mode, _NOBODY, _NOBODY, length, _NEVER, b" " * 8, letter, target, _MAGIC)
    return block[: _SUM.start] + b"%06o\0 " % sum(block) + block[_SUM.stop :]


def _padded(data: bytes) -> tuple[bytes, bytes]:
    return data, bytes(-len(data) % _BLOCK)


def _members(archive: bytes) -> Iterator[_Member]:
    position, long = 0, {}
    while block := archive[position : position + _BLOCK]:
        if block == _END[:_BLOCK]:
            return
        if len(block) < _BLOCK:
            break
        name, mode, _, _, length, _, checksum, letter, target, _ = _HEADER.unpack(block)
        if _octal(checksum) != sum(block) - sum(block[_SUM]) + 8 * ord(" "):
            raise BadArchive("no archive: a header does not add up")
        start, size = position + _BLOCK, _octal(length)
        position = start + size + -size % _BLOCK
        if position > len(archive):
            break
        if letter in (_LONG_NAME, _LONG_TARGET):
            long[letter] = archive[start : start + size]
            continue
        name, target = (_text(long.pop(key, text)) for key, text in ((_LONG_NAME, name), (_LONG_TARGET, target)))
        kind = _KINDS.get(letter)
        if kind is None or (kind != FILE and size):
            raise BadArchive(f"{name!r} is no file, folder or link")
        path = name.decode("utf-8", "surrogateescape")
        path = path[:-1] if kind == FOLDER and path.endswith("/") else path
        yield _Member(path, kind, target, kind == FILE and bool(_octal(mode) & 0o100), start, size)
    raise BadArchive("the archive ends too early")


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits.isdigit() or b"8" in digits or b"9" in digits:
        raise BadArchive(f"no archive: {field!r} is no number")
    return int(digits, 8)
