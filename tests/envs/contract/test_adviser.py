"""The wrapper adviser: two roles of any environment, and a small adviser that lifts an actor which does not learn."""

import json
from pathlib import Path

import pytest

from manyturn.envs.contract.wrappers.reward_wrapper import WrapperMismatch
from manyturn.envs.hosting.handle.env_handle import EnvHandle

ROOT = Path(__file__).parents[2]
MAZE, ACTOR = "manyturn/Maze-v0", ROOT / "trainers" / "heedful_actor.py"


def handle(when="turn", env=MAZE, **args):
    return EnvHandle(env, args, [{"name": "adviser", "when": when}])


@pytest.mark.parametrize(("when", "turns"), [("turn", 24), ("start", 13)])
def test_an_episode_has_both_roles_and_their_turns(when, turns):
    env = handle(when, difficulty="easy")
    step, advised = env.reset(env.tasks("train")[0], 1), list[str]()
    assert env.roles == ("adviser", "actor") and env.max_turns == turns
    while not step.ended:
        advised += [step.role]
        step = env.step(env.expert())
    assert step.success and step.parts == {"outcome": 1.0}
    assert advised == (["adviser", "actor"] * (len(advised) // 2) if when == "turn" else ["adviser", *advised[1:]])
    assert advised.count("adviser") == (len(advised) // 2 if when == "turn" else 1)


def test_the_actor_reads_what_was_advised_and_the_adviser_what_was_done():
    env = handle(difficulty="easy")
    step = env.reset(env.tasks("train")[0], 1)
    commands = step.admissible
    acting = env.step("Look for\n a key.")
    assert acting.role == "actor" and acting.observation.endswith("Advice: Look for a key.")
    assert acting.admissible == commands and acting.understood and not env.step("nonsense").understood
    other = handle(difficulty="easy")
    other.reset(other.tasks("train")[0], 1)
    silent = other.step("  ")
    assert not silent.understood and silent.anchor != acting.anchor and silent.reward == 0
    assert "The actor chose: wait" in other.step("wait").observation


@pytest.mark.parametrize("when", ["turn", "start"])
def test_the_actor_meets_a_situation_again_under_the_same_anchor(when):
    """Turns in one situation are compared with each other, so the first one must not stand by itself."""
    env = handle(when, difficulty="easy")
    env.reset(env.tasks("train")[0], 1)

    def acting(step):
        return step if step.role == "actor" else env.step("Find the gold.")

    first = acting(env.step("Find the gold."))
    again = acting(env.step("wait"))  # which the maze declines
    elsewhere = acting(env.step(first.admissible[0]))
    assert again.anchor == first.anchor != elsewhere.anchor


def test_a_snapshot_holds_the_advice():
    env, other = handle(difficulty="easy"), handle(difficulty="easy")
    task = env.tasks("train")[0]
    env.reset(task, 1)
    other.reset(task, 2)
    env.step("go on")
    other.env.get_wrapper_attr("restore")(env.env.get_wrapper_attr("snapshot")())
    assert env.step("go north") == other.step("go north")
    assert env.step("go north") == other.step("go north")


def test_an_environment_that_is_not_ours_has_an_adviser_too():
    env = handle(env=f"{ROOT / 'strangers' / 'plain.py'}:Corridor")
    assert env.step(env.reset(env.tasks("train")[0], 1).observation).role == "actor"


def test_an_environment_with_roles_is_refused():
    with pytest.raises(WrapperMismatch, match="leave the wrapper adviser out"):
        handle(env="manyturn/Talk-SelfPlay-v0")


@pytest.mark.deep
def test_a_small_adviser_lifts_an_actor_that_does_not_learn(command, tmp_path):
    """The actor takes commands that it is advised, and else any: it finds the gold of few mazes by itself."""
    recipe = tmp_path / "adviser.toml"
    recipe.write_text(RECIPE.format(actor=ACTOR))
    ended = command("train", "--recipe", recipe, "--out", tmp_path / "run")
    assert ended.code == 0, ended.err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    evaluated = command("evaluate", f"{ACTOR}:actor", "--env", MAZE, "--limit", 100, "--out", tmp_path / "alone")
    assert evaluated.code == 0, evaluated.err
    alone = json.loads((tmp_path / "alone" / "summary.json").read_text())["success"]
    assert summary["difference"]["ci_low"] > 0 and set(summary["weights"]) == {"small"}
    assert summary["after"]["ci_low"] > alone["ci_high"], (summary["after"], alone)


RECIPE = """
steps = 5
device = "cpu"

[env]
id = "manyturn/Maze-v0"
args = {{ difficulty = "easy" }}
wrappers = [{{ name = "adviser" }}]

[roles]
adviser = "small"
actor = "{actor}:actor"

[model]
name = "tiny"
width = 48
layers = 2
heads = 4
sample_tasks = 100

[agent]
instructions = false
only_admissible = true
max_context = 700

[sampling]
max_tokens = 8

[warmup]
labels = "all_actions"
noise = 1.0
episodes = 200
max_updates = 25
check_every = 25
until_success = 0.0
check_episodes = 8

[rollout]
tasks = 12
group = 8

[learner]
lr = 1e-3
minibatch = 32
packing = "trie"
old_logprobs = "engine"

[evaluation]
limit = 100
"""
