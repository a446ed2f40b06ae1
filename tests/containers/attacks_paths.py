"""Requests for files, answered in a workspace that the agent has prepared: paths that lead out, files that are none."""

from attacks import Attack, Request, python, requests

from manyturn.containers.sandbox import Sandbox, SandboxRefused


def _read(*paths: str, limit: int = 1_000_000) -> Request:
    def ask(box: Sandbox) -> object:
        return [_answer(lambda path=path: box.read(path, limit)) for path in paths]

    return ask


def _write(*paths: str, content: bytes = b"evil") -> Request:
    def ask(box: Sandbox) -> object:
        return [_answer(lambda path=path: box.write(path, content)) for path in paths]

    return ask


def _again(box: Sandbox) -> object:
    """What a snapshot holds comes back from it, and no more."""
    taken = box.snapshot()
    box.restore(taken)
    if box.snapshot().key != taken.key:
        raise AssertionError("a restored workspace differs from its snapshot")
    return taken.archive


def _answer(ask: object) -> object:
    try:
        return ask()  # type: ignore[operator]
    except SandboxRefused as refused:
        return str(refused)


_VICTIM = "echo intact > /tmp/victim; echo intact > /dev/shm/victim; "
_FLIP = (
    "setsid bash -c 'while :; do ln -sfn /etc x; ln -sfn /workspace/y x; done' >/dev/null 2>&1 & mkdir -p y;"
    "echo mine > y/shadow; sleep 0.05"
)
_READS: dict[str, tuple[str, Request]] = {
    "steps up": ("", _read("../etc/shadow", "../../../../etc/shadow", "a/../../etc/shadow", "./../etc/shadow")),
    "from the top": (
        "",
        _read("/etc/shadow", "//etc/shadow", "/workspace/../etc/shadow", "/proc/self/root/etc/shadow"),
    ),
    "of the server itself": (
        "",
        _read("/proc/self/environ", "/proc/self/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd/0"),
    ),
    "of the host": ("echo $CANARY > p", lambda box: _read(box.read("p").decode().strip())(box)),
    "link to a file": ("ln -s /etc/shadow x; ln -s x y", _read("x", "y", "./x")),
    "link to a folder": (
        "ln -s /etc x; ln -s / r; mkdir d; ln -s ../../etc d/e",
        _read("x/shadow", "r/etc/shadow", "d/e/shadow"),
    ),
    "link into processes": (
        "ln -s /proc/self x; ln -s /proc/1 y",
        _read("x/environ", "y/environ", "x/root/etc/shadow", "x/mem"),
    ),
    "links in a circle": ("ln -s a b; ln -s b a; ln -s . c", _read("a", "b", "c/c/c/c/c")),
    "hard link": ("ln /etc/shadow x; ln /etc/passwd y", _read("x")),
    "link that flips": (_FLIP, lambda box: [_answer(lambda: box.read("x/shadow")) for _ in range(100)]),
    "device": ("ln -s /dev/zero z; ln -s /dev/urandom u; ln -s /dev/stdin i", _read("z", "u", "i", "/dev/zero")),
    "pipe that nobody writes": ("mkfifo p", _read("p")),
    "socket": (python("socket.socket(socket.AF_UNIX).bind('s')"), _read("s")),
    "folder": ("mkdir d", _read("d", ".", "", "/workspace", "d/")),
    "file that seems huge": ("truncate -s 7M x; truncate -s 900G y", _read("x", "y", limit=1000)),
    "limit below nought": ("echo 0123456789 > x", lambda box: _answer(lambda: box.read("x", -1))),
    "NUL": ("", _read("a\0b", "\0", "../etc/shadow\0.txt")),
    "path without an end": ("", _read("a/" * 5000 + "x", "../" * 2000 + "etc/shadow", "x" * 5000)),
    "odd Unicode": (
        "",
        _read("\udcff", "．．/etc/shadow", "..\u2215etc", "%2e%2e/etc/shadow", "..\\etc\\shadow", "~root/x"),
    ),
    "file without rights": ("echo x > x; chmod 0 x; mkdir d; echo y > d/y; chmod 0 d", _read("x", "d/y")),
    "lease on a file": (
        python(
            "import fcntl\nf = os.open('x', os.O_CREAT | os.O_RDWR)\nattempt(fcntl.fcntl, f, "
            "fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
            "if os.fork() == 0: os.setsid(); time.sleep(60)"
        ),
        _read("x"),
    ),
    "pseudo-files of the kernel": (
        "ln -s /proc/kmsg k; ln -s /sys/kernel x",
        _read("k", "/proc/kcore", "/proc/sysrq-trigger", "x/notes"),
    ),
}
_WRITES: dict[str, tuple[str, Request]] = {
    "steps up": (
        _VICTIM,
        _write("../tmp/victim", "../dev/shm/victim", "../../tmp/evil", "a/../../tmp/victim", "../etc/evil"),
    ),
    "from the top": (_VICTIM, _write("/tmp/victim", "/dev/shm/evil", "/workspace/../tmp/evil", "/etc/evil", "/evil")),
    "link to a file": (_VICTIM + "ln -s /tmp/victim x; ln -s /tmp/evil y", _write("x", "y")),
    "link to a folder": (_VICTIM + "ln -s /tmp x; ln -s /dev/shm y", _write("x/victim", "x/evil", "y/evil")),
    "link to what the server is": (
        _VICTIM + "ln -s /proc/self x",
        _write("x/mem", "x/fd/1", "x/oom_score_adj", "x/cwd/tmp/evil"),
    ),
    "link in the place of a folder to come": (_VICTIM + "ln -s /tmp/evil d", _write("d/e/f")),
    "hard link": (_VICTIM + "ln /tmp/victim x; ln /etc/passwd y", _write("x", "y")),
    "link that flips": (
        _VICTIM
        + "setsid bash -c 'while :; do ln -sfn /tmp x; ln -sfn /workspace/y x; done' >/dev/null 2>&1 & mkdir -p y",
        lambda box: [_answer(lambda: box.write("x/evil", b"evil")) for _ in range(50)],
    ),
    "name of the file that is put aside": (
        _VICTIM + "ln -s /tmp/victim .1.new; mkdir d; mkfifo d/.1.new",
        _write("x", "d/x"),
    ),
    "pipe": ("mkfifo p", _write("p")),
    "device": ("ln -s /dev/full f; ln -s /dev/null n", _write("f", "n", "/dev/null")),
    "folder": ("mkdir d", _write("d", "d/", ".", "..", "", "/", "/workspace")),
    "folder without rights": ("mkdir d; chmod 0 d", _write("d/x", "d/e/x")),
    "more than fits": ("", _write("x", content=bytes(20 << 20))),
    "no room left": ("head -c 100M /dev/zero > big; touch $(seq 1000)", _write("x", "y/z")),
    "NUL": ("", _write("a\0b", "../tmp/evil\0")),
    "path without an end": ("", _write("a/" * 3000 + "x", "n" * 300, "../" * 1000 + "tmp/evil")),
    "file where a folder should be": ("touch f", _write("f/x", "f/x/y")),
    "a thousand folders": ("", _write(*(f"d{i}/e/f" for i in range(300)))),
}
_SNAPSHOTS: dict[str, tuple[str, Request]] = {
    "links to secrets": ("ln -s /etc/shadow a; ln -s / b; ln -s /proc/1/environ c; ln /etc/shadow d", _again),
    "circles": ("mkdir d; ln -s ../d d/d; ln -s . e; ln -s e e2", _again),
    "what is no file": ("mkfifo p; mkdir d; mkfifo d/p; ln -s /dev/zero z; exec 5<>/dev/ptmx", _again),
    "without rights": ("echo x > x; chmod 0 x; mkdir -p d/e; echo y > d/e/y; chmod 0 d/e d; chmod 0 .", _again),
    "odd names": (
        python(
            "for n in range(1, 256):\n    if n != 47:\n        open(b'f' + bytes([n]), 'w').close()\n"
            "open(b'\\xff\\xfe' * 120, 'w').close()"
        ),
        _again,
    ),
    "deep": ("for i in $(seq 150); do mkdir d; cd d; done; echo x > x", _again),
    "deeper than a path can be": (
        "for i in $(seq 220); do mkdir dddddddddddddddddddd; cd dddddddddddddddddddd; done",
        _again,
    ),
    "file with holes": ("truncate -s 7M x; printf y | dd of=x bs=1 seek=6000000 conv=notrunc 2>/dev/null", _again),
    "file that grows": ("setsid bash -c 'while :; do echo x >> x; done' >/dev/null 2>&1 & sleep 0.05", _again),
    "full": ("head -c 100M /dev/zero > big", _again),
    "as many files as can be": ("touch $(seq 1000)", _again),
    "rights of another user": ("cp /bin/true s; chmod 6755 s; touch t; chmod 1777 t", _again),
    "gone": ("cd /; rm -rf /workspace; mv /workspace /tmp/w; rmdir /workspace", _again),
    "repository with traps": (
        "git init -q .; git config core.fsmonitor 'touch /tmp/evil'; ln -s /tmp .git/hooks/x; printf "
        "'[core]\\nsshCommand=x' > .gitconfig",
        _again,
    ),
}
ATTACKS: list[Attack] = [
    *requests("reading", "secret", _READS),
    *requests("writing", "outside", _WRITES),
    *requests("snapshots", "secret", _SNAPSHOTS),
]
