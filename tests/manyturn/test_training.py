"""Training from Python must be training from the command line, in a script and in a notebook."""

import _thread
import asyncio
from pathlib import Path

import pytest

import manyturn as mt
from manyturn.trainers.record.run_folder import read_config

pytestmark = pytest.mark.versions

SIZES = {
    "model": {"width": 16, "layers": 1, "heads": 2},
    "agent.max_context": 256,
    "sampling.max_tokens": 8,
    "warmup.episodes": 0,
    "rollout": {"tasks": 16, "group": 2},
    "evaluation": {"limit": 2},
    "device": "cpu",
}
COST = {"env.wrappers": [{"name": "turn_cost", "cost": 0.25}]}


def weights(folder: Path) -> bytes:
    return (folder / "checkpoints" / "step_000001" / "model" / "model.safetensors").read_bytes()


def doors(run: Path) -> str:
    return f"{run.parent}/doors.py:Doors"


def test_a_run_from_a_notebook_is_that_of_the_command_line_to_the_bit(tiny_run, tmp_path):
    """In a notebook an event loop runs already."""

    async def cell() -> tuple[Path, dict]:
        return mt.train(doors(tiny_run), out=tmp_path / "run", report=lines.append, steps=1, **SIZES, **COST)

    lines = []
    folder, summary = asyncio.run(cell())
    assert folder == tmp_path / "run" and read_config(folder) == read_config(tiny_run)
    assert weights(folder) == weights(tiny_run)
    assert [line["phase"] for line in lines if line["phase"] != "notice"] == ["begin", "train"]
    assert summary["steps"] == 1
    assert (folder / "report.html").is_file() and (folder / "curve.png").is_file()


def test_progress_in_a_script_is_that_of_the_command_line(tiny_run, tmp_path, capsys):
    run = mt.train(doors(tiny_run), out=tmp_path / "run", progress=True, steps=1, **SIZES, **COST)
    mt.resume(run.folder, steps=2, progress=True)
    heads = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert [head for head in heads if head[0] == "step"] == [["step", "1"], ["step", "2"]]


def test_what_a_notebook_interrupts_has_closed_its_folder_and_goes_on(tiny_run, tmp_path):
    def report(line):
        if line["phase"] == "train":
            _thread.interrupt_main()

    async def cell() -> None:
        mt.train(doors(tiny_run), out=tmp_path / "run", report=report, steps=3, **SIZES, checkpoint_every=1)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    assert mt.resume(tmp_path / "run").summary["steps"] == 3


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        ({}, "which environment?"),
        ({"env": 3}, "which environment?"),
        ({"env": "manyturn/Mase-v0", "steps": 0}, "manyturn/Maze-v0"),
        ({"env": "manyturn/Maze-v0", "recipe": "quikstart"}, "quickstart"),
        ({"env": "manyturn/Maze-v0", "stepss": 3}, "did you mean 'steps'"),
        (
            {"env": "manyturn/Maze-v0", "learner": {"lrr": 1}},
            "learner: unknown Learner option 'lrr'; did you mean 'lr'",
        ),
        ({"env": "manyturn/Maze-v0", "learner.lr": "x"}, "learner.lr: Input should be a valid number"),
        ({"env": "manyturn/Maze-v0", "learner.lr": 0.1, "learner": {"lr": 0.2}}, "--learner is given twice"),
    ],
)
def test_errors_are_those_of_the_command_line(arguments, fix, tmp_path):
    with pytest.raises((ValueError, TypeError)) as refused:
        mt.train(out=tmp_path / "run", **arguments)
    assert fix in str(refused.value) and "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_class_of_a_notebook_can_be_trained_on_and_defined_again(tmp_path):
    """The newest definition counts, as whoever runs a cell twice expects."""

    def cell(*words: str) -> str:
        class Say(mt.TextEnv):
            instructions = "Say it."

            def tasks(self, split):
                return [mt.Task(f"{split}/{word}", split, {"of": split, "word": word}) for word in words]

            def begin(self, task, rng):
                self.word = task.params["word"]
                return self.word

            def respond(self, action):
                return self.succeed("Yes.") if action == self.word else self.fail("No.")

            def expert(self):
                return self.word

        run = mt.train(Say, steps=0, out=tmp_path / words[0], **SIZES)
        assert run.summary["env"] == "local/Say-v0"
        return (run.folder / "evaluation" / "panel.json").read_text()

    assert "test/one" in cell("one", "two")
    assert "test/three" in cell("three", "four")


def test_completion_finds_the_public_names_and_nothing_else():
    assert dir(mt) == sorted(mt.__all__) and {"train", "check", "compare", "credit", "make", "TextEnv"} <= set(dir(mt))
    assert all(getattr(mt, name) is not None for name in dir(mt))
    with pytest.raises(AttributeError, match="it has GeneratedTasks, Task"):
        mt.Gradients  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'regster'; did you mean 'register'\?"):
        mt.regster  # noqa: B018
