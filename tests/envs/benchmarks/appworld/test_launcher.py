"""Episodes in processes of their own: none is left behind, none reaches another's, and what breaks is never a grade."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyturn.envs.benchmarks import engine_process
from manyturn.envs.benchmarks.appworld import launcher as module
from manyturn.envs.benchmarks.appworld.launcher import Launcher, shared
from manyturn.envs.benchmarks.appworld.server_client import AgentBroke, AppWorldError, Grade
from manyturn.envs.benchmarks.appworld.world import ForkedWorld

pytestmark = pytest.mark.usefixtures("confinable")


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files."""
    folder = Path(tempfile.mkdtemp(prefix="t"))  # pytest's own may be too long for sockets
    monkeypatch.setattr(module.tempfile, "tempdir", str(folder))
    yield folder
    folder.rmdir()


@pytest.fixture
def world(python: str, root: Path, temporary: Path) -> Iterator[ForkedWorld]:
    forked = ForkedWorld(python, root / "data", seconds=1, confined=True)
    yield forked
    forked.close()
    engine_process.close_all()
    assert list(temporary.iterdir()) == []


def below(pid: int) -> set[int]:
    """Processes below a process."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    numbers = {int(child) for child in children.read_text().split()} if children.exists() else set()
    return numbers.union(*(below(child) for child in numbers))


def wait_for_the_end_of(launcher: Launcher) -> None:
    until = time.monotonic() + 10
    while launcher.alive and time.monotonic() < until:
        time.sleep(0.02)
    assert not launcher.alive


def test_an_episode_from_its_brief_to_its_grade(world):
    brief = world.begin("one_1")
    assert (brief.instruction, brief.first_name) == ("Make the label blue.", "Ann")
    assert world.execute("print hello") == "hello\n"
    assert world.execute("label blue") == "Execution successful."
    assert not world.completed()
    world.execute("done")
    assert world.completed()
    assert world.grade() == Grade(2, 2, 0)
    world.begin("one_1")
    assert not world.completed()
    world.execute("label red")
    assert world.grade() == Grade(2, 0, 1)


def test_worlds_do_not_mix(world, python, root):
    other = ForkedWorld(python, root / "data", seconds=1, confined=True)
    world.begin("one_1")
    other.begin("one_1")
    world.execute("label blue")
    assert (world.grade(), other.grade()) == (Grade(2, 2, 0), Grade(2, 1, 0))
    assert len(engine_process._running) == 1  # imports are paid once
    other.close()


def test_code_reaches_nothing_but_its_own_task(world, root, tmp_path, monkeypatch, temporary):
    monkeypatch.setenv("SECRET", "of the user")
    (tmp_path / "private").write_text("of the user")
    world.begin("one_1")
    truth = root / "data" / "tasks" / "one_1" / "ground_truth" / "answer.json"
    for place in (tmp_path / "private", truth, root / "data" / "tasks" / "one_2" / "specs.json", Path("/proc/1/stat")):
        assert "PermissionError" in world.execute(f"read {place}"), place
    assert "FileNotFoundError" in world.execute("read data/tasks/one_1/ground_truth/answer.json")
    assert "PermissionError" in world.execute(f"write {tmp_path / 'new'}")
    assert world.execute("write new") == "1"
    assert "PermissionError" in world.execute("connect 1") and "PermissionError" in world.execute("fork")
    assert world.execute("thread") == "[1]"
    variables = json.loads(world.execute("environ"))
    assert variables.keys() <= {
        *("APPWORLD_CACHE", "APPWORLD_ROOT", "HOME", "LANG", "PATH", "PYTHONHASHSEED", "TMPDIR", "LC_CTYPE")
    }
    assert "MemoryError" in world.execute(f"allocate {5 << 30}")
    (play,) = temporary.glob("*/1/play")
    assert (play / "new").exists()


def test_code_cannot_answer_for_the_launcher(world):
    """Open are its input, its log twice, the socket and its connection, and the event loop's own three."""
    world.begin("one_1")
    files = world.execute("files").split()
    assert files[:3] == ["0", "1", "2"] and len(files) <= 9
    launcher, pid = world._episode
    theirs = set()
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # a connection comes and goes meanwhile
            theirs.add(os.readlink(f"/proc/{pid}/fd/{number}"))
    ends = (launcher._process.stdin, launcher._process.stdout)
    pipes = {os.readlink(f"/proc/self/fd/{end.fileno()}") for end in ends}
    assert theirs and len(pipes) == 2 and not pipes & theirs


@pytest.mark.deep
def test_code_that_swallows_its_time_limit_is_ended(world):
    world.begin("one_1")
    assert "timed out after 1 seconds" in world.execute("loop")
    assert world.execute("print on") == "on\n"


def test_what_code_did_before_it_interrupted_counts(world):
    world.begin("one_1")
    world.execute("label blue")
    assert world.execute("interrupt red").endswith("KeyboardInterrupt")
    assert world.grade() == Grade(2, 1, 1)


