"""Estimates that are not the true effect of a turn, errors that promise too much, scores that see what is not there."""

import numpy as np
import pytest

import manyturn as mt
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.handle.env_handle import EnvError
from manyturn.trainers.credit.audit.scores import Scorer

WORLDS = ("One", "Sign", "Pair", "Repair", "Delay", "Luck")


def closed_form(audit, env, noise):
    """The effect of each turn that was played, by the world itself."""
    effects = []
    for task in audit.played.tasks:
        for episode in task.episodes:
            env.reset(seed=0, options={"task": task.task})
            for turn in episode.turns:
                effects.append(env.effect(turn.action, noise))
                env.step(turn.action)
    return np.array(effects)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("policy", "noise", "world"), [*(("random", 1.0, one) for one in WORLDS), ("expert:0.6", 0.6, "Pair")]
)
def test_the_truth_is_the_closed_form_and_noise_is_none(policy, noise, world):
    name = f"manyturn/Pivot{world}-v0"
    audit = mt.credit_audit(name, policy, methods=["grpo"], tasks=6, group=5, reliability=0.97)
    exact, effects = closed_form(audit, mt.make(name).unwrapped, noise), audit.sample.effects
    errors = (effects.effect_K - exact) / effects.error_K
    assert audit.truth.reliability >= 0.97
    assert (errors**2).mean() < 2 and np.abs(errors).max() < 5
    scorer = Scorer(audit.sample)
    itself = scorer.score("exact", exact)
    assert itself.correlation.mean > 0.98 and itself.corrected >= 0.99
    drawn = [scorer.score("noise", generator("noise", world, n).normal(size=len(exact))) for n in range(60)]
    for ends in ([one.correlation for one in drawn], [one.within for one in drawn]):
        assert np.mean([one.low < 0 < one.high for one in ends]) > 0.85, "they hold 0 in 95 of 100"
    assert audit.ranked[0].within.mean == pytest.approx(0, abs=1e-9), "GRPO gives an episode one number"


def test_luck_is_no_skill_unless_chance_stays_as_it_was():
    options = dict(methods=["grpo"], tasks=6, group=6, reliability=0.9)
    seen = {}
    for chance in ("redrawn", "as_played"):
        audit = mt.credit_audit("manyturn/PivotLuck-v0", "random", chance=chance, **options)
        turns = [turn for task in audit.played.tasks for turn in task.turns]
        lucky = np.array(["purse. Note" in turn.observation for turn in turns])
        at_draw = np.roll(lucky, -1)
        seen[chance] = float(np.abs(audit.sample.effects.effect_K[at_draw]).mean())
    assert seen["redrawn"] < 0.06 and seen["as_played"] > 0.25


def test_an_environment_without_snapshots_has_the_same_truth(tmp_path):
    file = tmp_path / "plain.py"
    file.write_text(PLAIN, encoding="utf-8")
    truths = [
        mt.credit_audit(f"{file}:{kind}", f"{file}:guess", methods=["grpo"], tasks=2, group=6, reliability=0.9)
        for kind in ("Plain", "Saved")
    ]
    effects = [audit.sample.effects for audit in truths]
    assert np.array_equal(effects[0].effect_K, effects[1].effect_K)
    assert np.abs(effects[0].effect_K).max() > 0.3
    with pytest.raises(EnvError, match="save and load"):
        mt.credit_audit(f"{file}:Drifting", f"{file}:guess", methods=["grpo"], tasks=2, group=4)


PLAIN = '''
import random

import gymnasium
import manyturn as mt

WORDS = ("left", "right")


def guess(observation, info):
    return WORDS[random.Random(info["seed"]).randrange(2)]


class Plain(gymnasium.Env):
    """Twice the same way."""

    observation_space = action_space = mt.TextSpace()
    max_turns = 3

    def reset(self, *, seed=None, options=None):
        self.ways = []
        return "Go.", {}

    def step(self, action):
        self.ways.append(action)
        over = len(self.ways) == 2
        won = over and self.ways[0] == self.ways[1] == "left"
        return f"{len(self.ways)}", float(won), over, False, {}


class Drifting(Plain):
    """Another text each time."""

    count = 0

    def step(self, action):
        Drifting.count += 1
        _, *rest = super().step(action)
        return f"Move {self.count}", *rest


class Saved(mt.TextEnv):
    """The same, with snapshots."""

    def tasks(self, split):
        return [mt.Task(f"{split}/{n}", split, {"n": n, "split": split}) for n in range(4)]

    def begin(self, task, rng):
        self.ways = []
        return "Go."

    def respond(self, action):
        self.ways.append(action)
        if len(self.ways) < 2:
            return self.go_on("1")
        return self.succeed("2") if self.ways == ["left", "left"] else self.fail("2")

    def save(self):
        return " ".join(self.ways).encode()

    def load(self, data):
        self.ways = data.decode().split()
'''
