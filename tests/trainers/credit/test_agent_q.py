"""Siblings of Agent Q share their past, and outcomes and verdicts are mixed as alpha says."""

import asyncio

import numpy as np
import pytest
from learning import DOORS

from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.credit.advantages.agent_q import AgentQConfig, agent_q
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train


def credit_of(
    outcomes: list, verdicts: list, actions: list, anchors: list, more: dict | None = None, **options: float
) -> np.ndarray:
    columns = {"action": actions, "reference": [[0.0] * len(one) for one in actions], **(more or {})}
    parts = {"outcome": outcomes, "judge": verdicts}
    batch = TurnBatch.from_episodes(parts, [0] * len(outcomes), anchors=anchors, columns=columns)
    return agent_q(batch, AgentQConfig(beta=4.0, gamma=1.0, **options)).total_K


@pytest.mark.parametrize("alpha, sign", [(0.9, 1), (0.6, 1), (0.4, -1), (0.0, -1)])
def test_alpha_decides_between_an_outcome_and_a_judge_that_says_the_opposite(alpha, sign):
    credit_K = credit_of([[1.0], [0.0]], [[0.0], [1.0]], [[0], [1]], ["a", "a"], alpha=alpha)
    assert credit_K.tolist() == [2.0 * sign, -2.0 * sign]
    near_K = credit_of([[1.0], [0.0]], [[0.0], [1.0]], [[0], [1]], ["a", "a"], alpha=alpha, threshold=0.3)
    assert near_K.any() == (abs(2 * alpha - 1) > 0.3)


def test_a_verdict_counts_for_its_own_turn_and_for_siblings_alone():
    """In the second turn "b" both did something else, but only the last two came there in the same way."""
    outcomes = [[0.0, 0.0]] * 4
    verdicts, actions = [[0, 1], [1, 0], [1, 1], [1, 0]], [[0, 0], [1, 1], [2, 0], [2, 1]]
    credit_K = credit_of(outcomes, verdicts, actions, ["ab"] * 4).reshape(-1, 2)
    assert credit_K[:2, 1].tolist() == [0.0, 0.0] and credit_K[2, 1] == -credit_K[3, 1] > 0
    assert credit_K[0, 0] < 0 < min(credit_K[1:, 0]), "a late verdict is in no early turn's return"


def test_a_branch_neither_repeats_a_pair_nor_gives_a_first_turn_more_weight():
    """The first one's turn was forked twice, and its way fails each time; the second one succeeds half the time."""
    outcomes = [[0, 1], [0, 1], [0, 0], [0, 0], [0, 0]]
    actions = [[0, 0], [1, 0], [0, 1], [0, 2], [1, 1]]
    drawers = {"drawer": [[0, 0], [1, 1], [0, 2], [0, 3], [1, 4]]}
    verdicts = [[0, 0]] * 5
    credit_K = credit_of(outcomes, verdicts, actions, ["ab", "ac", "ab", "ab", "ac"], drawers, alpha=0.99)
    credit_K = credit_K.reshape(-1, 2)
    assert credit_K[2:, 0].tolist() == [0.0] * 3, "repeated turns"
    assert credit_K[1, 0] == -credit_K[0, 0] > 0, "a half is above a third"
    assert credit_K[0, 1] > 0 > credit_K[2, 1] == credit_K[3, 1] and credit_K[1, 1] == -credit_K[4, 1] > 0
    single = credit_of(outcomes, verdicts, actions, ["ab", "ac", "ab", "ab", "ac"], drawers, alpha=0.99, threshold=0.2)
    assert single.reshape(-1, 2)[:, 0].tolist() == [0.0] * 5, "a sixth is not beyond the margin"


@pytest.mark.parametrize("recipe", ["agent-q", "agent-q-tree"])
def test_a_run_of_the_recipe_pairs_turns_by_its_judge(recipe, tmp_path):
    sizes = {
        "env": {"id": DOORS},
        "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2},
        "agent": {"only_admissible": True},
        "judge": {"min_agreement": 0.0},
        "warmup": {"episodes": 48, "must_succeed": False, "max_updates": 20, "check_every": 20, "check_episodes": 4},
        "rollout": {"tasks": 4},
        "evaluation": {"limit": 1},
        "steps": 2,
        "device": "cpu",
    }
    asyncio.run(train(configure(stacked([load_recipe(recipe), sizes])), tmp_path / "run"))
    lines = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert [line["pair_margin"] == 0 for line in lines] == [True, False]
    assert all(0 < line["paired_turns"] <= 1 and line["parts/judge"] > 0 for line in lines)
    assert all((line.get("repeated_turns", 0) > 0) == (recipe == "agent-q-tree") for line in lines)
