"""Loggers get every line once and can do a run no harm."""

import asyncio
import csv
import shutil
from pathlib import Path
from typing import Literal

import pytest
from short_runs import short_run

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.registry import Named
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.recipe.logger import LOGGERS, Logger
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

heard: list[tuple] = []


class HeardConfig(Named):
    name: Literal["test_heard"] = "test_heard"
    fails_at: str = ""


class Heard(Logger):
    """Notes what it is called with, and raises where it is asked to."""

    def __init__(self, config: HeardConfig):
        self.fails_at = config.fails_at
        self.note("made")

    def note(self, name, *given):
        heard.append((self.fails_at, name, *given))
        if name == self.fails_at:
            raise RuntimeError(f"in {name}\nof a logger")

    def begin(self, folder, config, lines):
        self.note("begin", folder, config["steps"], lines)

    def line(self, line):
        self.note("line", dict(line))
        line.clear()  # what a logger does to its line is nobody else's business

    def end(self, summary):
        self.note("end", summary["steps"])

    def close(self):
        self.note("close")


FAILING = ("made", "begin", "line", "end", "close")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of four steps with a logger that works, five that fail at different calls, and a table."""
    LOGGERS.names()  # loads those that come along, which must stay
    before = dict(LOGGERS._entries)
    LOGGERS.register(HeardConfig)(Heard)
    failing = [{"name": "test_heard", "fails_at": name} for name in FAILING]
    folder = tmp_path_factory.mktemp("loggers") / "run"
    config = short_run(loggers=[*failing, "test_heard", "csv"], steps=4, keep_checkpoints=9)
    yield folder, asyncio.run(train(config, folder))
    LOGGERS._entries = before


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_rows(lines: list[dict]) -> list[dict[str, str]]:
    keys = dict.fromkeys(key for line in lines for key in line)
    return [{key: "" if line.get(key) is None else str(line[key]) for key in keys} for line in lines]


def test_a_logger_hears_the_configuration_every_line_once_and_the_summary(run):
    folder, summary = run
    calls = [call[1:] for call in heard if call[0] == ""]
    lines = read_metrics(folder)
    assert len(lines) > 5 and calls[:2] == [("made",), ("begin", folder, 4, [])]
    assert [call[1] for call in calls if call[0] == "line"] == lines
    assert calls[-2:] == [("end", summary["steps"]), ("close",)]


@pytest.mark.parametrize("place", FAILING)
def test_a_logger_that_raises_is_not_called_again_and_the_run_goes_on(run, place):
    calls = [call[1] for call in heard if call[0] == place]
    assert calls.count(place) == 1 and calls[-1] == place
    assert run[1]["steps"] == 4


def test_the_table_holds_what_the_lines_hold_though_keys_appear_later(run):
    lines, rows = read_metrics(run[0]), table(run[0])
    assert set(lines[0]) != set(lines[-1]) and rows == as_rows(lines)


def test_a_continued_run_doubles_no_line(run, tmp_path, capfd):
    shutil.copytree(run[0], tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step_000004")
    with (tmp_path / "run" / "metrics.csv").open("a") as file:
        file.write("9,torn")
    heard.clear()
    asyncio.run(train(None, tmp_path / "run", resume=True))
    lines = read_metrics(tmp_path / "run")
    assert table(tmp_path / "run") == as_rows(lines)
    assert sorted({line["step"] for line in lines if line["phase"] == "train"}) == [1, 2, 3, 4]
    calls = [call[1:] for call in heard if call[0] == ""]
    [(_, _, _, kept)] = [call for call in calls if call[0] == "begin"]
    assert [*kept, *(call[1] for call in calls if call[0] == "line")] == lines and kept
    told = [line for line in capfd.readouterr().err.splitlines() if "logger" in line]
    wanted = "manyturn: the logger 'test_heard' raised RuntimeError: in line of a logger; the run goes on without it"
    assert len(told) == len(FAILING) and told.count(wanted) == 1


def test_a_logger_changes_no_weight(run, tmp_path):
    calm = asyncio.run(train(short_run(steps=4), tmp_path / "calm"))
    assert calm["weights"] == run[1]["weights"] and not (tmp_path / "calm" / "metrics.csv").exists()


def test_loggers_of_recipes_add_up_and_a_wrong_one_is_refused():
    maze = {"env": {"id": "manyturn/Maze-v0"}}
    assert stacked([{"loggers": ["csv"]}, {"loggers": [{"name": "csv"}]}])["loggers"] == [{"name": "csv"}]
    with pytest.raises(ConfigError, match="unknown logger 'cvs'; did you mean 'csv'"):
        configure(maze, {"loggers": ["cvs"]})
    with pytest.raises(ConfigError, match="leave one out"):
        configure(maze, {"loggers": ["csv", "csv"]})
