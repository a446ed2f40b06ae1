"""Siblings of a fork are compared with each other, and what a branch repeats is nobody's second draw."""

import asyncio
import json

import numpy as np
import pytest
from credit_batches import advantage, batches, quick
from hypothesis import given
from learning import DOORS

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.random_keys import generator
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

WINS = {(0, 0): 0.9, (0, 1): 0.1, (1, 0): 0.5, (1, 1): 0.5}  # chance of success after both actions
FIRST, SECOND = 0.5, {0: 0.25, 1: 0.5}  # chance of action 1, at the first turn and after each first action


def group(number: int) -> tuple[list[list[float]], list[list[int]], list[tuple[int, int]]]:
    """Rewards, drawers and actions of a group: two episodes from the reset, and two branches of each second turn."""
    rng = generator("forks", number)
    first = [int(rng.random() < FIRST) for _ in range(2)]
    starts = [first[0], first[1], first[0], first[0], first[1], first[1]]
    played = [(one, int(rng.random() < SECOND[one])) for one in starts]
    drawers = [[0, 0], [1, 1], [0, 2], [0, 3], [1, 4], [1, 5]]
    return [[0.0, float(rng.random() < WINS[actions])] for actions in played], drawers, played


def test_the_mean_advantage_of_each_draw_is_its_true_effect():
    """Were a repeated turn taken for a draw, or a value weighted by its episodes, second turns would be off."""
    true = {}
    value = {one: (1 - p) * WINS[one, 0] + p * WINS[one, 1] for one, p in SECOND.items()}
    start = (1 - FIRST) * value[0] + FIRST * value[1]
    true |= {(0, one): value[one] - start for one in value}
    true |= {(1, *pair): WINS[pair] - value[pair[0]] for pair in WINS}
    rewards, drawers, names, played = [], [], [], []
    for number in range(4000):
        mine = group(number)
        rewards += mine[0]
        drawers += mine[1]
        played += mine[2]
        names += [number] * 6
    batch = TurnBatch.from_episodes(rewards, names, columns={"drawer": drawers})
    advantage_K = advantage(batch, {"name": "forks"}).reshape(-1, 2)
    found: dict[tuple[int, ...], list[float]] = {}
    for (one, two), drawer, credit in zip(played, drawers, advantage_K, strict=True):
        if drawer[0] == drawer[1]:
            found.setdefault((0, one), []).append(credit[0])
        else:
            assert credit[0] == 0, "a repeated turn is learnt from where it was drawn"
        found.setdefault((1, one, two), []).append(credit[1])
    for draw, values in found.items():
        assert np.mean(values) == pytest.approx(true[draw], abs=4.5 * np.std(values) / len(values) ** 0.5), draw


@quick
@given(batch=batches(unscorable=True, penalties=False))
def test_without_branches_it_is_rloo(batch):
    np.testing.assert_allclose(advantage(batch, {"name": "forks"}), advantage(batch, {"name": "rloo"}), atol=1e-9)


@pytest.mark.parametrize("recipe", ["bpo", "pav"])
def test_a_run_of_the_recipe_compares_siblings_and_counts_what_it_drew(recipe, tmp_path):
    sizes = {
        "env": {"id": DOORS},
        "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2},
        "warmup": {"episodes": 48, "must_succeed": False, "max_updates": 20, "check_every": 20, "check_episodes": 4},
        "rollout": {"tasks": 4, "branching": {"initial": 2}},
        "evaluation": {"limit": 1},
        "steps": 2,
        "device": "cpu",
    }
    asyncio.run(train(configure(stacked([load_recipe(recipe), sizes])), tmp_path / "run"))
    lines = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert len(lines) == 2
    for line in lines:
        assert line["branched"] > 0.3 and 0 < line["repeated_turns"] < 1 and 0 < line["compared_draws"] <= 1
        assert line["drawn_tokens"] < line["trained_tokens"], json.dumps(line)


def test_without_branching_it_is_refused():
    with pytest.raises(ConfigError, match=r"rollout\.branching"):
        configure({"env": {"id": "manyturn/Maze-v0"}, "credit": {"advantage": "forks"}})
