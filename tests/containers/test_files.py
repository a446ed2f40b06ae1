"""The workspace's files: nothing outside is read or written, and a snapshot is all of it and nothing else."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from running import EMPTY, sandbox, started
from test_archive import entries_of, trees

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.inside.archive import FILE, FOLDER, ArchivedPath, complete, pack, unpack
from manyturn.containers.sandbox import SandboxRefused, Snapshot

pytestmark = pytest.mark.versions

__all__ = ["sandbox", "started"]
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def test_what_is_written_is_read(sandbox: DockerSandbox) -> None:
    for path in ("a", "b/c/d.txt", "/workspace/e", "./f", "b/../g", "ü\n'\" ", "..h", "-rf", "\udcff"):
        sandbox.write(path, path.encode("utf-8", "surrogateescape"))
        assert sandbox.read(path) == path.encode("utf-8", "surrogateescape")
    assert sandbox.run("stat -c '%a %u' b/c b/c/d.txt").output == f"755 {sandbox.agent}\n644 {sandbox.agent}\n"
    sandbox.run("chmod +x a; mkdir in; ln -s ../b/c in/link; ln -s a short")
    sandbox.write("a", b"new")
    assert sandbox.run("stat -c %a a").output == "755\n"
    assert sandbox.read("in/link/d.txt") == b"b/c/d.txt" and sandbox.read("short") == b"new"
    content = random.Random(0).randbytes(900_000)
    sandbox.write("big", content)
    assert sandbox.read("big") == content
    with pytest.raises(SandboxRefused, match="900000 bytes"):
        sandbox.read("big", limit=899_999)


@pytest.mark.parametrize(
    "path",
    (
        *(
            "/etc/passwd",
            "../etc/passwd",
            "a/../../etc/passwd",
            "/workspace/../tmp/x",
            "/proc/1/mem",
            "/dev/zero",
            "/tmp/x",
        ),
        *(
            "out/passwd",
            "passwd",
            "deep/passwd",
            "chain/passwd",
            "zero",
            "dangling",
            "loop",
            "pipe",
            "folder",
            "file/x",
        ),
        *("", ".", "/", "/workspace", "x\0y", "\ud800", "n" * 300, "n/" * 3000),
    ),
)
def test_paths_that_lead_elsewhere_are_refused(sandbox: DockerSandbox, path: str) -> None:
    sandbox.run(
        "ln -s /etc out; ln -s /etc/passwd passwd; mkdir folder; ln -s ../../etc deep; mkfifo pipe; ln -s loop loop;"
        "touch file; echo secret > /tmp/x; ln -s /dev/zero zero; ln -s /tmp/new dangling; ln -s out chain"
    )
    with pytest.raises(SandboxRefused):
        sandbox.read(path)
    with pytest.raises(SandboxRefused):
        sandbox.write(path, b"x")
    assert sandbox.run("cat /tmp/x; ls /tmp").output == "secret\nx\n"


def test_files_of_the_agents_are_in_nobodys_way(sandbox: DockerSandbox) -> None:
    sandbox.run("for i in {0..300}; do echo $i > .aside.$i; done; mkdir -p /tmp/.aside.{0..300}/x")
    sandbox.write("x", b"y")
    assert sandbox.run("cat .aside.{0..300} | wc -l; ls -A | wc -l").output == "301\n302\n"
    sandbox.restore(EMPTY)
    assert sandbox.run("ls -A . /tmp | wc -l").output == "3\n"


def test_a_long_chain_of_links_is_refused(sandbox: DockerSandbox) -> None:
    sandbox.run('python3 -c \'import os\nfor i in range(1500): os.symlink(f"l{i + 1}", f"l{i}")\'; touch l1500')
    for path in ("l0", "l1/x"):
        with pytest.raises(SandboxRefused):
            sandbox.read(path)
        with pytest.raises(SandboxRefused):
            sandbox.write(path, b"")


def test_the_agent_cannot_be_made_to_reach_files_that_it_could_not_reach_itself(sandbox: DockerSandbox) -> None:
    sandbox.run("mkdir closed; echo x > closed/x; echo y > y; chmod 0 closed y")
    for path in ("closed/x", "y"):
        with pytest.raises(SandboxRefused, match="Permission denied"):
            sandbox.read(path)
    sandbox.run("chmod 0 /workspace")
    sandbox.write("z", b"")
    assert sandbox.run("ls").output == "closed\ny\nz\n"


@FEW
@given(trees)
def test_a_workspace_comes_back_as_it_was(started: DockerSandbox, tree: object) -> None:
    entries = [entry for entry in complete(entries_of(tree)) if entry.path.count("/") < 20]
    short = [entry for entry in entries if all(len(part.encode()) < 256 for part in entry.path.split("/"))]
    kept = [entry for entry in complete(short) if entry.content or entry.kind != "link"]
    made = Snapshot(*pack(kept))
    started.restore(made)
    assert started.snapshot() == made


def test_the_key_knows_contents_and_executable_bits_but_no_times(sandbox: DockerSandbox) -> None:
    def key(script: str) -> str:
        sandbox.restore(EMPTY)
        assert sandbox.run(script).status == 0
        return sandbox.snapshot().key

    base = key("mkdir a b; echo 1 > a/x; echo 2 > y; ln -s a l")
    same = "echo 2 > y; chmod 600 y; touch -d 1999-01-01 y; mkdir -m 700 b a; ln -s a l; echo 1 > a/x; echo 4 > /tmp/z"
    assert key(same) == base
    assert (
        key(f"{same}; mkdir a/__pycache__ .pytest_cache; touch a/__pycache__/x.pyc .pytest_cache/v; mkfifo f") == base
    )
    others = [
        f"{same}; {more}" for more in ("chmod +x y", "echo 3 > y", "rmdir b", "ln -sf b l", "touch l/z", "mv y z")
    ]
    assert len({base, *map(key, others)}) == 1 + len(others)


def test_a_snapshot_is_made_of_what_the_agent_locked_or_buried(sandbox: DockerSandbox) -> None:
    sandbox.run("mkdir -p a/b; echo x > a/b/c; ln a/b/c hard; chmod 0 a/b/c; chmod 0 a/b a /workspace")
    found = list(unpack(sandbox.snapshot().archive, 100, 10_000))
    wanted = [
        ArchivedPath("a", FOLDER),
        ArchivedPath("a/b", FOLDER),
        ArchivedPath("a/b/c", FILE, b"x\n"),
        ArchivedPath("hard", FILE, b"x\n"),
    ]
    assert found == wanted
    sandbox.run("chmod 400 a; chmod 100 a/b; chmod 200 a/b/c")
    assert list(unpack(sandbox.snapshot().archive, 100, 10_000)) == wanted
    sandbox.run("truncate -s 8M sparse1 sparse2")
    with pytest.raises(SandboxRefused, match="more than 2000 entries or 8388608 bytes"):
        sandbox.snapshot()


def test_restoring_empties_everything_however_deep_or_locked(sandbox: DockerSandbox) -> None:
    kept = sandbox.snapshot()
    bury = "import os\nfor i in range(900): os.mkdir('d'); os.chdir('d')\nopen('x', 'w'); os.chmod('.', 0)"
    for place in ("/workspace", "/tmp", "/dev/shm"):
        sandbox.run(
            f"python3 -c \"{bury}\"; mkdir .1.1 .1.2 .1.2/x; touch .h 'a\nb'; mkfifo p; ln -s / l; chmod 0 .1.2",
            folder=place,
        )
    assert sandbox.run("ls -A /tmp /dev/shm | wc -l").output != "3\n"
    sandbox.run("chmod 0 /workspace")
    sandbox.restore(kept)
    assert sandbox.run("ls -A /workspace /tmp /dev/shm; stat -c %a /workspace").output == (
        "/dev/shm:\n\n/tmp:\n\n/workspace:\n755\n"
    )
    assert sandbox.snapshot() == kept


def test_the_workspace_itself_remembers_nothing(sandbox: DockerSandbox) -> None:
    mark = """
