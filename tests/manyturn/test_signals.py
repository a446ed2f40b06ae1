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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import plugin_package
import pytest

TRAPS = Path(__file__).parents[1] / "envs" / "traps.py"
START = "from manyturn.cli.app import main; main()"
HASTY = "from manyturn.envs.hosting.local.shutdown_watchdog import watchdog; watchdog.patience = 0.5; "
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
    "compare": ("compare evaluation evaluation", "panel.json"),
    "report": ("report evaluation", "panel.json"),
    "seeds": ("seeds evaluation another", "panel.json"),
    "panel verify": (f"panel verify evaluation/panel.json --env {TRAPS}:Calm", "panel.json"),
    "recipes": ("recipes recipe.toml", "recipe.toml"),
    "data webshop": ("data webshop .", "items_shuffle_1000.json"),
    "containers": ("containers check", "engine"),
    "evaluate openai": (f"evaluate openai:m --env {TRAPS}:Calm --endpoint.base-url URL", "endpoint"),
    "evaluate FILE.py:policy": (f"evaluate policy.py:policy --env {TRAPS}:Calm", "policy"),
    "envs": ("envs", "plugin"),
    "data software": ("data software", "index"),
    "images build": ("images build", "engine"),
    "view": ("view evaluation", "nothing"),
}
# Held up in this process by somebody's code, which hears of no signal: the first has to wait for its patience.
# The others wait where one of these does.
USUAL = ("train", "evaluate in workers", "check", "containers", "evaluate openai")
CALLED = ("evaluate", "evaluate, in C", "play")
STUBBORN = ("train", "evaluate", "evaluate, in C", "evaluate FILE.py:policy", "play")
SPIN = "from pathlib import Path\nimport time\nPath('mark').touch()\nwhile True:\n    time.sleep(1)\n"
POLICY = "def policy(observation, info):\n" + "".join(f"    {line}\n" for line in SPIN.splitlines())


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextlib.contextmanager
def held_up(name: str, folder: Path, start: str = START) -> Iterator[subprocess.Popen]:
    """The command, when it is held up."""
    words, by = HELD_UP[name]
    mark = folder / "mark"
    environment = {**os.environ, "MANYTURN_TEST_MARK": str(mark), "MANYTURN_CACHE": str(folder / "cache")}
    with contextlib.ExitStack() as stack:
        if by in FILES:
            file = _evaluation(folder / "evaluation") if by == "panel.json" else folder / by
            file.write_text("{}")
            stack.enter_context(_nobody_may_open(file, mark))
        server = stack.enter_context(_silent_server(by, folder, environment)) if by in SERVERS else None
        _write(by, folder, environment)
        options = [*map(str, TINY)] if name == "train" else []
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", start, *words.replace("URL", environment.get("URL", "")).split(), *options],
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
        if server is not None:
            stack.enter_context(server.accept()[0])
        elif by == "nothing":
            with _opener.open(child.stdout.readline().split()[1].partition("#")[0]) as page:
                assert page.status == 200
        else:
            _wait(child, mark)
        yield child


FILES = ("panel.json", "recipe.toml", "items_shuffle_1000.json")
SERVERS = ("engine", "endpoint", "index")


@contextlib.contextmanager
def _silent_server(kind: str, folder: Path, environment: dict[str, str]) -> Iterator[socket.socket]:
    """A server that takes a connection and never says a word, and the variables by which it is found."""
    family = socket.AF_UNIX if kind == "engine" else socket.AF_INET
    with socket.socket(family) as server:
        server.bind(str(folder / "engine") if kind == "engine" else ("127.0.0.1", 0))
        server.listen()
        server.settimeout(60)
        url = f"unix://{folder}/engine" if kind == "engine" else f"http://127.0.0.1:{server.getsockname()[1]}/simple"
        environment["URL"] = url
        if kind != "endpoint":
            environment["DOCKER_HOST" if kind == "engine" else "PIP_INDEX_URL"] = url
        yield server


def _write(kind: str, folder: Path, environment: dict[str, str]) -> None:
    """What else has to be there: the code that holds a command up, or the second of two files."""
    if kind == "policy":
        (folder / "policy.py").write_text(POLICY)
    elif kind == "items_shuffle_1000.json":
        (folder / "items_ins_v2_1000.json").write_text("{}")
    elif kind == "plugin":
        site = plugin_package.install(folder / "site", "spinning", SPIN)
        environment["PYTHONPATH"] = os.pathsep.join([str(site), environment.get("PYTHONPATH", "")])


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


def usual_first(names: Iterable[str]) -> list[Any]:
    """Each as a parameter; what waits where one of the usual ones does belongs to the slow tests."""
    return [name if name in USUAL else pytest.param(name, marks=pytest.mark.slow) for name in names]


def status(child: subprocess.Popen) -> int:
    """As a shell shows it."""
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


@pytest.mark.deep
@pytest.mark.parametrize("name", usual_first(name for name in HELD_UP if name not in STUBBORN and "asleep" not in name))
def test_one_sigterm_ends_a_command_that_is_held_up(name, tmp_path):
    with held_up(name, tmp_path) as child:
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=60)
    assert status(child) == 143
    assert "Traceback" not in err and "never retrieved" not in err and "nothing answered" not in err


def twice(stop: signal.Signals, name: str, folder: Path) -> int:
    """The status of a command that is held up and gets a signal twice."""
    with held_up(name, folder) as child:
        child.send_signal(stop)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.3)
        child.send_signal(stop)
        _, err = child.communicate(timeout=60)
    assert "Traceback" not in err and "never retrieved" not in err
    return status(child)


@pytest.mark.deep
@pytest.mark.parametrize("name", usual_first(STUBBORN))
def test_two_sigterms_end_a_command_that_is_held_up(name, tmp_path):
    assert twice(signal.SIGTERM, name, tmp_path) == 143


@pytest.mark.parametrize("name", ["check", *(pytest.param(name, marks=pytest.mark.slow) for name in CALLED)])
def test_ctrl_c_twice_is_told_from_sigterm(name, tmp_path):
    assert twice(signal.SIGINT, name, tmp_path) == 130


@pytest.mark.deep
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_is_enough_when_nothing_answers(stop, tmp_path):
    with held_up("evaluate", tmp_path, HASTY + START) as child:
        child.send_signal(stop)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + stop
    assert err == f"manyturn: {stop.name}: nothing answered in time, so the command was ended immediately\n"


@pytest.mark.deep
@pytest.mark.parametrize(("name", "words"), [("evaluate, asleep", "for 3 s (traps.py, line"), ("play, asleep", "")])
def test_one_ctrl_c_ends_what_waits_in_this_process_within_seconds_and_says_where(name, words, tmp_path):
    with held_up(name, tmp_path) as child:
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 130 and words in err
    assert err.count("SIGINT") <= 1 and "Traceback" not in err
