"""Where attacks are made: a sandbox, its neighbour, and a host that listens and holds secrets."""

import contextlib
import os
import platform
import secrets
import select
import shutil
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attacks import Attack
from attacks_signs import Seen
from attacks_watch import Inside, Watching, kernel_log, machine

from manyturn.containers.engine.container_engine import client
from manyturn.containers.sandbox import Sandbox, SandboxLimits, SandboxLost, SandboxRefused
from manyturn.terminal.escape import visible

LIMITS = SandboxLimits(memory_mb=128, cpus=1.0, processes=32, workspace_mb=8, scratch_mb=8, files=500)
_NEIGHBOUR = "neighbour.txt"
# Besides its file it needs what the kernel counts by user: a timer and an instance of inotify.
_NEEDS = "cat {file} && perl -e 'my $timer = pack q(i), 0; my @calls = {calls};"
_NEEDS += " syscall($calls[0], 1, 0, $timer) == 0 and syscall($calls[1], 0) >= 0 or print q(refused), $!'"
_CALLS = {"x86_64": "(222, 294)", "aarch64": "(107, 26)"}


def canary() -> str:
    """A secret that is easily found."""
    return f"canary-{secrets.token_hex(16)}"


class Host:
    """A file with a secret, and sockets that nobody should find.

    Attributes:
        environ: what attacks are told of it.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="canary-", dir="/var/tmp"))
        self.file, self.secret = self.folder / "canary.txt", canary()
        self.file.write_text(self.secret)
        self.log_secret = canary()
        with contextlib.suppress(OSError):
            Path("/dev/kmsg").write_text(self.log_secret)
        self._sockets = {"TCP": socket.create_server(("127.0.0.1", 0))}
        port = self._sockets["TCP"].getsockname()[1]
        with contextlib.suppress(OSError):
            self._sockets["TCP 6"] = socket.create_server(("::1", port), family=socket.AF_INET6)
        udp = self._sockets["UDP"] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        abstract = f"canary-{secrets.token_hex(4)}"
        for name, address in (("path", str(self.folder / "s")), ("abstract", f"\0{abstract}")):
            self._sockets[name] = socket.socket(socket.AF_UNIX)
            self._sockets[name].bind(address)
            self._sockets[name].listen()
        self.environ = {
            "CANARY": str(self.file),
            "PORT": str(port),
            "UDP_PORT": str(udp.getsockname()[1]),
            "HOSTS": _address(),
            "UNIX": str(self.folder / "s"),
            "ABSTRACT": abstract,
        }

    def contacts(self) -> list[str]:
        """Who was reached since the last call."""
        found = []
        while ready := select.select(list(self._sockets.values()), [], [], 0)[0]:
            for one in ready:
                found += [name for name, listener in self._sockets.items() if listener is one]
                if one.type == socket.SOCK_DGRAM:
                    one.recv(4096)
                else:
                    one.accept()[0].close()
        return found

    def changes(self) -> list[str]:
        """What became of the file since the last call, which is then made anew."""
        found = sorted(path.name for path in self.folder.iterdir())
        good = found == ["canary.txt", "s"] and self.file.read_text() == self.secret
        self.file.write_text(self.secret)
        return [] if good else [f"host: the folder holds {found}, or another text"]

    def close(self) -> None:
        for one in self._sockets.values():
            one.close()
        shutil.rmtree(self.folder)


class Neighbour:
    """A sandbox that runs, with a secret in its workspace."""

    def __init__(self, box: Sandbox) -> None:
        self.secret, self._box = canary(), box
        box.write(_NEIGHBOUR, self.secret.encode())

    def answers(self) -> bool:
        """Rightly."""
        try:
            needs = _NEEDS.format(file=_NEIGHBOUR, calls=_CALLS[platform.machine()])
            return self._box.run(needs).output == self.secret
        except SandboxLost:
            return False


class Asking:
    """Asks the neighbour for its secret, again and again, in a thread, for as long as the block runs.

    Attributes:
        seconds: until each answer; infinite for one that was wrong, or did not come.
    """

    def __init__(self, neighbour: Neighbour) -> None:
        self._neighbour, self._over = neighbour, threading.Event()
        self.seconds: list[float] = []
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self.seconds or not self._over.wait(0.05):
            began = time.monotonic()
            good = self._neighbour.answers()
            self.seconds.append(time.monotonic() - began if good else float("inf"))
            if not good:
                return


class Scene:
    """Makes attacks, one after the other, on the same sandbox while it answers.

    Args:
        make: a sandbox that has not been started.
        neighbour: the sandbox beside it.
        show: how output is printed.
        reports: whether the sandbox knows of reports, and answers alike each time.

    Attributes:
        lost: how many sandboxes were given up.
    """

    def __init__(
        self,
        host: Host,
        make: Callable[[], Any],
        neighbour: Neighbour,
        show: Callable[[str], str] = visible,
        reports: bool = True,
    ) -> None:
        self.host, self.lost = host, 0
        self._make, self._neighbour, self._show, self._reports = make, neighbour, show, reports
        self._box: Any = None

    def close(self) -> None:
        if self._box is not None:
            self._box.stop()

    def observe(self, attack: Attack) -> Seen:
        """Make an attack and see what comes of it."""
        self._open()
        secret, mark = canary(), f"mark-{secrets.token_hex(8)}"
        seen = Seen(attack, mark, LIMITS, self._secrets(secret))
        environ = {**self.host.environ, "MARK": mark}
        inside, before = self._inside, (machine(), self._inside.image(), self._inside.network())
        try:
            self._box.run("true", environ={"EARLIER": secret})
            with Watching(inside) as watching, Asking(self._neighbour) as asking:
                self._run(seen, environ)
                self._request(seen)
            seen.found, seen.neighbour = watching.found, asking.seconds
            seen.processes = max(watching.processes, inside.used().processes)
            seen.changed = _differences(before, (machine(), inside.image(), inside.network()))
            self._ask_honestly(seen)
            self._next_episode(seen, environ)
        except SandboxLost as lost:
            seen.lost = str(lost)
            self._check_lost(seen)
        seen.contacts = self.host.contacts()
        seen.changed += self.host.changes()
        if mark.encode() in kernel_log():
            seen.changed.append("host: the kernel's log holds the mark")
        return seen

    def _open(self) -> None:
        if self._box is not None:
            return
        self._box = self._make()
        self._box.start()
        self._inside = Inside(client().inspect_container(self._box.name)["State"]["Pid"], self._box.agent)
        self._empty = self._box.snapshot()

    def _secrets(self, earlier: str) -> dict[str, str]:
        return {
            "the host's file": self.host.secret,
            "the kernel's log": self.host.log_secret,
            "the neighbour's file": self._neighbour.secret,
            "the variable of an earlier command": earlier,
            "the nonce of the tool server": getattr(self._box, "_nonce", earlier),
            "the list of passwords": (self._inside.root / "etc/shadow").read_text().splitlines()[0],
        }

    def _run(self, seen: Seen, environ: dict[str, str]) -> None:
        attack, began, spent = seen.attack, time.monotonic(), self._inside.used().processor
        if not attack.script:
            return
        try:
            seen.ran = self._box.run(attack.script, seconds=attack.seconds, environ=environ)
        except SandboxRefused as refused:
            seen.answers.append(str(refused))
        seen.seconds = time.monotonic() - began
        used = self._inside.used()
        seen.memory, seen.rooms = used.memory, self._inside.rooms()
        seen.processor = (used.processor - spent) / seen.seconds
        seen.left = [Path(f"/proc/{pid}/cmdline").read_text() for pid in self._inside.agents()]
        if seen.ran is not None:
            seen.answers.append(seen.ran)
            seen.screen = self._show(seen.ran.output)

    def _request(self, seen: Seen) -> None:
        if seen.attack.request is None:
            return
        try:
            seen.answers.append(seen.attack.request(self._box))
        except (SandboxRefused, ValueError) as refused:
            seen.answers.append(str(refused))
        seen.outside = _brought(self._inside)

    def _ask_honestly(self, seen: Seen) -> None:
        """A sandbox that answers has to answer rightly."""
        word = secrets.token_hex(8)
        report = f"; printf {word} >&3" if self._reports else ""
        for _ in range(2):
            ran = self._box.run(f"printf {word}{report}; exit 7", **({"report": True} if self._reports else {}))
            if (ran.status, ran.output, ran.report.decode()) != (7, word, word if self._reports else ""):
                seen.wrong.append(f"asked for {word} and 7, heard {ran}")

    def _next_episode(self, seen: Seen, environ: dict[str, str]) -> None:
        try:
            self._box.restore(self._empty)
            seen.behind = self._inside.entries()
            if self._inside.agents():
                seen.left.append("a process outlived the episode")
            if self._reports:
                self._box.write("a/b", b"c")
                if self._box.read("a/b") != b"c":
                    seen.wrong.append("a file does not hold what was written")
            if seen.attack.probe:
                seen.probed = self._box.run(seen.attack.probe, environ={"MARK": seen.mark}, seconds=5.0).output
                seen.answers.append(seen.probed)
            self._box.restore(self._empty)
        except SandboxRefused as refused:
            seen.wrong.append(f"the next episode: {refused}")

    def _check_lost(self, seen: Seen) -> None:
        """A sandbox is lost for good: it has no container any more, and says so to all who ask."""
        self.lost += 1
        name, self._box = self._box.name, None
        for _ in range(50):
            if not client().containers(all=True, filters={"name": name}):
                return
            time.sleep(0.1)
        seen.wrong.append("the container of a lost sandbox is still there")


def _differences(before: tuple[dict, ...], after: tuple[dict, ...]) -> list[str]:
    names = ("host", "image", "interfaces")
    found = [
        f"{name}: {what} was {then[what]!r} and is {since[what]!r}"[:200]
        for name, then, since in zip(names, before, after, strict=True)
        for what in then
        if then[what] != since[what]
    ]
    if before[2]["devices"] != "lo":
        found.append(f"interfaces: {before[2]['devices']}")
    return found


def _brought(inside: Inside) -> list[str]:
    """What requests must not bring about: files beside the workspace, and in it what only root can make."""
    root, found = inside.root, []
    for place in ("", "tmp", "dev/shm", "etc"):
        found += [f"/{place}/{name}" for name in os.listdir(root / place) if "evil" in name]
    for place in ("tmp", "dev/shm"):
        victim = root / place / "victim"
        if victim.is_file() and not victim.is_symlink() and victim.read_bytes() != b"intact\n":
            found.append(f"/{place}/victim was changed")
    for path, state in _walk(root / "workspace"):
        if state.st_uid != inside.agent or stat.S_ISBLK(state.st_mode) or stat.S_ISCHR(state.st_mode):
            found.append(f"{path} belongs to {state.st_uid}, mode {state.st_mode:o}")
    return found


def _walk(top: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Down to a depth at which nothing new is to be expected."""
    for folder, folders, files in os.walk(top):
        if folder.count("/") > 60:
            folders.clear()
        for name in (*folders, *files):
            with contextlib.suppress(OSError):
                yield name, os.lstat(os.path.join(folder, name))


def _address() -> str:
    """This machine's own, to which nothing is sent here."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(s.getsockname()[0])