import contextlib, fcntl, os, struct
entries = [(1, 7, -1), (2, 7, 4242), (4, 5, -1), (16, 7, -1), (32, 5, -1)]  # user 4242 may do everything
access_list = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, who % 2**32) for tag, bits, who in entries)
for name, value in (("posix_acl_access", access_list), ("posix_acl_default", access_list)):
    os.setxattr(".", f"system.{name}", value)
with contextlib.suppress(OSError):
    os.setxattr(".", "user.mark", b"x")
with contextlib.suppress(OSError):
    fcntl.ioctl(os.open(".", os.O_RDONLY), 0x40086602, struct.pack("l", 0x40))  # not to be dumped
os.utime(".", (1, 1))
os.chmod(".", 0o3777)
"""
    look = (
        "import fcntl, os; found = os.stat('.'); flags = bytearray(8)\n"
        "try: fcntl.ioctl(os.open('.', os.O_RDONLY), 0x80086601, flags)\nexcept OSError: pass\n"
        "print(os.listxattr('.'), oct(found.st_mode), found.st_atime > 99, found.st_mtime > 99, any(flags))"
    )
    fresh = "[] 0o40755 True True False\n"
    assert sandbox.run(f'python3 -c "{look}"').output == fresh
    sandbox.run(f"python3 -c '{mark}'")
    assert "posix_acl_default" in sandbox.run(f'python3 -c "{look}"').output
    sandbox.restore(EMPTY)
    assert sandbox.run(f'python3 -c "{look}"').output == fresh


def test_a_snapshot_that_is_none_changes_nothing(sandbox: DockerSandbox) -> None:
    sandbox.run("echo x > x; echo y > /tmp/y")
    many = Snapshot("", pack([ArchivedPath(f"{number:05}", FILE) for number in range(2001)])[1])
    large = Snapshot("", pack([ArchivedPath("x", FILE, bytes((8 << 20) + 1))])[1])
    for bad in (Snapshot("", b"x" * 2000), many, large):
        with pytest.raises(SandboxRefused):
            sandbox.restore(bad)
    assert sandbox.run("cat x /tmp/y").output == "x\ny\n"
