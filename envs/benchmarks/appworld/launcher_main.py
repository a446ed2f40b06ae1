"""Runs in AppWorld's own Python environment: imports AppWorld once, and forks for each episode and each grading.

    python -P -s launcher_main.py DATA SCRATCH CONFINED

DATA is AppWorld's folder ``data``, SCRATCH a folder for all that is written, CONFINED is 1 or 0. Requests are lines of
JSON on standard input, answers lines of JSON on standard output, ``{"value": ...}`` or ``{"error": TEXT}``; the first
says that AppWorld is imported. When standard input ends, every process and every file of this one ends with it. It
needs no other package than AppWorld.

An episode's process serves AppWorld's own environment server on a socket in the file system. It sees a folder of its
own, in which there is one task, without its ground truth; a grading's process reads everything, and runs no code of
the agent. A forked world is there in less than a second, where the imports alone take ten.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CONFINE = runpy.run_path(str(Path(__file__).with_name("confinement.py")))["confine"]
_READABLE = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_MEMORY = 4 << 30  # bytes of an episode's process
_LONGEST_FILE = 256 << 20
_LONGEST_OUTPUT = 1 << 20  # characters that cross to the agent's side, which shows fewer
_LONGEST_GRADE = 16 << 20
_PR_SET_PDEATHSIG = 1
_DATABASES = "outputs/*/tasks/*/dbs/*"
_RECORDED = ("INSERT", "UPDATE", "DELETE", "CREATE", "DROP")  # by AppWorld 0.1.3's model_lib.py


@dataclass
class _Episode:
    task: str
    folder: Path
    running: bool = True


class Launcher:
    """Answers requests; see ``main``.

    Args:
        data: AppWorld's folder ``data``.
        scratch: an empty folder for all that is written.
        confined: confine the processes of episodes and gradings.
    """

    def __init__(self, data: Path, scratch: Path, confined: bool):
        self._data, self._scratch, self._confined = data, scratch, confined
        self._episodes: dict[int, _Episode] = {}
        self._count = 0

    def play(self, task: str) -> dict[str, Any]:
        """Start an episode's process: its id, and the path of the socket on which it listens."""
        self._count += 1
        folder = self._scratch / str(self._count)
        self._lay_out(task, folder)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(folder / "socket"))
        listening.listen()
        pid = self._forked(lambda: self._serve(listening, folder), folder / "log", listening.fileno())
        listening.close()
        self._episodes[pid] = _Episode(task, folder)
        return {"pid": pid, "socket": str(folder / "socket")}

    def keep(self, pid: int) -> None:
        """Keep the state as it is, before the agent's code runs."""
        folder = self._episodes[pid].folder
        shutil.copytree(folder / "play" / "experiments", folder / "kept")

    def grade(self, pid: int, seconds: float) -> dict[str, Any]:
        """Run AppWorld's tests on the state that an episode's process last saved.

        Returns:
            ``record`` of the tests, or None with ``why`` if what was left cannot be graded, though the state that was
            kept can be; ``tampered``, why it cannot be a state that AppWorld has written, or "".
        """
        episode = self._stopped(pid)
        grade = self._judged(episode, episode.folder / "play" / "experiments", seconds)
        unclear = grade["record"] is None and not grade["tampered"]
        if unclear and self._judged(episode, episode.folder / "kept", seconds)["record"] is None:
            raise RuntimeError(grade["why"])
        return grade

    def _judged(self, episode: _Episode, experiments: Path, seconds: float) -> dict[str, Any]:
        folder = Path(tempfile.mkdtemp(dir=episode.folder))
        (folder / "data").symlink_to(self._data)
        (folder / "experiments").symlink_to(experiments)
        reading, writing = os.pipe()
        judge = self._forked(lambda: self._judge(episode, folder, experiments, writing), folder / "log", writing)
        os.close(writing)
        try:
            written, why = _all_of(reading, time.monotonic() + seconds)
        finally:
            os.close(reading)
            os.kill(judge, signal.SIGKILL)
            os.waitpid(judge, 0)
        tampered, _, record = written.partition(b"\n")
        verdict = {"tampered": json.loads(tampered or '""'), "record": None, "why": why}
        if why or not record:
            return {**verdict, "why": why or f"grading broke off: {_tail(folder / 'log')}"}
        return {**verdict, "record": json.loads(record)}

    def end(self, pid: int) -> None:
        """End an episode's process and remove its files."""
        shutil.rmtree(self._stopped(pid).folder, ignore_errors=True)
        del self._episodes[pid]

    def end_all(self) -> None:
        for pid in list(self._episodes):
            self.end(pid)

    def _stopped(self, pid: int) -> _Episode:
        episode = self._episodes[pid]
        if episode.running:
            os.kill(pid, signal.SIGKILL)  # not collected before, so the id is still its own
            os.waitpid(pid, 0)
            episode.running = False
        return episode

    def _lay_out(self, task: str, folder: Path) -> None:
        """AppWorld's folder as an episode sees it."""
        here, there = folder / "play" / "data", self._data / "tasks" / task
        (here / "tasks" / task).mkdir(parents=True)
        for name in ("base_dbs", "api_docs"):
            (here / name).symlink_to(self._data / name)
        shutil.copy(there / "specs.json", here / "tasks" / task)
        shutil.copytree(there / "dbs", here / "tasks" / task / "dbs")
        startup = folder / "play" / ".ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        (startup / "README").touch()  # IPython would copy it, and its mode, which a confined process cannot set

    def _forked(self, run: Callable[[], object], log: Path, inherited: int) -> int:
        """A process that has no open file of this one but ``inherited``, least of all the one for answers."""
        parent = os.getpid()
        if pid := os.fork():
            return pid
        try:
            _die_with(parent)
            nothing, logged = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
            for number, descriptor in enumerate((nothing, logged, logged)):
                os.dup2(descriptor, number)
            os.closerange(3, inherited)
            os.closerange(inherited + 1, os.sysconf("SC_OPEN_MAX"))
            run()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _enter(self, folder: Path, readable: list[Path], writable: list[str]) -> None:
        """Make a folder this process's AppWorld, with no variables but its own, and confine the process."""
        variables = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONHASHSEED") if name in os.environ}
        os.environ.clear()  # AppWorld has read a .env file from the folders above its own
        os.environ.update(variables, APPWORLD_ROOT=str(folder), APPWORLD_CACHE=str(folder), HOME=str(folder))
        os.environ["TMPDIR"] = str(folder)
        os.chdir(folder)
        if self._confined:
            read = [sys.prefix, sys.base_prefix, *_READABLE, *_DEVICES, *map(str, readable)]
            _CONFINE(read, writable, _MEMORY, _LONGEST_FILE)

    def _serve(self, listening: socket.socket, folder: Path) -> None:
        uvicorn = importlib.import_module("uvicorn")
        environment = importlib.import_module("appworld.serve.environment")
        place = folder / "play"
        self._enter(place, [self._data / "base_dbs", self._data / "api_docs"], [str(place)])
        _tame(environment.AppWorld)
        uvicorn.Server(uvicorn.Config(environment.app, log_level="warning")).run(sockets=[listening])

    def _judge(self, episode: _Episode, folder: Path, experiments: Path, writing: int) -> None:
        evaluator = importlib.import_module("appworld.evaluator")
        here = Path(__file__)  # a failing test quotes the source of everything on the stack
        saved = episode.folder / "kept"
        self._enter(folder, [self._data, folder, experiments, saved, here], [])
        with os.fdopen(writing, "w") as file:
            file.write(json.dumps(_forged(saved, experiments)) + "\n")
            file.flush()
            if not all(_plain(path) for path in experiments.glob(_DATABASES)):
                return  # whoever reads it may wait for ever
            tracker = evaluator.evaluate_task(episode.task, suppress_errors=True, save_report=False)
            json.dump(tracker.to_dict(), file)


