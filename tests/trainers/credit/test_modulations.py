"""Weights by entropy that would turn a sign, move what they leave alone, or count what nobody knows."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from credit_batches import advantage, batches, quick
from hypothesis import assume, given
from hypothesis import strategies as st

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.credit.stages import MODULATIONS

MODULATED = [{"name": "empg", "k": 2.0}, {"name": "entropy_weight", "a": -0.5}]


def run(batch, stages):
    return credit(batch, CreditConfig(**stages))


@quick
@given(batch=batches(unscorable=True))
def test_empg_leaves_no_mean_and_no_bonus_to_last_turns(batch):
    counted_K = batch.scorable_K & (batch.tokens_K > 0)
    assume(counted_K.any())
    modulated_K = run(batch, {"advantage": "grpo", "modulation": ["empg"]}).advantage_K
    assert modulated_K[counted_K].mean() == pytest.approx(0, abs=1e-9)
    plain_K = advantage(batch, {"name": "grpo"})
    assert (modulated_K[~counted_K] == plain_K[~counted_K]).all()
    flat = {"name": "empg", "k": 0.0, "k_f": 0.0, "zeta": 0.5}
    bonus_K = run(batch, {"advantage": "grpo", "modulation": [flat]}).advantage_K - plain_K
    followed = set(zip(batch.episode_K[counted_K], batch.turn_K[counted_K] - 1, strict=True))
    has_K = np.array([place in followed for place in zip(batch.episode_K, batch.turn_K, strict=True)])
    with_K, without_K = bonus_K[counted_K & has_K], bonus_K[counted_K & ~has_K]
    for same_K in (with_K, without_K):
        np.testing.assert_allclose(same_K, same_K[:1].repeat(len(same_K)), atol=1e-6)
    if len(with_K) and len(without_K):
        assert with_K[0] - without_K[0] == pytest.approx(0.5, abs=1e-6)


@quick
@given(batch=batches(unscorable=True), a=st.sampled_from([-1.0, -0.2, 0.2, 1.0]))
def test_entropy_weights_never_turn_a_sign_and_leave_equal_entropies_alone(batch, a):
    weigh = {"name": "entropy_weight", "a": a}
    plain_K = advantage(batch, {"name": "grpo"})
    weighed_K = run(batch, {"advantage": "grpo", "modulation": [weigh]}).advantage_K
    assert (weighed_K * plain_K >= 0).all()
    equal = replace(batch, token_columns={"entropy": np.full(len(batch.turn_of_T), 0.7)})
    np.testing.assert_allclose(run(equal, {"advantage": "grpo", "modulation": [weigh]}).advantage_K, plain_K, rtol=1e-6)


def test_the_more_certain_of_two_turns_weighs_more_in_empg_and_the_less_certain_in_entropy_weight():
    entropy = {"entropy": [[[0.1]], [[2.0]], [[1.0]]]}
    batch = TurnBatch.from_episodes([[1.0], [1.0], [0.0]], groups=[0, 0, 0], token_columns=entropy)
    sure, unsure, _ = run(batch, {"advantage": "grpo", "modulation": ["empg"]}).advantage_K
    assert sure > unsure
    sure, unsure, _ = run(batch, {"advantage": "grpo", "modulation": ["entropy_weight"]}).advantage_K
    assert sure < unsure


@pytest.mark.parametrize("modulation", MODULATED, ids=str)
def test_entropies_that_are_missing_are_named(modulation):
    entropy = {"entropy": [[[0.5], [float("nan"), 1.0]]]}
    batch = TurnBatch.from_episodes([[0.0, 1.0]], ["a"], tokens=[[1, 2]], token_columns=entropy)
    stages = {"advantage": "grpo", "modulation": [modulation]}
    with pytest.raises(ValueError, match="the entropy of reply 1 is nan: the engine must return entropies"):
        run(batch, stages)
    with pytest.raises(ValueError, match="no column 'entropy' over reply tokens"):
        run(replace(batch, token_columns={}), stages)
    assert MODULATIONS.parse(modulation).needs == {"entropy"}


def test_policy_shaping_is_the_gradient_of_the_published_loss_at_guided_tokens_alone():
    """Theirs is A p / (p + 0.1) of the refined tokens, and A times the ratio of the others."""
    p = [0.001, 0.1, 0.5, 1.0]
    tokens = {"tokens": [[2], [2]], "token_columns": {"likelihood": [[p[:2]], [p[2:]]]}}
    for guided in (0, 1):
        batch = TurnBatch.from_episodes([[1.0], [0.0]], [0, 0], columns={"guided": [[guided], [1]]}, **tokens)
        advantage_T = run(
            batch, {"advantage": {"name": "grpo", "std": False}, "modulation": ["policy_shaping"]}
        ).token_T
        logp = torch.tensor(p, dtype=torch.float64).log().requires_grad_()
        plain = torch.tensor([0.5, 0.5, -0.5, -0.5], dtype=torch.float64)
        shaped = torch.tensor([guided, guided, 1, 1]) > 0
        ratio = torch.where(shaped, logp.exp() / (logp.exp() + 0.1), (logp - logp.detach()).exp())
        (plain * ratio).sum().backward()
        np.testing.assert_allclose(advantage_T, logp.grad.numpy(), rtol=1e-12)
