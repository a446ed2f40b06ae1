"""The wrapper reflector: a second attempt with a reflection, and a reward that is the difference that it made."""

from pathlib import Path

import pytest

from manyturn.envs.contract.wrappers.reward_wrapper import WrapperMismatch
from manyturn.envs.hosting.handle.env_handle import EnvHandle

ROOT = Path(__file__).parents[2]
LEVERS = """
import manyturn as mt

class Levers(mt.TextEnv):
    instructions = "Pull levers. One of them opens the gate."
    max_turns = 3
    part_names = ("oil",)

    def tasks(self, split):
        first = 10 * self.splits.index(split)
        return [mt.Task(f"{split}/{n}", split, {"opens": w, "n": first + n}) for n, w in enumerate(("red", "blue"))]

    def begin(self, task, rng):
        self.noise = int(rng.integers(1000))
        return f"A gate, {self.noise} years old."

    def respond(self, action):
        if action == f"pull {self.task.params['opens']}":
            return self.succeed("It opens.")
        return self.go_on("It creaks.", oil=-0.25) if action == "pull green" else self.go_on("Nothing.")

    def admissible(self):
        return ["pull red", "pull blue", "pull green"]

    def expert(self):
        return f"pull {self.task.params['opens']}"
"""


@pytest.fixture
def levers(tmp_path):
    (tmp_path / "levers.py").write_text(LEVERS)
    return lambda **options: EnvHandle(f"{tmp_path}/levers.py:Levers", None, [{"name": "reflector", **options}])


def played(env, *actions):
    step = env.reset(env.tasks("train")[0], 7)
    return [step, *(env.step(action) for action in actions)]


def test_the_reflector_earns_the_difference_between_the_returns_of_the_attempts(levers):
    env = levers()
    assert env.roles == ("reflector", "actor", "retry") and env.max_turns == 7
    first, *_, failed, again, end = played(env, "pull green", "pull blue", "pull green", "Pull\n red.", "pull red")
    assert [first.role, failed.role, again.role] == ["actor", "reflector", "retry"]
    assert failed.parts == {"actor.oil": -0.25} and not failed.ended and failed.success is None
    assert again.reward == 0 and again.observation == f"{first.observation}\n\nReflection: Pull red."
    assert end.terminated and end.success and end.measures == {"first_success": 0.0}
    assert end.parts == {"retry.outcome": 1.0, "reflector.gain": 1.0 - (2 * -0.25)}
    ends = [
        (["pull blue"] * 3 + ["x"] + ["pull green"] * 3, {"retry.oil": -0.25, "reflector.gain": -0.75}),
        (["pull green"] * 3 + ["x"] + ["pull green"] * 3, {"retry.oil": -0.25, "reflector.gain": 0.0}),
        (["pull red"], {"actor.outcome": 1.0}),
    ]
    for actions, parts in ends:
        last = played(levers(), *actions)[-1]
        assert last.ended and last.parts == parts
    assert last.success and last.measures == {"first_success": 1.0}, "nothing to reflect on"


def test_the_reflector_reads_the_attempt_and_its_expert_names_the_first_wrong_turn(levers):
    env = levers()
    failed = played(env, "pull green", "pull blue", "pull green")[-1]
    assert failed.observation.count("The actor chose: pull green\nIt creaks.") == 2
    assert failed.admissible == ["pull red", "pull blue", "pull green"]
    assert env.expert() == "pull red" == env.expert()
    assert env.step("pull red").observation == played(levers(), "x", "x", "x", "pull red")[-1].observation
    short = played(levers(transcript=100), "pull green", "pull blue", "pull green")[-1].observation
    assert "[...]" in short and len(short) < len(failed.observation) and short.startswith("A gate")
    silent = played(levers(), "x", "x", "x", "  ")[-1]
    assert not silent.understood and silent.observation.endswith("Reflection: none")


def test_a_snapshot_holds_the_failed_attempt(levers):
    before = ("pull green", "pull blue", "pull green")
    for count in (2, 3, 4):
        env, other = levers(), levers()
        played(env, *(*before, "pull red")[:count])
        other.reset(other.tasks("train")[1], 3)
        other.env.get_wrapper_attr("restore")(env.env.get_wrapper_attr("snapshot")())
        for action in (*before, "pull red", "pull red")[count:]:
            assert env.step(action) == other.step(action)


def test_environments_that_have_no_second_attempt_are_refused(levers, tmp_path):
    with pytest.raises(WrapperMismatch, match="leave the wrapper reflector out"):
        EnvHandle("manyturn/Talk-SelfPlay-v0", None, [{"name": "reflector"}])
    plain = (ROOT / "strangers" / "plain.py").read_text()
    (tmp_path / "endless.py").write_text(plain.replace("    max_turns = 8\n", ""))
    with pytest.raises(WrapperMismatch, match="max_turns"):
        EnvHandle(f"{tmp_path}/endless.py:Corridor", None, [{"name": "reflector"}])
    stranger = EnvHandle(f"{ROOT / 'strangers' / 'plain.py'}:Corridor", None, [{"name": "reflector"}])
    task = stranger.tasks("train")[0]
    first, step = stranger.reset(task, 1), None
    while step is None or step.role == "actor":
        step = stranger.step("away")
    assert stranger.step("turn").observation.startswith(first.observation), "the same world again"


def test_no_core_file_names_the_roles_that_a_wrapper_makes():
    tops = (ROOT.parent / top for top in ("agents", "trainers", "manyturn/api", "manyturn/cli", "manyturn/terminal"))
    sources = [path for top in tops for path in top.rglob("*.py") if "columns" not in path.parts]
    named = [path for path in sources if any(word in path.read_text("utf-8") for word in ("reflector", "adviser"))]
    assert len(sources) > 300 and not named