class _TimeOver(BaseException):
    """AppWorld's own time limit is an Exception, and comes once: code in a loop that catches those goes on."""


def _tame(world: Any) -> None:
    """Keep what code prints, raises or swallows from breaking AppWorld's server; keep no logs of it."""
    execute = world.execute

    def time_over(*_: object) -> None:
        raise _TimeOver

    def tamed(self: Any, code: str) -> str:
        signal.signal(signal.SIGPROF, time_over)
        signal.setitimer(signal.ITIMER_PROF, self.timeout_seconds + 2, 1)
        try:
            text = execute(self, code)
        except BaseException as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            # AppWorld's guard is still up and the state not saved. What fails again is no fault of the code.
            execute(self, "pass")
            text = f"Execution failed. Traceback:\n{_error_text(error, self.timeout_seconds)}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if len(text) > _LONGEST_OUTPUT:
            half = _LONGEST_OUTPUT // 2
            text = f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"
        return text.encode("utf-8", "backslashreplace").decode()

    world.execute, world.save_logs = tamed, lambda self: None


def _error_text(error: BaseException, seconds: int) -> str:
    if isinstance(error, _TimeOver):
        return f"Exception: Execution timed out after {seconds} seconds."
    return f"{type(error).__name__}: {str(error)[:1000]}".removesuffix(": ")


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _forged(before: Path, after: Path) -> str:
    """The reason for which AppWorld cannot have written the databases of a state; "" if there is none.

    Args:
        before, after: folders ``experiments``, as AppWorld left it and as the agent's process did.
    """
    kinds = {path.suffix for path in before.glob(_DATABASES)}
    for path in sorted(after.glob(_DATABASES)):
        if not _plain(path):
            return f"{path.name!r:.100} is no plain file"
        if path.suffix not in kinds:
            return f"{path.name!r:.100} is of a kind that AppWorld does not write"
        if path.suffix == ".jsonl" and (line := _foreign(path)):
            return f"{path.name} has a line that AppWorld does not record: {line!r:.100}"
    return ""


