"""Archives that no snapshot made, fed to restore."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable

from attacks import Attack, Request, requests

from manyturn.containers.sandbox import Sandbox, Snapshot

_Member = tuple[str, bytes, bytes | str]  # name, type, content or link


def _member(name: str, kind: bytes = tarfile.REGTYPE, content: bytes | str = b"evil", **fields: object) -> tuple:
    member = tarfile.TarInfo(name)
    member.type, member.mode = kind, 0o755 if kind == tarfile.DIRTYPE else 0o644
    if isinstance(content, str):
        member.linkname, content = content, b""
    elif kind in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE):
        member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, content


def _tar(*members: tuple, form: int = tarfile.GNU_FORMAT, **options: object) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, **options) as tar:  # type: ignore[call-overload]
        for member, content in members:
            tar.addfile(member, io.BytesIO(content) if content else None)
    return out.getvalue()


def _pax(**headers: str) -> bytes:
    return _tar(_member("x", pax_headers=headers), form=tarfile.PAX_FORMAT)


def _broken(archive: bytes, at: int, with_: bytes) -> bytes:
    """An archive whose first header was changed, with its sum made right again."""
    head = bytearray(archive[:512])
    head[at : at + len(with_)] = with_
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + archive[512:]


def _folder(name: str) -> tuple:
    return _member(name, tarfile.DIRTYPE, b"")


def _link(name: str, to: str) -> tuple:
    return _member(name, tarfile.SYMTYPE, to)


_DEEP = "/".join(["d"] * 300)
_BUILDERS: dict[str, Callable[[], bytes]] = {
    "steps up": lambda: _tar(_member("../tmp/evil"), _member("a/../../tmp/victim"), _member("../dev/shm/evil")),
    "from the top": lambda: _tar(_member("/tmp/evil"), _member("//tmp/evil"), _member("/etc/evil")),
    "link, then a file through it": lambda: _tar(_link("x", "/tmp"), _member("x/evil")),
    "link that leads up, then a file": lambda: _tar(_link("x", "../tmp"), _member("x/victim")),
    "link by link": lambda: _tar(_folder("a"), _link("a/b", ".."), _link("c", "a/b/../tmp"), _member("c/evil")),
    "link to a file that is written": lambda: _tar(_link("x", "/tmp/victim"), _member("x")),
    "folder replaced by a link": lambda: _tar(_folder("d"), _link("d", "/tmp"), _member("d/evil")),
    "link in the place of the workspace": lambda: _tar(_link(".", "/tmp"), _link("", "/tmp"), _member("./evil")),
    "hard link to a secret": lambda: _tar(_member("x", tarfile.LNKTYPE, "/etc/shadow"), _member("x")),
    "hard link to a victim": lambda: _tar(_member("x", tarfile.LNKTYPE, "../tmp/victim"), _member("x")),
    "hard link to a link": lambda: _tar(_link("a", "/tmp/victim"), _member("b", tarfile.LNKTYPE, "a"), _member("b")),
    "character device": lambda: _tar(_member("null", tarfile.CHRTYPE, b"", devmajor=1, devminor=1, mode=0o666)),
    "block device": lambda: _tar(_member("disk", tarfile.BLKTYPE, b"", devmajor=254, devminor=0, mode=0o666)),
    "pipe": lambda: _tar(_member("pipe", tarfile.FIFOTYPE, b"")),
    "user and group bits": lambda: _tar(_member("s", mode=0o6755, uid=0, gid=0, uname="root", gname="root")),
    "all bits": lambda: _tar(_member("s", mode=0o7777), _member("d", tarfile.DIRTYPE, b"", mode=0o7777)),
    "folder that nobody may enter": lambda: _tar(_member("d", tarfile.DIRTYPE, b"", mode=0), _member("d/x")),
    "same name twice": lambda: _tar(_member("x"), _member("x", content=b"second")),
    "file, then a file in it": lambda: _tar(_member("x"), _member("x/y")),
    "file before its folder": lambda: _tar(_member("a/b/c")),
    "no name": lambda: _tar(_member(""), _member("."), _member("./"), _member("..")),
    "slashes": lambda: _tar(_member("a//b"), _member("a/"), _member("//")),
    "long name of GNU's that leads up": lambda: _tar(_member("../" * 60 + "tmp/evil")),
    "long link of GNU's": lambda: _tar(_link("x", "../" * 100 + "tmp"), _member("x/evil")),
    "extended header that renames": lambda: _pax(path="../tmp/evil"),
    "extended header that renames to the top": lambda: _pax(path="/tmp/evil"),
    "extended header with a huge size": lambda: _pax(size=str(1 << 62)),
    "extended header with a negative size": lambda: _pax(size="-512"),
    "extended header that is no number": lambda: _pax(size="x", mtime="nan", uid="-1"),
    "extended header of a megabyte": lambda: _pax(comment="x" * 2_000_000),
    "extended header with attributes": lambda: _pax(**{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02"}),
    "header for all": lambda: _tar(
        _member("x"), form=tarfile.PAX_FORMAT, pax_headers={"path": "../tmp/evil", "linkpath": "/tmp"}
    ),
    "sparse file of GNU's": lambda: _broken(_tar(_member("x", tarfile.GNUTYPE_SPARSE)), 386, b"00000000000\0" * 8),
    "sparse file by an extended header": lambda: _pax(
        **{
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.realsize": str(1 << 50),
            "GNU.sparse.name": "../tmp/evil",
        }
    ),
    "sparse map of many parts": lambda: _pax(
        **{"GNU.sparse.map": ",".join(["0,0"] * 200_000), "GNU.sparse.size": "99999999", "GNU.sparse.numblocks": "9"}
    ),
    "size beyond the end": lambda: _broken(_tar(_member("x")), 124, b"77777777777\0"),
    "size in base 256": lambda: _broken(_tar(_member("x")), 124, b"\x80" + b"\x7f" * 11),
    "size below nought": lambda: _broken(_tar(_member("x")), 124, b"\xff" * 11 + b"\x00"),
    "wrong sum": lambda: _tar(_member("x")).replace(b"x\0", b"y\0", 1),
    "part of several volumes": lambda: _tar(_member("x", b"M", b""), _member("y", b"V", b""), _member("z", b"D", b"")),
    "unknown type": lambda: _tar(_member("x", b"Z", b""), _member("y", tarfile.CONTTYPE, b"evil")),
    "NUL in a name": lambda: _broken(_tar(_member("x" * 50)), 10, b"\0"),
    "name that is not UTF-8": lambda: _broken(_tar(_member("x" * 50)), 10, b"\xff\xfe\n\x1b"),
    "ended in the middle": lambda: _tar(_member("x", content=bytes(5000)))[:3000],
    "nothing": lambda: b"",
    "noise": lambda: bytes(range(256)) * 400,
    "zeros": lambda: bytes(1 << 20),
    "ten thousand files": lambda: _tar(*(_member(f"f{i}", content=b"") for i in range(10_000))),
    "twenty megabytes": lambda: _tar(_member("big", content=bytes(20 << 20))),
    "thousand levels": lambda: _tar(*(_folder("/".join(["d"] * n)) for n in range(1, 400))),
    "name of all levels at once": lambda: _tar(_member(_DEEP)),
    "parts too long": lambda: _tar(_member("n" * 300), _member("/".join(["n" * 250] * 20))),
    "compressed": lambda: gzip.compress(_tar(_member("big", content=bytes(100 << 20))), 9),
    "compressed twice": lambda: gzip.compress(gzip.compress(bytes(50 << 20), 9), 9),
    "zip": lambda: _zip(),
    "caches that snapshots leave out": lambda: _tar(_folder("__pycache__"), _member("__pycache__/json.pyc")),
    "script of the shell's": lambda: b"#!/bin/sh\ntouch /tmp/evil\n",
}


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../tmp/evil", bytes(10 << 20))
    return out.getvalue()


def _restore(build: Callable[[], bytes]) -> Request:
    def ask(box: Sandbox) -> object:
        box.restore(Snapshot("0" * 64, build()))
        return [
            box.snapshot().archive,
            box.run("find /workspace -type f | head -c 9000 | xargs -r head -c 200 --").output,
        ]

    return ask


_BEFORE = "echo mine > kept"
ATTACKS: list[Attack] = requests(
    "archives", "outside", {name: (_BEFORE, _restore(build)) for name, build in _BUILDERS.items()}
)
