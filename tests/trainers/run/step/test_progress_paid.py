"""Progress as a reward: what group comparison takes back from everybody alike, and what it cannot take back."""

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, TurnReward
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.pipeline import credit
from manyturn.trainers.play.rollout.rollout_batch import turn_batch
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.run.loop.loop import train

LAMPS = f"{Path(__file__).parents[2] / 'lamps.py'}:Lamps"
GRPO, GIGPO = {"name": "grpo", "std": False}, {"name": "gigpo", "gamma": 1.0}


def played(*wrappers: Any) -> list[Episode]:
    """Four groups of twelve by a random policy; the same episodes whatever they are paid."""

    async def run() -> list[Episode]:
        async with open_seats(LAMPS, wrappers=wrappers) as seats:
            tasks = seats.tasks("train")[:12:3]
            plan = [(task, EpisodeKey(0, "train/1", task.id, member)) for task in tasks for member in range(12)]
            return await gather(seats, Scripted(1.0), plan, max_turns=9)

    return asyncio.run(run())


def advantages(episodes: list[Episode], advantage: dict[str, Any]) -> np.ndarray:
    return credit(turn_batch(episodes, ()), CreditConfig(advantage=advantage)).advantage_K


@pytest.mark.parametrize("advantage", [GRPO, GIGPO], ids=["grpo", "gigpo"])
def test_a_potential_that_is_taken_back_changes_no_advantage_and_a_gain_changes_many(advantage):
    bare = advantages(played(), advantage)
    taken_back = advantages(played({"name": "progress_reward"}), advantage)
    assert np.allclose(taken_back, bare, atol=1e-12)
    paid = advantages(played({"name": "progress_gain"}), advantage)
    assert (np.abs(paid - bare) > 1e-3).mean() > 0.2


def test_a_gain_tells_lost_episodes_of_one_task_apart_by_how_far_they_came():
    episodes = played({"name": "progress_gain", "scale": 0.5})
    earned = advantages(episodes, GRPO)
    starts = np.cumsum([0, *(len(episode.turns) for episode in episodes)])
    pairs = 0
    for i, one in enumerate(episodes):
        for j, other in enumerate(episodes):
            came = [max(turn.progress for turn in episode.turns) for episode in (one, other)]
            same = one.task == other.task and not one.success and not other.success
            if same and came[0] > came[1] and len(one.turns) == len(other.turns):
                pairs += 1
                assert earned[starts[i]] > earned[starts[j]]
    assert pairs > 3


def test_a_discounted_potential_charges_progress_where_undiscounted_returns_are_compared():
    gamma = 0.9
    episodes, bare = (played(*wrappers) for wrappers in ([{"name": "progress_reward", "gamma": gamma}], []))
    for one, without in zip(episodes, bare, strict=True):
        later = sum(turn.progress for turn in one.turns[:-1])
        assert one.outcome - without.outcome == pytest.approx(-(1 - gamma) * later)


class AlikeConfig(Named):
    name: Literal["alike"] = "alike"


class Alike(TurnReward):
    """Pays the first turn of every episode the same. It does not preserve the optimal policy: it has no say in it."""

    preserves_optimal_policy = False
    part = "alike"

    def __init__(self, env, config):
        super().__init__(env)

    def reward_parts(self, parts, ended, info):
        return self.add(parts, 0.5 * (info["turn"] == 1))


def one_step(wrappers, **credit):
    return configure(
        {
            "env": {"id": LAMPS, "wrappers": wrappers},
            "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 9},
            "agent": {"format": "free_text", "instructions": False, "max_context": 128, "only_admissible": True},
            "sampling": {"max_tokens": 12},
            "warmup": {
                "episodes": 36,
                "noise": 0.6,
                "lr": 1e-2,
                "max_updates": 30,
                "check_every": 30,
                "check_episodes": 2,
                "must_succeed": False,
            },
            "rollout": {"tasks": 4, "group": 4},
            "credit": {"advantage": "grpo", **credit},
            "learner": {"minibatch": 24},
            "evaluation": {"limit": 1},
            "steps": 1,
            "device": "cpu",
            "threads": 1,
        }
    )


def test_a_wrapper_that_pays_all_alike_is_named_after_the_first_step_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(WRAPPERS, "_entries", dict(WRAPPERS._entries))
    WRAPPERS.register(AlikeConfig)(Alike)
    recipe = one_step(["alike", "progress_gain"])
    summary = asyncio.run(train(recipe, tmp_path / "run"))
    told = [notice for notice in summary["notices"] if "paid in the first step, and no advantage" in notice]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    named = [line.get("idle_wrappers") for line in lines if line["phase"] == "train"]
    assert len(told) == 1 and told[0].startswith("env.wrappers alike paid") and named == ["alike"]


@pytest.mark.parametrize(("weight", "idle"), [(0.0, True), (1.0, False)])
def test_a_method_for_turns_that_does_what_grpo_does_is_named_after_the_first_step(weight, idle, tmp_path):
    rewards = [{"name": "part_weights", "weights": {"step": weight}}]
    summary = asyncio.run(train(one_step([], advantage="mt_grpo", rewards=rewards), tmp_path / "run"))
    told = [notice for notice in summary["notices"] if "what grpo gives" in notice]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    named = [line.get("idle_advantage") for line in lines if line["phase"] == "train"]
    assert (len(told), named) == ((1, ["mt_grpo"]) if idle else (0, [None]))