def test_output_that_cannot_be_sent_is_told_in_another_way(world):
    world.begin("one_1")
    assert world.execute("surrogate") == "\\ud800"
    flood = world.execute(f"repeat {30 << 20}")
    assert len(flood) < 1_100_000 and "characters left out" in flood
    assert world.execute("print on") == "on\n"


def test_a_process_that_ends_itself_is_the_codes_doing_and_the_next_episode_is_intact(world):
    world.begin("one_1")
    with pytest.raises(AgentBroke):
        world.execute("exit")
    with pytest.raises(AgentBroke):
        world.execute("print on")
    world.begin("one_2")
    assert world.execute("print on") == "on\n"


def test_a_state_that_is_gone_has_no_grade(world):
    world.begin("one_1")
    with pytest.raises(AgentBroke, match="500"):  # what follows each piece of code fails as well
        world.execute("unsave")
    with pytest.raises(AgentBroke, match="grading broke off"):
        world.grade()


def test_a_task_that_is_not_there_is_an_error_and_no_end(world):
    with pytest.raises(AppWorldError, match="FileNotFoundError"):
        world.begin("none_1")
    assert world.begin("one_1").first_name == "Ann"


def test_grading_that_does_not_end_is_ended(world, monkeypatch):
    monkeypatch.setattr("manyturn.envs.benchmarks.appworld.world._SECONDS", 1.0)
    world.begin("endless_1")
    with pytest.raises(AppWorldError, match="too long"):
        world.grade()
    launcher = shared(*world._place)
    assert len(below(launcher.pid)) == 1  # the forking process, no episode's and no grading's
    assert world.begin("one_1")


def test_a_launcher_that_was_killed_is_started_anew(world):
    world.begin("one_1")
    launcher = shared(*world._place)
    processes = below(launcher.pid)
    (forking,) = (pid for pid in processes if below(pid))
    os.kill(forking, signal.SIGKILL)
    wait_for_the_end_of(launcher)
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
    with pytest.raises(AppWorldError) as caught:
        world.execute("print on")
    assert not isinstance(caught.value, AgentBroke)
    world.begin("one_1")
    assert world.execute("print on") == "on\n"


def test_an_answer_that_does_not_come_ends_everything(world):
    world.begin("one_1")
    launcher = shared(*world._place)
    (forking,) = (pid for pid in below(launcher.pid) if below(pid))
    os.kill(forking, signal.SIGSTOP)
    with pytest.raises(AppWorldError, match=r"no answer within 0\.1 s"):
        launcher.ask(0.1, op="play", task="one_1")
    assert not launcher.alive


def test_a_wait_that_is_interrupted_leaves_no_answer_for_the_next(world):
    def interrupted(*_: object) -> None:
        raise InterruptedError

    world.begin("one_1")
    launcher = shared(*world._place)
    (forking,) = (pid for pid in below(launcher.pid) if below(pid))
    os.kill(forking, signal.SIGSTOP)
    before = signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(InterruptedError):
        launcher.ask(20, op="play", task="one_2")
    signal.signal(signal.SIGALRM, before)
    wait_for_the_end_of(launcher)
    assert world.begin("one_1").instruction == "Make the label blue."


def test_nothing_outlives_a_keeper_that_was_killed(world):
    world.begin("one_1")
    launcher = shared(*world._place)
    processes = below(launcher.pid)
    assert len(processes) == 2
    os.kill(launcher.pid, signal.SIGKILL)
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in processes) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]


def test_nothing_outlives_a_process_that_was_killed(python, root, temporary):
    code = f"""
import sys, tempfile
tempfile.tempdir = {str(temporary)!r}
from pathlib import Path
from manyturn.envs.benchmarks.appworld.world import ForkedWorld
world = ForkedWorld({python!r}, Path({str(root / "data")!r}), 1, True)
world.begin("one_1")
print("begun", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    processes = below(process.pid)
    assert len(processes) == 3  # keeper, launcher, episode
    process.kill()
    process.wait()
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in processes) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    assert list(temporary.iterdir()) == []
    process.stdin.close()
    process.stdout.close()


def test_an_interpreter_without_appworld_says_so(root, temporary):
    with pytest.raises(AppWorldError, match="AppWorld could not be imported: ModuleNotFoundError"):
        Launcher(sys.executable, root / "data", True)
    assert list(temporary.iterdir()) == []


def test_a_folder_that_is_no_place_for_sockets_is_named(python, root, tmp_path, monkeypatch):
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path / ("x" * 100)))
    with pytest.raises(AppWorldError, match="set TMPDIR"):
        Launcher(python, root / "data", True)


def test_what_is_no_interpreter_says_so(root, temporary):
    with pytest.raises(AppWorldError, match="broke off"):
        Launcher("/bin/true", root / "data", True)
    assert list(temporary.iterdir()) == []
