"""A container as the machine's kernel shows it from outside: processes, their rights and objects, what they use."""

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PLACES = ("workspace", "tmp", "dev/shm")
_IMAGE = (
    "/ /bin/bash /bin/sh /dev /etc /etc/bash.bashrc /etc/cron.d /etc/hostname /etc/hosts /etc/ld.so.preload "
    "/etc/passwd "
    "/etc/profile /etc/profile.d /etc/resolv.conf /etc/shadow /home /mnt /opt /root /run /run/lock /srv /usr/bin "
    "/usr/bin/git /usr/bin/python3 /usr/lib/python3/dist-packages /usr/local/sbin /var/spool /var/tmp"
).split()
_PLAIN_DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}
_PLAIN_SOCKETS = ("UNIX", "TCP", "UDP", "MPTCP", "PING", "NETLINK")
_SPECIAL = ("io_uring", "bpf", "userfaultfd", "perf_event", "fanotify", "secretmem", "kcore", "kmsg", "fscontext")


class Used(NamedTuple):
    """By a container: bytes at most so far, processes at the moment, seconds of processor so far."""

    memory: int
    processes: int
    processor: float


class Inside:
    """Reads about a running container.

    Attributes:
        pid: of its first process, as this machine counts.
        agent: user id of the agent's commands.
    """

    def __init__(self, pid: int, agent: int) -> None:
        self.pid, self.agent, self.root = pid, agent, Path(f"/proc/{pid}/root")
        self._groups = {name: _group(pid, name) for name in ("memory", "pids", "cpuacct")}
        self._first = Path(f"/proc/{pid}/cmdline").read_bytes()

    def processes(self) -> list[int]:
        """All but the first."""
        return [pid for pid in map(int, _text(self._groups["pids"] / "cgroup.procs").split()) if pid != self.pid]

    def agents(self) -> list[int]:
        """All that run something else than the first, which is copied for a moment before each command."""
        return [pid for pid in self.processes() if _bytes(Path(f"/proc/{pid}/cmdline")) not in (self._first, b"")]

    def used(self) -> Used:
        memory, cpu = self._groups["memory"], self._groups["cpuacct"]
        peak = _text(memory / "memory.max_usage_in_bytes") or _text(memory / "memory.peak") or "0"
        spent = int(_text(cpu / "cpuacct.usage") or 0) / 1e9
        for line in _text(cpu / "cpu.stat").splitlines():
            spent = int(line.split()[1]) / 1e6 if line.startswith("usage_usec") else spent
        return Used(int(peak), int(_text(self._groups["pids"] / "pids.current") or 0), spent)

    def rooms(self) -> dict[str, tuple[int, int]]:
        """Place -> bytes and inodes that are taken."""
        found = {place: os.statvfs(self.root / place) for place in PLACES}
        return {name: ((x.f_blocks - x.f_bfree) * x.f_frsize, x.f_files - x.f_ffree) for name, x in found.items()}

    def image(self) -> dict[str, tuple[int, ...] | None]:
        """Paths of the image that nobody has a reason to change -> their state."""
        return {path: _state(self.root / path[1:]) for path in _IMAGE}

    def network(self) -> dict[str, str]:
        """Devices, routes and addresses; counters left out."""
        devices = [line.split(":")[0].strip() for line in _text(Path(f"/proc/{self.pid}/net/dev")).splitlines()[2:]]
        rest = {name: _text(Path(f"/proc/{self.pid}/net/{name}")) for name in ("route", "fib_trie", "if_inet6")}
        return {"devices": " ".join(sorted(devices)), **rest}

    def entries(self) -> list[str]:
        """Names in the places that an agent can write to."""
        return [f"/{place}/{name}" for place in PLACES for name in os.listdir(self.root / place)]

    def look(self) -> set[str]:
        """What no process of an agent's may be or have, where one is or has it."""
        found: set[str] = set()
        for pid in self.agents():
            with contextlib.suppress(OSError, ValueError):  # it may end at any moment
                found |= _rights(pid, self.agent) | self._namespaces(pid) | _objects(pid)
        with contextlib.suppress(OSError):
            if "\nTracerPid:\t0\n" not in Path(f"/proc/{self.pid}/status").read_text():
                found.add("rights: the first process is traced")
        return found

    def _namespaces(self, pid: int) -> set[str]:
        names = os.listdir(f"/proc/{self.pid}/ns")
        moved = [n for n in names if os.readlink(f"/proc/{pid}/ns/{n}") != os.readlink(f"/proc/{self.pid}/ns/{n}")]
        roots = [os.readlink(f"/proc/{one}/root") for one in (pid, self.pid)]
        return {f"namespace: {name}" for name in moved} | ({"namespace: root"} if roots[0] != roots[1] else set())


