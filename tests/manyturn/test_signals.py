"""Two signals must end any command within seconds, whatever holds it up, and its exit code must say which."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

TRAPS = Path(__file__).parents[1] / "envs" / "traps.py"
START = "from manyturn.cli import main; main()"
HASTY = "from manyturn.envs.hosting.watchdog import watchdog; watchdog.patience = 0.5; "
TINY = ("--model.width", 16, "--model.layers", 1, "--model.heads", 2, "--steps", 0, "--warmup.episodes", 0)
# The command, and what holds it up: an environment that shows it by a file, or something it reads that never comes.
HELD_UP = {
    "train": (f"train {TRAPS}:Spins", "environment"),
    "evaluate": (f"evaluate random --env {TRAPS}:Spins", "environment"),
    "evaluate, in C": (f"evaluate random --env {TRAPS}:Freezes", "environment"),
    "evaluate in workers": (f"evaluate random --env {TRAPS}:Sleeps --workers 1", "environment"),
    "evaluate, asleep": (f"evaluate random --env {TRAPS}:Sleeps", "environment"),
    "play, asleep": (f"play {TRAPS}:Sleeps", "environment"),
    "check": (f"check {TRAPS}:Freezes", "environment"),
    "envs --long": (f"envs --long {TRAPS}:Sleeps", "environment"),
    "play": (f"play {TRAPS}:Spins", "environment"),
    "panel make": (f"panel make {TRAPS}:Unready", "environment"),
    "compare": ("compare evaluation evaluation", "file"),
    "report": ("report evaluation", "file"),
    "containers": ("containers check", "engine"),
    "view": ("view evaluation", "nothing"),
}


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextlib.contextmanager
def held_up(name: str, folder: Path, start: str = START) -> Iterator[subprocess.Popen]:
    """The command, when it is held up."""
    words, by = HELD_UP[name]
    mark = folder / "mark"
    environment = {**os.environ, "MANYTURN_TEST_MARK": str(mark)}
    with contextlib.ExitStack() as stack:
        if by == "file":
            stack.enter_context(_nobody_may_open(_evaluation(folder / "evaluation"), mark))
        elif by == "engine":
            engine = stack.enter_context(socket.socket(socket.AF_UNIX))
            engine.bind(str(folder / "engine"))
            engine.listen()
            engine.settimeout(60)
            environment["DOCKER_HOST"] = f"unix://{folder}/engine"
        options = [*map(str, TINY)] if name == "train" else []
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", start, *words.split(), *options],
            cwd=folder,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        stack.callback(child.communicate)
        stack.callback(child.kill)
        if name.startswith("play"):
            child.stdin.write("wait\n")
            child.stdin.flush()
        if by in ("environment", "file"):
            _wait(child, mark)
        elif by == "engine":
            stack.enter_context(engine.accept()[0])
        else:
            with _opener.open(child.stdout.readline().split()[1].partition("#")[0]) as page:
                assert page.status == 200
        yield child


def _evaluation(folder: Path) -> Path:
    """The folder of an evaluation as far as it is looked at; returns the file that is read first."""
    folder.mkdir()
    for name in ("manifest.json", "summary.json", "panel.json"):
        (folder / name).write_text("{}")
    return folder / "panel.json"


@contextlib.contextmanager
def _nobody_may_open(file: Path, mark: Path) -> Iterator[None]:
    """Holds up whoever opens a file, as a network that is gone would."""
    before = signal.signal(signal.SIGIO, lambda number, frame: mark.touch())
    with file.open("r+") as held:
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        try:
            yield
        finally:
            signal.signal(signal.SIGIO, before)


def _wait(child: subprocess.Popen, mark: Path) -> None:
    deadline = time.monotonic() + 60
    while not mark.exists():
        assert child.poll() is None and time.monotonic() < deadline, child.communicate()
        time.sleep(0.02)
    time.sleep(0.1)


def status(child: subprocess.Popen) -> int:
    """As a shell shows it."""
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


@pytest.mark.parametrize("name", [name for name in HELD_UP if "asleep" not in name])
def test_two_sigterms_end_a_command_that_is_held_up(name, tmp_path):
    with held_up(name, tmp_path) as child:
        child.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.3)
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=15)
    assert status(child) == 143
    assert "Traceback" not in err and "never retrieved" not in err


@pytest.mark.parametrize("name", ["evaluate", "evaluate, in C", "check", "play"])
def test_ctrl_c_twice_is_told_from_sigterm(name, tmp_path):
    with held_up(name, tmp_path) as child:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.3)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=15)
    assert status(child) == 130
    assert "Traceback" not in err


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_is_enough_when_nothing_answers(stop, tmp_path):
    with held_up("evaluate", tmp_path, HASTY + START) as child:
        child.send_signal(stop)
        _, err = child.communicate(timeout=15)
    assert child.returncode == 128 + stop
    assert err == f"manyturn: {stop.name}: nothing answered in time, so the command was ended immediately\n"


@pytest.mark.parametrize(("name", "words"), [("evaluate, asleep", "for 3 s (traps.py, line"), ("play, asleep", "")])
def test_one_ctrl_c_ends_what_waits_in_this_process_within_seconds_and_says_where(name, words, tmp_path):
    with held_up(name, tmp_path) as child:
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=15)
    assert child.returncode == 130 and words in err
    assert err.count("SIGINT") <= 1 and "Traceback" not in err


def test_a_server_ends_at_the_first_signal(tmp_path):
    with held_up("view", tmp_path) as child:
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=15)
    assert (child.returncode, err) == (143, "")
