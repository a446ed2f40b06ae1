"""Archives: the same workspace has the same key, and nothing hostile gets past the list of members."""

import contextlib
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.containers.inside.archive import FILE, FOLDER, LINK, ArchivedPath, BadArchive, complete, pack, unpack

MANY = 1 << 20
names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=130).filter(
    lambda name: name not in (".", "..")
)
leaves = st.one_of(
    st.builds(lambda content, executable: (FILE, content, executable), st.binary(max_size=600), st.booleans()),
    st.just((FOLDER, b"", False)),
    st.builds(lambda target: (LINK, target.encode(), False), names),
)
trees = st.recursive(leaves, lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=8)


def entries_of(tree: object, path: str = "") -> list[ArchivedPath]:
    """A dictionary is a folder; everything else is what a path leads to."""
    if isinstance(tree, dict):
        below = [
            entry for name, inner in tree.items() for entry in entries_of(inner, f"{path}/{name}" if path else name)
        ]
        return [*([ArchivedPath(path, FOLDER)] if path else []), *below]
    assert isinstance(tree, tuple)
    return [ArchivedPath(path or "x", *tree)]


@given(trees, st.randoms(use_true_random=False))
def test_what_is_packed_is_unpacked_and_its_key_depends_on_the_workspace_only(tree: object, shuffler: object) -> None:
    entries = entries_of(tree)
    key, archive = pack(complete(entries))
    assert list(unpack(archive, MANY, MANY)) == complete(entries)
    shuffler.shuffle(entries)  # type: ignore[attr-defined]
    assert pack(complete(entries)) == (key, archive)


@given(trees)
def test_others_read_it_as_a_tar(tree: object) -> None:
    entries = complete(entries_of(tree))
    with tarfile.open(fileobj=io.BytesIO(pack(entries)[1]), encoding="utf-8", errors="surrogateescape") as tar:
        assert [(member.name, member.mtime, member.uid) for member in tar] == [(entry.path, 0, 0) for entry in entries]
        for member, (_, kind, content, executable) in zip(tar.getmembers(), entries, strict=True):
            assert (member.isreg(), member.isdir(), member.issym()) == (kind == FILE, kind == FOLDER, kind == LINK)
            assert member.mode == (0o755 if executable or kind == FOLDER else 0o644)
            file = tar.extractfile(member) if kind == FILE else None
            assert content == (file.read() if file else member.linkname.encode())


@given(trees, trees)
def test_different_workspaces_have_different_keys(one: object, other: object) -> None:
    first, second = complete(entries_of(one)), complete(entries_of(other))
    assert (pack(first)[0] == pack(second)[0]) == (first == second)


def test_folders_that_nobody_named_are_there() -> None:
    assert [entry.path for entry in complete([ArchivedPath("a/b/c", FILE, b"1"), ArchivedPath("a-", FILE)])] == [
        "a",
        "a-",
        "a/b",
        "a/b/c",
    ]


def _tar(*members: tarfile.TarInfo, format: int = tarfile.PAX_FORMAT) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=format) as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)) if member.isreg() else None)
    return archive.getvalue()


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0, **pax: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, size
    member.pax_headers = {key.replace("_", "."): value for key, value in pax.items()}
    return member


@pytest.mark.parametrize(
    "archive",
    [
        _tar(_member("/etc/passwd")),
        _tar(_member("../x")),
        _tar(_member("a", tarfile.DIRTYPE), _member("a/../../x")),
        _tar(_member("./x")),
        _tar(_member("a", tarfile.DIRTYPE), _member("a//x")),
        _tar(_member("x", tarfile.LNKTYPE, "/etc/shadow")),
        _tar(_member("x", tarfile.CHRTYPE)),
        _tar(_member("x", tarfile.BLKTYPE)),
        _tar(_member("x", tarfile.FIFOTYPE)),
        _tar(_member("x", tarfile.CONTTYPE)),
        _tar(_member("x", tarfile.SYMTYPE, "/etc"), _member("x/passwd")),
        _tar(_member("x"), _member("x/y")),
        _tar(_member("x/y")),
        _tar(_member("x"), _member("x")),
        _tar(_member("x", path="../../x")),
        _tar(_member("x", GNU_sparse_size="9", GNU_sparse_map="0,1")),
        _tar(_member("x", size=2000)),
        _tar(*(_member(str(number)) for number in range(11))),
        _tar(_member("x", size=900))[:700],
        b"x" * 1024,
        b"",
        _tar(_member("x", tarfile.DIRTYPE, size=512)),
        pack([ArchivedPath("x", FILE)])[1].replace(b"00000000000", b"-0000000001", 1),
        pack([ArchivedPath("x", FILE)])[1][:300],
    ],
)
def test_hostile_archives_are_refused_before_the_first_entry(archive: bytes) -> None:
    with pytest.raises(BadArchive):
        unpack(archive, 10, 1000)


@given(st.binary(max_size=2000))
def test_any_bytes_are_an_archive_or_refused(noise: bytes) -> None:
    archive = bytearray(
        pack([ArchivedPath("a", FOLDER), ArchivedPath("a/b", FILE, b"content"), ArchivedPath("l", LINK, b"a")])[1]
    )
    archive[: len(noise)] = bytes(left ^ right for left, right in zip(archive, noise, strict=False))
    for data in (noise, bytes(archive)):
        with contextlib.suppress(BadArchive):
            assert all(".." not in entry.path.split("/") for entry in unpack(data, 10, 1000))
