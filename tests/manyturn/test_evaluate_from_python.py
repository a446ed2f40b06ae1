"""Evaluation from Python must find what the command finds, in scripts and where an event loop runs already."""

import asyncio
import json

import pytest

import manyturn as mt
from manyturn.agents.play.python_policy import PolicyError


class Doors(mt.TextEnv):
    """A class of a script, which names no file: the code word opens the door."""

    instructions = "Say the word that you see."
    max_turns = 3

    def tasks(self, split):
        return [mt.Task(f"{split}/{n}", split, {"n": n}) for n in range(6)]

    def begin(self, task, rng):
        return f"word{task.params['n']}"

    def respond(self, action):
        if action == f"word{self.task.params['n']}":
            return self.succeed("Open.")
        return self.go_on("Shut.", near=0.5)


def says_it(observation, info):
    return observation


async def says_nothing(observation, info):
    await asyncio.sleep(0)
    return ""


def without_times(summary):
    return {key: value for key, value in summary.items() if key != "seconds"}


def test_a_function_plays_a_class_and_the_figures_are_there():
    found = mt.evaluate(says_it, Doors, repeats=2)
    assert found.summary["success"]["mean"] == 1 and len(found.episodes) == 12
    assert repr(found).startswith("<Evaluation of says_it, code ") and "success 100.0%" in repr(found)


def test_it_works_where_a_loop_runs_and_finds_the_same():
    async def cell():
        return mt.evaluate(says_nothing, Doors), mt.evaluate("random", "manyturn/Maze-v0", limit=3)

    inside, scripted = asyncio.run(cell())
    assert without_times(inside.summary) == without_times(mt.evaluate(says_nothing, Doors).summary)
    assert inside.summary["parts"]["near"]["mean"] == 1.5
    assert without_times(scripted.summary) == without_times(mt.evaluate("random", "manyturn/Maze-v0", limit=3).summary)


def test_a_folder_is_continued_with_the_same_code_alone(tmp_path):
    assert mt.evaluate(says_it, Doors, out=tmp_path).played == 6
    assert mt.evaluate(says_it, Doors, out=tmp_path).played == 0
    assert json.loads((tmp_path / "summary.json").read_text())["success"]["mean"] == 1
    with pytest.raises(RuntimeError, match=r"policy was says_it, code .* and is says_nothing, code "):
        mt.evaluate(says_nothing, Doors, out=tmp_path)


def test_a_run_is_evaluated_with_options_by_section(tiny_run):
    found = mt.evaluate(tiny_run, limit=2, sampling={"temperature": 0.0})
    assert found.summary["sampling"]["temperature"] == 0 and found.summary["wrappers"][0]["name"] == "turn_cost"
    none = mt.evaluate(str(tiny_run), limit=2, wrappers=[])
    assert none.summary["wrappers"] == []


def test_what_will_not_do_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"sampling\.temperature has no effect: says_it is called as it is"):
        mt.evaluate(says_it, Doors, sampling={"temperature": 0})
    with pytest.raises(ValueError, match="unknown option of evaluate 'limits'; did you mean 'limit'"):
        mt.evaluate(says_it, Doors, limits=3)
    with pytest.raises(ValueError, match="which environment"):
        mt.evaluate(says_it)
    with pytest.raises(PolicyError, match="is int, no policy"):
        mt.evaluate(3, Doors)


def test_an_error_of_the_policy_keeps_its_cause_for_a_debugger():
    def broken(observation, info):
        return info["commands"]

    with pytest.raises(PolicyError, match=r"test_evaluate_from_python.py, line \d+, in broken") as raised:
        mt.evaluate(broken, Doors)
    assert isinstance(raised.value.__cause__, KeyError)
