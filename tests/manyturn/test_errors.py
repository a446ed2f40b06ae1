"""Errors that leave a user without the mend, or a script without the right exit code."""

import errno
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from error_page import AGAIN, ROWS, all_cases, input_row, words_of

from manyturn.terminal import command_exit
from manyturn.terminal.overrides import parse_overrides

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"
ENV = ("--env", MAZE)


def process(*words: object, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "manyturn", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=cwd, text=True, env={**os.environ, **environment}, **pipes)


def is_one_line(text: str) -> bool:
    return text.startswith("manyturn: ") and text.count("\n") == 1 and text.endswith("\n")


def fill(folder: Path) -> None:
    """Put files into a folder that are wrong in one way each."""
    files = {
        "raises.py": "import manyturn as mt\n\nnonsense()\n",
        "lacks.py": "import no_such_package\n",
        "syntax.py": "def f(:\n",
        "empty.py": "import manyturn as mt\n\n\nclass Other(mt.TextEnv):\n    pass\n",
        "typo.toml": f'steps = 1\n[env]\nid = "{MAZE}"\n[learner]\nlrr = 1.0\n',
        "torn.toml": "steps = \n",
        "deep.toml": "steps = " + "[" * 5000 + "]" * 5000,
        "file": "",
        "torn.json": "{",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "latin.toml").write_bytes(b'device = "\xe9"\n')
    (folder / "nothing").mkdir()
    (folder / "maze-run").mkdir()
    (folder / "runs" / "garden-1").mkdir(parents=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("wrong")
    fill(found)
    return found


BAD_INPUT = [
    ("trian", "train"),
    ("train", "which environment"),
    ("train manyturn/Mase-v0", "manyturn/Maze-v0"),
    ("train MAZE --lerner.lr 1", "learner"),
    ("train MAZE --learner.lrr 1", "'lr'"),
    ("train MAZE --steps x", "steps: Input should be a valid integer"),
    ("train MAZE --steps true", "steps: a number is wanted, not true"),
    ("train MAZE --rollout.tasks 1000000000", "rollout.tasks: Input should be less than or equal to 100000"),
    ("train --recipe latin.toml", "latin.toml is not TOML"),
    ("train --recipe deep.toml", "deep.toml is nested too deep"),
    ("train MAZE --steps", "--steps has no value"),
    ("plan nowhere", "no config.toml"),
    ("train MAZE --steps 1 --steps 2", "--steps is given twice"),
    ("train MAZE --env.args {size=3}", "takes no argument 'size'"),
    ("train MAZE --env.args {difficulty='esay'}", "easy, medium, hard"),
    ("train MAZE --env.wrappers [{name='turn_csot'}]", "turn_cost"),
    ("train MAZE --evaluation.split tset --warmup.episodes 0", "train, validation, test"),
    ("train --recipe quikstart", "quickstart"),
    ("train --recipe typo.toml", "'lr'"),
    ("train --recipe torn.toml", "torn.toml is not TOML"),
    ("train --recipe none.toml", "no file none.toml"),
    ("train --resume nowhere", "nowhere holds no run"),
    ("train --resume nowhere --steps 3", "nowhere holds no run"),
    ("train --resume nowhere --steps 3 --seed 1", "give no other options than --steps N"),
    ("train --resume nowhere --steps many", "--steps many: give a number of steps"),
    ("evaluate", "--policy"),
    ("evaluate random", "--env"),
    ("evaluate random --env manyturn/Maze-v9", "manyturn/Maze-v0"),
    ("evaluate random --env missing.py:Env", "no file"),
    ("evaluate random --env empty.py:Env", "it defines Other"),
    ("evaluate random --env empty.py:other", "did you mean Other?"),
    ("evaluate random --env empty.py", "empty.py is a file: name its class, empty.py:Other"),
    (
        "evaluate random --env zzz.csv",
        "manyturn envs lists the ids of manyturn and of installed plugins (docs/plugins.md)",
    ),
    ("evaluate random --env maze", "did you mean manyturn/Maze-v0?"),
    ("train Talk", "did you mean manyturn/Talk-Booking-v0, manyturn/Talk-GuessCity-v0"),
    ("evaluate random --env raises.py:Env", "raises.py, line 3, raised NameError: name 'nonsense'"),
    ("evaluate random --env lacks.py:Env", "lacks.py, line 1, raised ModuleNotFoundError"),
    ("evaluate random --env syntax.py:Env", "syntax.py, line 1, raised SyntaxError"),
    ("evaluate random --env MAZE --split tset", "train, validation, test"),
    ("evaluate random --env MAZE --splitt test", "did you mean 'split'"),
    ("evaluate random --env MAZE --repeats x", "--repeats"),
    ("evaluate random --env MAZE --repeats 0", "at least 1"),
    ("evaluate random --env MAZE --limit 0", "at least 1"),
    ("evaluate random --env MAZE --timeout 3", "--timeout has no effect without --workers"),
    ("evaluate random --env MAZE --workers 1 --timeout 0", "timeout = 0.0 must be above 0"),
    ("evaluate random --env MAZE --env.args easy", "TOML table"),
    ("evaluate random --env MAZE --env.args {size=3}", "takes no argument 'size'"),
    ("evaluate random --env MAZE --env.args {difficulty='esay'}", "easy, medium, hard"),
    ("evaluate random --env MAZE --wrappers turn_cost", "TOML list"),
    ("evaluate random --env MAZE --sampling.temperature 0", "--sampling.temperature has no effect: random draws"),
    ("evaluate random --panel none.json", "manyturn panel make"),
    ("evaluate random --panel torn.json", "not a panel"),
    ("evaluate random --panel file --limit 3", "leave --limit"),
    ("evaluate ./runs/x --env MAZE", "there is no runs/x"),
    ("evaluate maze-rum/x --env MAZE", "named openai:maze-rum/x. As a model here: cannot load maze-rum/x"),
    ("evaluate ./maze-rum --env MAZE", "did you mean maze-run?"),
    ("evaluate file --env MAZE", "is a file"),
    ("evaluate nothing --env MAZE", "config.json"),
    ("evaluate random --env MAZE --engine.max-batch 4", "--engine.max-batch has no effect: random draws no tokens"),
    ("evaluate openai:m --env MAZE --engine.max-batch 4", "--engine.max-batch has no effect: openai:MODEL asks an"),
    ("train MAZE --engine vlllm", "unknown engine 'vlllm'; did you mean 'vllm'? There are "),
    ("train MAZE --rollout.patience 3", "patience is no option here: set engine.reproducible = false instead"),
    ("evaluate nothing --env MAZE --endpoint.timeout 3", "--endpoint.timeout has no effect: only openai:MODEL"),
    ("evaluate nothing --env MAZE --agent.contxt window", "'context'"),
    ("evaluate nothing --env MAZE --agent.context windo", "window"),
    ("evaluate nothing --env MAZE --agent x", "--agent.name value"),
    ("evaluate openai:m --env MAZE", "OPENAI_BASE_URL"),
    ("evaluate openai:m --env MAZE --endpoint.timeout -1", "endpoint.timeout: Input should be greater than 0"),
    ("panel verify none.json", "manyturn panel make"),
    ("compare nowhere nowhere", "nowhere"),
    ("evaluate garden-1 --env MAZE", "there is no folder garden-1: did you mean runs/garden-1?"),
    ("compare garden-1 garden-2", "there is no folder garden-1: did you mean runs/garden-1?"),
]


@pytest.mark.parametrize(("line", "mend"), BAD_INPUT, ids=[line for line, _ in BAD_INPUT])
def test_bad_input_is_told_in_one_line_that_names_the_mend(command, folder, monkeypatch, line, mend):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    found = command(*words_of(line))
    assert is_one_line(found.err) and mend in found.err, found.err
    assert found.code == command_exit.BAD_INPUT
    # Some versions of cyclopts put the names of options between quotation marks.
    assert input_row(line, found.err, folder).replace('"', "") in {row.replace('"', "") for row in ROWS}, AGAIN


def test_the_page_of_errors_has_one_line_for_each_case():
    """The lines themselves are compared where the errors are made: here and in test_combinations.py."""
    assert len(ROWS) == sum(map(len, all_cases())), AGAIN


@pytest.mark.deep
def test_another_process_answers_as_this_one_does(folder):
    """The installed entry point: nothing that was imported here hides what a first import prints."""
    for words, mend in ((["evaluate", "./nowhere", *ENV], "nowhere"), (["train", MAZE, "--steps", "x"], "steps")):
        child = process(*words, cwd=folder)
        out, err = child.communicate()
        assert (child.returncode, out) == (command_exit.BAD_INPUT, "") and is_one_line(err) and mend in err


BLOCKER = """
import os, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in os.environ["BLOCKED"].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.mark.parametrize(
    ("blocked", "words", "extra"),
    [
        ("torch", ["train", MAZE], "train"),
        pytest.param("peft", ["train", MAZE], "train", marks=pytest.mark.slow),
    ],
)
def test_a_missing_extra_is_named(tmp_path, blocked, words, extra):
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    child = process(*words, cwd=tmp_path, PYTHONPATH=path, BLOCKED=blocked)
    _, err = child.communicate()
    assert is_one_line(err) and blocked in err and f"pip install 'manyturn[{extra}]'" in err, err
    assert child.returncode == command_exit.BAD_INPUT


def copy_of(run: Path, target: Path) -> Path:
    return Path(shutil.copytree(run, target / "run"))


@pytest.fixture
def copied(tiny_run, tmp_path):
    """A copy of the run, to be damaged."""
    return copy_of(tiny_run, tmp_path)


@pytest.mark.parametrize("part", [".", "checkpoints/step_000001", "checkpoints/step_000001/model"])
def test_training_tasks_are_refused_whichever_way_the_weights_are_named(command, tiny_run, part):
    found = command("evaluate", tiny_run / part, "--split", "train")
    assert found.code == command_exit.BAD_INPUT and is_one_line(found.err)
    assert "trained on" in found.err and "another split" in found.err


def test_a_run_says_which_options_have_no_effect_on_it(command, tiny_run):
    found = command("evaluate", tiny_run, "--agent.context", "window")
    assert (
        found.code == command_exit.BAD_INPUT
        and "--agent.context has no effect: a run acts as it was trained" in found.err
    )


def test_a_panel_of_another_environment_is_refused(command, tiny_run, tmp_path):
    panel = tmp_path / "panel.json"
    assert command("panel", "make", MAZE, "--limit", 2, "--out", panel).code == 0
    found = command("evaluate", tiny_run, "--panel", panel)
    assert found.code == command_exit.BAD_INPUT and is_one_line(found.err)
    assert "is a panel of manyturn/Maze-v0, not of" in found.err


def test_a_folder_that_holds_a_run_is_not_written_over(command, tiny_run):
    found = command("train", MAZE, "--out", tiny_run)
    assert found.code == command_exit.BAD_INPUT and is_one_line(found.err) and f"--resume {tiny_run}" in found.err


def test_a_folder_in_use_by_another_process_is_left_alone(command, copied):
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(copied / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"\n"
        found = command("train", "--resume", copied)
    finally:
        holder.communicate(b"\n")
    assert found.code == command_exit.BAD_INPUT
    assert is_one_line(found.err) and "another process: wait for it" in found.err
    with (copied / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def manifests(run: Path) -> list[Path]:
    return sorted(run.glob("checkpoints/*/manifest.json"))


def test_damaged_checkpoints_are_neither_continued_nor_evaluated(command, copied):
    for manifest in manifests(copied):
        (manifest.parent / "state.json").write_text("{}")
    resumed = command("train", "--resume", copied)
    assert (
        resumed.code == command_exit.BAD_INPUT
        and is_one_line(resumed.err)
        and "restore one, or start again" in resumed.err
    )
    evaluated = command("evaluate", copied)
    assert evaluated.code == command_exit.BAD_INPUT and is_one_line(evaluated.err) and "restore it" in evaluated.err


def test_a_checkpoint_of_other_code_names_that_code_and_a_way_that_works(command, copied, tmp_path):
    for manifest in manifests(copied):
        found = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**found, "format": 99, "versions": {"manyturn": "7.0"}}))
    for words in (["train", "--resume", copied], ["evaluate", copied], ["evaluate", manifests(copied)[0].parent]):
        refused = command(*words)
        assert refused.code == command_exit.BAD_INPUT and is_one_line(refused.err), refused.err
        assert "was written by manyturn 7.0 with checkpoint format 99, this is format" in refused.err
        assert "continue it with that version, or evaluate a copy of its folder model" in refused.err
    shutil.copytree(manifests(copied)[-1].parent / "model", tmp_path / "model")
    assert command("evaluate", tmp_path / "model", *ENV, "--limit", 2, "--agent.format", "free_text").code == 0


def test_a_checkpoint_from_before_formats_is_of_other_code(command, copied):
    for manifest in manifests(copied):
        manifest.write_text(json.dumps(json.loads(manifest.read_text())["files"]))
    refused = command("evaluate", copied)
    assert refused.code == command_exit.BAD_INPUT and "with checkpoint format None" in refused.err


def test_other_versions_of_libraries_are_noticed(copied):
    from manyturn.trainers.record.checkpoint import newest_checkpoint, version_notice

    checkpoint, _ = newest_checkpoint(copied / "checkpoints")
    assert checkpoint is not None and version_notice(checkpoint) is None
    manifest = checkpoint / "manifest.json"
    found = json.loads(manifest.read_text())
    found["versions"]["torch"] = "1.0"
    manifest.write_text(json.dumps(found))
    notice = version_notice(checkpoint)
    assert notice is not None and "torch 1.0, now 2." in notice and "transformers" not in notice


SLOW = """
import time
from pathlib import Path
import manyturn as mt


class Slow(mt.TextEnv):
    instructions = "Wait."
    max_turns = 10_000

    def tasks(self, split):
        return [mt.Task(f"{split}/0", split, {"split": split})]

    def begin(self, task, rng):
        Path("began").touch()
        return "Wait."

    def respond(self, action):
        time.sleep(0.01)
        return self.go_on("Wait.")


class Broken(Slow):
    def respond(self, action):
        raise RuntimeError("the floor gives way")
"""


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_without_noise(tmp_path, stop, code):
    """An environment that is running must not take the signal for an error of its own."""
    (tmp_path / "slow.py").write_text(SLOW)
    child = process("evaluate", "random", "--env", "slow.py:Slow", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "began").exists():
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(stop)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (code, "")
    assert re.fullmatch(r"random: stopped after . of 1 episodes; nothing is kept: give --out FOLDER, .*\n", err)


def test_too_many_errors_of_episodes_have_a_code_of_their_own(command, tmp_path, monkeypatch):
    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    found = command("evaluate", "random", "--env", "slow.py:Broken", "--repeats", 4)
    assert found.code == command_exit.TOO_MANY_ERRORS and is_one_line(found.err)
    assert "the floor gives way" in found.err and found.err.endswith("Run manyturn check on the environment\n")


def test_failed_learning_and_full_disks_have_codes_of_their_own(tmp_path):
    from manyturn.agents.records.episode_log import DiskFull
    from manyturn.trainers.learn.passes.pass_budget import LearningFailed
    from manyturn.trainers.record.run_folder import RunFolder

    assert command_exit.code_of(LearningFailed("gradients")) == command_exit.LEARNING_FAILED
    with pytest.raises(OSError) as full, Path("/dev/full").open("w") as file:
        file.write("text")
    assert full.value.errno == errno.ENOSPC and command_exit.code_of(full.value) == command_exit.DISK
    with pytest.raises(DiskFull) as told, RunFolder(tmp_path / "run", resume=False).writing():
        raise full.value
    assert command_exit.code_of(told.value) == command_exit.DISK


@pytest.mark.parametrize(
    ("size", "free", "told"),
    [
        (300_000, 150_000, "150 kB are free, 600 kB are needed"),
        (40, 0, "0 bytes are free, 80 bytes are needed"),
        (3_400_000_000, 999_999, "1000 kB are free, 6.8 GB are needed"),
    ],
)
def test_how_much_of_a_disk_is_missing_is_told_in_numbers_that_say_it(tmp_path, monkeypatch, size, free, told):
    from manyturn.agents.records.episode_log import DiskFull
    from manyturn.trainers.record.run_folder import RunFolder

    folder = RunFolder(tmp_path / "run", resume=False)
    (folder.checkpoints / "step_1").mkdir(parents=True)
    os.truncate(_touched(folder.checkpoints / "step_1" / "weights"), size)  # a hole: it takes no room here
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr("manyturn.trainers.record.run_folder.shutil.disk_usage", lambda path: usage)
    with pytest.raises(DiskFull, match=re.escape(told)):
        folder.check_room()


def _touched(file: Path) -> Path:
    file.touch()
    return file


def test_a_fault_of_the_program_is_not_blamed_on_the_input():
    """An AttributeError of this code or a ValueError of a library says nothing that a user could mend."""
    for fault in (lambda: parse_overrides([3]), lambda: json.loads("{")):
        with pytest.raises((AttributeError, ValueError)) as found:
            fault()
        assert command_exit.code_of(found.value) == command_exit.UNFORESEEN
        assert command_exit.line_of(found.value).startswith(f"{found.type.__name__}: ")
        assert command_exit.line_of(found.value).endswith(" (MANYTURN_DEBUG=1 shows where)")


def test_debugging_shows_where_an_error_came_from(folder):
    child = process("train", "--recipe", "none.toml", cwd=folder, MANYTURN_DEBUG="1")
    _, err = child.communicate()
    assert child.returncode and "Traceback" in err and "read_toml" in err


def test_help_tells_the_codes(command):
    told = " ".join(command("--help").out.split())
    assert all(f"{code} " in told for code in (0, 1, 2, 3, 4, 5, 130, 143)) and "MANYTURN_DEBUG=1" in told


def test_a_panel_starts_no_code_that_the_command_line_does_not_name(command, tmp_path, monkeypatch):
    """A panel is data, sent around: looking at one must not run a file that it names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + SLOW.replace("0.01", "0"))
    assert command("panel", "make", "slow.py:Slow", "--limit", 2, "--out", "panel.json").code == 0
    (tmp_path / "moved.py").write_text((tmp_path / "slow.py").read_text())  # not loaded in this process yet
    panel = (tmp_path / "panel.json").read_text().replace("slow.py", "moved.py")
    (tmp_path / "ran").unlink()
    (tmp_path / "other.json").write_text(panel)
    for words in (("evaluate", "random", "--panel", "other.json"), ("panel", "verify", "other.json")):
        ended = command(*words)
        assert ended.code == 2 and is_one_line(ended.err) and not (tmp_path / "ran").exists(), ended.err
    ended = command("panel", "verify", "panel.json")
    assert ended.code == 2 and "if you trust it, add --env slow.py:Slow" in ended.err
    assert command("panel", "verify", "panel.json", "--env", "slow.py:Slow").code == 0
