"""Demonstrations that the policy could not say or read, or that are none: found before anything is learnt."""

import asyncio
import re
from pathlib import Path

import pytest
from short_runs import short_run

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.run.loop.loop import train

CALENDAR = f"{Path(__file__).parents[2] / 'appointments.py'}:Calendar"
TEA = """
import manyturn as mt

class Env(mt.TextEnv):
    max_turns = 3

    def tasks(self, split):
        return [mt.Task(f"{{split}}/{{i}}", split, {{"split": split, "i": i}}) for i in range(40)]

    def begin(self, task, rng):
        self.number = task.params["i"]
        return {observation}

    def respond(self, action):
        if action != self.expert():
            return self.go_on("No.")
        return {turn}

    def admissible(self):
        return ["tea", "milk", self.expert()]

    def expert(self):
        return {action}
"""


def begun(folder, *, observation='"Say tea."', turn='self.succeed("Yes.")', action='"tea"', **changes):
    """A run without steps on such an environment; returns what it reported and its summary."""
    (folder / "env.py").write_text(TEA.format(observation=observation, turn=turn, action=action))
    warmup = {"episodes": 40, "max_updates": 1, "check_episodes": 2, "must_succeed": False, "noise": 0.3}
    told = {"env": {"id": f"{folder}/env.py:Env"}, "warmup": warmup, "steps": 0, "evaluation": {"limit": 2}}
    lines = []
    summary = asyncio.run(train(short_run(**{**told, **changes}), folder / "run", report=lines.append))
    return lines, summary


def refused(folder, **changes):
    with pytest.raises(ConfigError) as refusal:
        begun(folder, **changes)
    assert "\n" not in str(refusal.value) and not (folder / "run").exists(), "a folder that is free again"
    return str(refusal.value)


def test_replies_of_the_expert_that_would_be_cut_are_refused_with_the_numbers_to_give(tmp_path):
    """Three tools called by JSON, and replies of 16 tokens: 1,500 updates once ran at 100 % invalid."""
    env = {"id": CALENDAR}
    told = refused(tmp_path, env=env, sampling={"max_tokens": 16}, agent={"max_context": 128, "instructions": False})
    found = re.search(
        r"the expert's replies have up to (\d+) tokens, sampling\.max_tokens is 16; prompt and reply take up to (\d+) "
        r"tokens together, agent\.max_context is 128, too few for (\d+) of \3 demonstrations: give "
        r"--sampling\.max-tokens \1 --agent\.max-context \2$",
        told,
    )
    assert found, told
    sampling, agent = {"max_tokens": int(found[1])}, {"max_context": int(found[2]), "instructions": False}
    begun(tmp_path, env=env, sampling=sampling, agent=agent)


def test_a_context_that_ends_demonstrations_is_refused_with_the_number_to_give(tmp_path):
    episode = {"turn": 'self.succeed("Yes.") if self.turn else self.go_on("Well. " * 40)', "agent": {"max_context": 64}}
    told = refused(tmp_path, **episode)
    found = re.search(r"prompt and reply take up to (\d+) tokens .* is 64, .*: give --agent\.max-context \1$", told)
    assert found and 80 < int(found[1]) < 300, told
    begun(tmp_path, **{**episode, "agent": {"max_context": int(found[1])}})


def test_an_observation_beyond_all_bounds_is_named_as_the_cause(tmp_path):
    told = refused(tmp_path, observation='"tea " * 3000', agent={"max_context": 32})
    assert "prompt and reply take more than 2048 tokens together, agent.max_context is 32" in told
    assert told.endswith("give shorter observations, or --agent.context window")


def test_a_few_long_replies_cost_a_line_and_not_the_run(tmp_path):
    lines, summary = begun(tmp_path, action='"tea " * 20 if self.number == 7 else "tea"')
    [notice] = [line["notice"] for line in lines if line["phase"] == "notice" and "demonstrations" in line["notice"]]
    assert re.match(r"the expert's replies have up to 22 tokens, sampling\.max_tokens is 6, too few for 1 of", notice)
    assert "--sampling.max-tokens 22 would let it" in notice and notice in summary["notices"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"turn": 'self.go_on("Yes.", bonus=float("nan"))'},
            r"Rewards are not numbers: 'bonus' at turn \d of task train/\d+: return a number, or set",
        ),
        ({"turn": 'self.fail("Too bad.")'}, r"\d+ of them ended without success: lower warmup.noise, see manyturn ch"),
        (
            {"turn": 'self.go_on("Yes.")'},
            "40 of them ran into the limit of turns: lower warmup.noise, raise rollout.ma",
        ),
    ],
)
def test_demonstrations_without_a_success_say_how_they_ended(tmp_path, changes, told):
    message = refused(tmp_path, **changes)
    assert re.search(told, message), message
    assert "none of the 40 demonstrations by the expert with warmup.noise = 0.3 reached the goal" in message


@pytest.mark.parametrize(("labels", "least", "most"), [("actions", 1, 39), ("all_actions", 40, 40)])
def test_random_play_is_imitated_in_full_only_where_that_is_asked_for(tmp_path, labels, least, most):
    """Of forty episodes of random moves in three turns, about two thirds succeed."""
    warmup = {"episodes": 40, "max_updates": 1, "check_episodes": 2, "must_succeed": False, "noise": 1.0}
    _, summary = begun(tmp_path, warmup={**warmup, "labels": labels})
    assert least <= summary["warmup"]["demonstrations"] <= most
