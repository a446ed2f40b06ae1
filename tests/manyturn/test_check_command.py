"""``manyturn check`` of what cannot be made, and of faults with code of others around them: exit code, line, place."""

import re

import pytest

FILE = """
import gymnasium
import numpy as np

import manyturn as mt


class Pixels(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = mt.TextSpace()


class Half(mt.TextEnv):
    def begin(self, task, rng):
        return "A room."


class Empty(Half):
    def tasks(self, split):
        return []

    def respond(self, action):
        return self.succeed("Done.")


class Stuck(Empty):
    def tasks(self, split):
        first = self.splits.index(split) * 10
        return [mt.Task(f"{split}/{i}", split, {"n": first + i}) for i in range(3)]

    def admissible(self):
        return ["open", "shut"]

    def expert(self):
        return self.nothing


class Imports(Empty):
    def __init__(self):
        import no_package_of_this_name


class Slips(gymnasium.Wrapper):
    def __init__(self):
        super().__init__(gymnasium.make("FrozenLake-v1"))
        self.observation_space = self.action_space = mt.TextSpace()

    def reset(self, *, seed=None, options=None):
        state, info = self.env.reset(seed=seed)
        return str(state), {}

    def step(self, action):
        return self.env.step(action)  # a text, where Gymnasium wants a number
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "own.py").write_text(FILE)
    return tmp_path / "own.py"


@pytest.mark.parametrize(
    ("env", "fix"),
    [
        ("CartPole-v1", r"observation_space is Box.* numbers into words \(docs/gymnasium-environments.md"),
        ("{file}:Pixels", "observation_space is Box.* use manyturn.TextSpace()"),
        ("{file}:Empty", "it has no task: .* return mt.Task objects there"),
        ("{file}:Half", r"lacks respond\(\) and tasks\(\): write"),
        ("{file}:Imports", r"own.py, line \d+, in __init__\).*no_package_of_this_name.*: install"),
    ],
)
def test_what_cannot_be_made_is_bad_input_and_its_line_names_the_fix(command, file, env, fix):
    ended = command("check", env.format(file=file))
    lines = ended.out.splitlines()
    assert ended.code == 2 and lines[1].startswith("failed   made") and len(lines) == 3, ended.out
    assert re.search(fix, lines[1]) and "functools" not in ended.out


def test_an_error_in_code_of_others_is_placed_at_the_last_line_of_the_user(command, file):
    ended = command("check", f"{file}:Slips", "--samples", 1)
    assert ended.code == 1
    assert re.findall(r"\((\w+\.py), line", ended.out) == ["own.py"] and "in step)" in ended.out


def test_a_random_policy_is_not_judged_against_an_expert_that_raises(command, file):
    ended = command("check", f"{file}:Stuck")
    assert ended.code == 1 and "no attribute 'nothing'" in ended.out, ended.err
    assert "since 'expert' has failed: imitation, random" in ended.out and "success is not known" not in ended.out