def _plain(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _foreign(changes: Path) -> str:
    """The first line that is no statement as AppWorld records them with its parameters; "" if all are."""
    for line in changes.read_text("utf-8", "replace").splitlines():
        try:
            statement, parameters, many = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            return line or "an empty one"
        is_recorded = isinstance(statement, str) and statement.strip().upper().startswith(_RECORDED)
        if not is_recorded or not isinstance(parameters, list | dict) or not isinstance(many, bool):
            return line
    return ""


def _all_of(reading: int, until: float) -> tuple[bytes, str]:
    """The bytes written to a pipe, and the reason for which they are incomplete; "" if they are not."""
    written = bytearray()
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        chunk = os.read(reading, 65536)
        if not chunk:
            return bytes(written), ""
        written += chunk
        if len(written) > _LONGEST_GRADE:
            return bytes(written), f"the grade is longer than {_LONGEST_GRADE} bytes"
    return bytes(written), "grading took too long"


def _tail(log: Path) -> str:
    return log.read_bytes()[-2000:].decode(errors="replace").strip()


def _import_appworld() -> None:
    """All that episodes and gradings need; it starts no thread, so that this process can fork."""
    for name in ("uvicorn", "appworld.serve.environment", "appworld.evaluator"):
        importlib.import_module(name)
    for app in importlib.import_module("appworld.apps").get_all_apps():
        importlib.import_module(f"appworld.apps.{app}.apis")


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what AppWorld prints is no answer

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    data, scratch, confined = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "1"
    try:
        _import_appworld()
    except Exception as error:
        answer(error=f"AppWorld could not be imported: {type(error).__name__}: {error}")
        return
    gc.freeze()  # what a collection would touch, every process would have a copy of
    launcher = Launcher(data, scratch, confined)
    answer(value=os.getpid())
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer(value=getattr(launcher, request.pop("op"))(**request))
        except Exception as error:
            answer(error=f"{type(error).__name__}: {error}")
    launcher.end_all()
    shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