class Watching:
    """Looks again and again, in a thread, for as long as the block runs.

    Attributes:
        found: of all looks together.
        processes: the most at once.
    """

    def __init__(self, inside: Inside, pause: float = 0.03) -> None:
        self._inside, self._pause, self._over = inside, pause, threading.Event()
        self.found: set[str] = set()
        self.processes = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Watching":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._pause):
            with contextlib.suppress(OSError):
                self.found |= self._inside.look()
                self.processes = max(self.processes, self._inside.used().processes)


def kernel_log() -> bytes:
    """All of it, if this process may read it."""
    buffer = ctypes.create_string_buffer(1 << 18)
    count = ctypes.CDLL(None).klogctl(3, buffer, len(buffer))
    return buffer.raw[: max(count, 0)]


_SETTINGS = (
    "kernel/core_pattern kernel/modprobe kernel/hostname kernel/domainname kernel/pid_max kernel/randomize_va_space "
    "fs/file-max fs/binfmt_misc/x net/ipv4/ip_forward vm/overcommit_memory"
).split()


def machine() -> dict[str, str]:
    """What stays the same of this machine, whatever happens in a sandbox."""
    found = {name: _text(Path("/proc/sys") / name) for name in _SETTINGS}
    found |= {path: _text(Path(path)) for path in ("/proc/irq/default_smp_affinity", "/sys/kernel/uevent_helper")}
    found["clock"] = str(round((time.time() - time.monotonic()) / 2))
    found["key of the kernel's"] = str(kernel_log().count(b"sysrq: "))
    return found


def _group(pid: int, controller: str) -> Path:
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return Path("/sys/fs/cgroup", controller, path[1:])
    return Path("/sys/fs/cgroup", path[1:])


def _rights(pid: int, agent: int) -> set[str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    users = {*status["Uid"].split(), *status["Gid"].split()}
    wrong = {
        "a user or group of somebody else's": users != {str(agent)},
        "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapAmb"], 16) != 0,
        "new privileges": status["NoNewPrivs"] != "1",
        "unfiltered calls": status["Seccomp"] not in ("2", "3"),  # 3: killed by the filter
    }
    return {f"rights: {name}" for name, holds in wrong.items() if holds}


def _objects(pid: int) -> set[str]:
    found = set()
    for path in _links(pid):
        target = os.readlink(path)
        if any(name in target for name in _SPECIAL) or (
            target.startswith("/dev/")
            and target[5:] not in _PLAIN_DEVICES
            and not target.startswith(("/dev/shm", "/dev/pts"))
        ):
            found.add(f"object: {target}")
        elif target.startswith("socket:"):
            protocol = os.getxattr(path, "system.sockprotoname").decode().strip("\0")
            if not protocol.startswith(_PLAIN_SOCKETS):
                found.add(f"object: socket of {protocol}")
    return found


def _links(pid: int) -> Iterator[str]:
    for number, name in enumerate(os.listdir(f"/proc/{pid}/fd")):
        if number < 64:
            yield f"/proc/{pid}/fd/{name}"


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_uid, found.st_nlink


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
