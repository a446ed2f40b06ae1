"""A page about training names a column, an option, a metric or an exit code that does not exist, or leaves one out."""

import inspect
import re
from pathlib import Path

import manyturn as mt
from manyturn.envs.contract.options.options import Options
from manyturn.terminal import command_exit
from manyturn.terminal.training_progress import TrainingReport
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.record.metrics import METRICS

PAGES = ("training", "several-environments", "resuming", "training-memory")
TRAINING, *OTHERS = ((Path(__file__).parents[2] / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
PAGE = "".join((TRAINING, *OTHERS))
FIGURES = {name: 0.5 for name in METRICS if name not in ("phase", "step", "seconds", "updates", "warmup_left_seconds")}
DEFAULTS = parse_config({"env": {"id": "x"}})


def entry(place: str) -> object:
    """The default of an entry, such as ``warmup.lr``."""
    value: object = DEFAULTS
    for name in place.split("."):
        assert isinstance(value, Options) and name in type(value).model_fields, f"{place} is no option"
        value = getattr(value, name)
    return value


def test_every_word_of_a_line_is_explained(tmp_path, capsys):
    TrainingReport(tmp_path, DEFAULTS)({"phase": "train", "step": 1, "seconds": 0.0, **FIGURES})
    line = capsys.readouterr().out.partition(" s  ")[2]
    shown = re.findall(r"([a-z][a-z ]*?) [+-]?[\d.]+%?(?:  |\s*$)", line)
    explained = re.findall(r"^\| ([a-z ]+) \|", PAGE, re.MULTILINE)
    assert len(shown) > 7 and set(shown) <= set(explained), set(shown) - set(explained)


def test_every_option_exists():
    sections = "|".join(RunConfig.model_fields)
    named = {name.replace("-", "_") for name in re.findall(rf"`(?:--)?((?:{sections})\.[a-z_.-]+)", PAGE)}
    assert len(named) > 5
    for name in named:
        entry(name)


def test_every_exit_code_is_the_programs():
    rows = re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE)
    codes = {int(code) for row in rows for code in row.split(", ")}
    assert codes == {
        command_exit.UNFORESEEN,
        command_exit.BAD_INPUT,
        command_exit.LEARNING_FAILED,
        command_exit.DISK,
        command_exit.TOO_MANY_ERRORS,
        130,
        143,
        0,
    }


def test_its_python_is_the_programs():
    [block] = re.findall(r"```python\n(.*?)```", TRAINING, re.DOTALL)
    assert "mt.train(" in block and "mt.resume(" in block
    compile(block, "training.md", "exec")
    inspect.signature(mt.train).bind("doors.py:Doors", steps=20, report=print)
    inspect.signature(mt.resume).bind("runs/doors", steps=40)
