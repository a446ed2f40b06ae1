"""SPA that teaches less than PPO does where its contributions are true, or an estimator that learns nothing."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
from short_runs import short_run

import manyturn as mt
import manyturn.credit as mc
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.credit.stages import REWARDS, StageConfig
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

SIGNS = Path(__file__).parents[1] / "signs.py"


class EffectConfig(StageConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"contribution"})
    name: Literal["compared_effect"] = "compared_effect"


CORRELATIONS: list[float] = []  # of contributions with true effects, in each step


@REWARDS.register(EffectConfig)
def compared_effect(batch: mc.TurnBatch, config: EffectConfig) -> mc.TurnBatch:
    """Take the true effects away, and note how contributions correlate with them before the last turn."""
    if "effect" not in batch.parts:  # in this process an audit tries every method that is registered
        return batch
    effect_K, contribution_K = batch.parts["effect"], batch.columns["contribution"]
    before_K = batch.turn_K < np.bincount(batch.episode_K)[batch.episode_K] - 1
    if contribution_K.any():
        CORRELATIONS.append(float(np.corrcoef(effect_K[before_K], contribution_K[before_K])[0, 1]))
    return replace(batch, parts={**batch.parts, "effect": 0.0 * effect_K})


def walks(world: str, noise: float, episodes: int):
    """Outcomes, true contributions and values of episodes of a policy that follows the expert or moves at random."""
    env, rows = mt.make(f"manyturn/Pivot{world}-v0").unwrapped, []
    for number in range(episodes):
        rng = generator("walks", world, number)
        env.reset(seed=number, options={"task": env.tasks("train")[number].id})
        rewards, effects, values, over = [], [], [], False
        while not over:
            action = rng.choice(env.admissible()) if rng.random() < noise else env.expert()
            effects.append(env.effect(action, noise))
            values.append(env.value(noise))
            *_, reward, terminated, truncated, _ = env.step(action)
            rewards.append(reward)
            over = terminated or truncated
        rows.append((rewards, effects, values))
    return zip(*rows, strict=True)


@pytest.mark.parametrize("noise", [1.0, 0.4])
@pytest.mark.parametrize("world", ["One", "Sign", "Pair", "Repair", "Delay"])
def test_with_true_contributions_spa_gives_the_credit_of_ppo(world, noise):
    """Both have the critic of their own rewards that knows all: values of states, or of beginnings."""
    rewards, effects, values = walks(world, noise, 48)
    credits = {}
    for name, stages, critic in (
        ("ppo", [], values),
        ("spa", [{"name": "spa", "beta": 0.0}], [[row[0]] * len(row) for row in values]),
    ):
        batch = mc.TurnBatch.from_episodes(
            rewards,
            groups=range(len(rewards)),
            columns={"contribution": effects},
            token_columns={"value": [[[value] for value in row] for row in critic]},
        )
        credits[name] = mc.credit(batch, mc.CreditConfig(rewards=stages, advantage={"name": "gae"})).advantage_K
    assert np.abs(credits["ppo"]).max() > 0.5
    np.testing.assert_allclose(credits["spa"], credits["ppo"], atol=1e-9)


def explored(folder: Path, world: str, **progress):
    """The lines of a step after exploration of a world, with a policy that moves at random."""
    config = short_run(
        env={"id": f"{SIGNS}:{world}"},
        agent={"only_admissible": True},
        sampling={"max_tokens": 8},
        warmup={"episodes": 0},
        rollout={"tasks": 32, "group": 4},
        credit={"advantage": "gae", "rewards": ["compared_effect", "spa"]},
        value={"fit": "least_squares"},
        progress={"body": "own", "exploration": {"episodes": 256, "lr": 3e-3, "passes": 12}, **progress},
        evaluation={"limit": 1},
        steps=1,
    )
    notices = []
    summary = asyncio.run(train(config, folder, report=notices.append))
    [line] = [line for line in read_metrics(folder) if line["phase"] == "train"]
    return summary, line, [line["notice"] for line in notices if "notice" in line]


@pytest.mark.deep
def test_the_estimator_learns_where_the_state_shows_what_a_turn_contributed(tmp_path):
    summary, line, _ = explored(tmp_path / "run", "Signs")
    assert summary["exploration"]["estimate_explained"] > 0.3
    assert line["contribution_weight"] == line["contribution_explained"] > 0.3
    assert CORRELATIONS[-1] > 0.3


def test_an_estimator_that_explains_too_little_leaves_credit_as_it_was_or_stops_the_run(tmp_path):
    """Noise was paid at full weight, and a wage on top."""
    dull = {"least_explained": 0.99, "exploration": {"episodes": 16, "passes": 1}}
    _, line, notices = explored(tmp_path / "run", "Signs", **dull)
    assert line["contribution_weight"] == 0.0 and any("the last turn earns the outcome" in one for one in notices)
    stops = {**dull, "exploration": {**dull["exploration"], "unexplained": "stop"}}
    with pytest.raises(LearningFailed, match=r"less than progress\.least_explained = 0\.99: raise"):
        explored(tmp_path / "stopped", "Signs", **stops)
