"""A critic or an estimator with a body of its own that learns nothing, or that moves the policy."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from learner_steps import earned, episodes_of, equal, learn, learner, model, weights

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.heads.head_config import OwnCriticConfig, ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.heads.scalar_model import OwnBody
from manyturn.trainers.learn.heads.separate_critic import FixedEstimator
from manyturn.trainers.learn.learner.head_factory import head_of
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import Sample, at_replies

CRITIC = ValueHeadConfig(body="own", own=OwnCriticConfig(lr=1e-2, clip=None))
PRECISE = {"body": "own", "exploration": {"lr": 1e-2, "hidden": 16}}


def targets_of(samples: list[Sample]) -> np.ndarray:
    """A value that is known: what stands before a token decides it."""
    before = [np.concatenate([[0], sample.ids[:-1]]) % 3 for sample in samples]
    return at_replies(samples, before).astype(float)


def test_a_critic_of_its_own_learns_a_known_value_function_and_leaves_the_policy_alone():
    """A linear head on a policy that hardly moves cannot, so that it is the body which learns."""
    samples, told, made = episodes_of(12), dict[str, list[dict[str, Any]]](), {}
    for name, critic in (("own", CRITIC), ("head", ValueHeadConfig(lr=1e-2, clip=None))):
        made[name] = learner("clip", critic, lr=1e-4)
        told[name] = [learn(made[name], samples, step, targets_T=targets_of(samples)) for step in range(25)]
    first, last = told["own"][0], told["own"][-1]
    assert first["value_explained"] == pytest.approx(0, abs=1e-6), "it says nothing before it has learnt"
    assert last["value_explained"] > 0.9 and last["value_loss"] < 0.1 * first["value_loss"]
    assert told["head"][-1]["value_explained"] < 0.5
    assert equal(weights(made["own"]), weights(made["head"]))


def test_neither_body_moves_with_the_policy():
    samples = episodes_of()
    made = learner("clip", CRITIC, ProgressHeadConfig(**PRECISE), lr=1e-2)
    estimator = made.estimator
    assert isinstance(estimator, FixedEstimator)
    estimator.learn(samples, np.array([1.0, 0.0, 1.0, 0.0]), 1.0)
    fixed, said = estimator.fit.tensors(), made.read(samples).head_values("progress")
    given = {"targets_T": targets_of(samples), "outcome_E": np.zeros(4)}
    learn(made, samples, **given)
    assert equal(list(fixed.values()), list(estimator.fit.tensors().values()))
    assert equal(said, made.read(samples).head_values("progress"))
    assert any(row.any() for row in said)


def marked(count: int) -> tuple[list[Sample], np.ndarray, list[np.ndarray]]:
    """Episodes of four turns whose outcome is the share of replies that end with an even token."""
    samples, outcomes, shares = [], [], []
    for episode in range(count):
        rng = generator("marked", episode)
        reply = np.tile([-1, 0, 0], 4) + np.repeat(np.arange(4), 3) * np.tile([0, 1, 1], 4)
        ids = rng.integers(4, 12, size=len(reply))
        samples.append(Sample(episode, ids, reply >= 0, np.zeros(len(ids)), reply, 4))
        shares.append((ids[2::3] % 2 == 0) / 4)
        outcomes.append(shares[-1].sum())
    return samples, np.array(outcomes), shares


def test_the_estimator_finds_what_each_turn_contributes_from_sums_alone():
    samples, outcome_E, _ = marked(160)
    options = {**PRECISE, "exploration": {**PRECISE["exploration"], "target": "sum"}}
    estimator = learner("clip", ProgressHeadConfig(**options)).estimator
    assert estimator is not None
    for number in range(70):
        chosen = generator("chosen", number).choice(160, size=16, replace=False)
        estimator.learn([samples[i] for i in chosen], outcome_E, 1.0)
    others, outcomes, shares = marked(200)
    found, wanted = estimator.fit.over(others[160:], estimator.watch), np.concatenate(shares[160:])
    error = np.concatenate(found) - wanted
    assert np.square(error).mean() < 0.1 * wanted.var()
    totals = estimator.totals(others, 200)[160:]
    assert np.square(totals - outcomes[160:]).mean() < 0.1 * outcomes[160:].var()


def test_an_estimator_with_a_fixed_copy_trains_its_layers_alone():
    options = {"body": "own", "exploration": {"lr": 5e-3, "trains": "layers"}}
    estimator = learner("clip", ProgressHeadConfig(**options)).estimator
    assert estimator is not None
    before, samples = estimator.fit.tensors(), episodes_of()
    for _ in range(2):
        estimator.learn(samples, np.array([1.0, 0.0, 1.0, 0.0]), 1.0)
    moved = {name for name, value in estimator.fit.tensors().items() if not torch.equal(value, before.get(name, value))}
    assert moved and all(name.startswith("progress.own") for name in moved)


def test_how_rows_share_passes_does_not_change_what_the_estimator_learns():
    samples, outcome_E = episodes_of(), np.array([1.0, 0.0, 2.0, 1.0])
    found = []
    for micro_tokens in (64, 4096):
        made = learner("clip", ProgressHeadConfig(**PRECISE), double=True, micro_tokens=micro_tokens)
        assert made.estimator is not None
        losses = [made.estimator.learn(samples, outcome_E, 1.0) for _ in range(3)]
        found.append((losses, made.estimator.totals(samples, 4)))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-7)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)


def test_a_critic_of_its_own_is_in_a_checkpoint():
    samples = episodes_of()

    def fresh():
        return learner("clip", CRITIC, ProgressHeadConfig(**PRECISE), minibatch=2)

    given = {"targets_T": targets_of(samples), "outcome_E": np.zeros(4), "advantage_T": earned(samples)}
    calm, first, resumed = fresh(), fresh(), fresh()
    for made in (calm, first):
        made.estimator.learn(samples, np.array([1.0, 0.0, 1.0, 0.0]), 1.0)
    for step in range(3):
        told = learn(calm, samples, step, **dict(given))
    learn(first, samples, 0, **dict(given))
    resumed.model.load_state_dict(first.model.state_dict())
    resumed.load_plain(json.loads(json.dumps(first.plain())))
    resumed.load_tensors({name: value.clone() for name, value in first.tensors().items()})
    for step in range(1, 3):
        again = learn(resumed, samples, step, **dict(given))
    assert again == told
    ours, theirs = resumed.tensors(), calm.tensors()
    assert ours.keys() == theirs.keys() and equal(list(ours.values()), list(theirs.values()))
    with pytest.raises(ValueError, match="no value head of this kind"):
        learner("clip", ValueHeadConfig()).load_tensors(ours)


@pytest.mark.parametrize(
    "config",
    [CRITIC, ProgressHeadConfig(**PRECISE), ValueHeadConfig(fit="least_squares"), ProgressHeadConfig(hidden=4)],
    ids=["critic with a body", "estimator with a body", "solved", "two layers"],
)
def test_a_head_goes_where_a_rank_computes_and_not_where_its_copy_of_the_policy_is(config):
    """Heads of the other ranks stayed on the CPU, where no pass of a rank with a GPU could use them."""
    there = torch.device("meta")
    learner = LearnerConfig(packing="padding")  # others try a pass, which has no numbers there
    made = head_of(config, model().model, learner, PassBudget(64), device=there)
    width = model().model.config.get_text_config().hidden_size
    assert made.fit.predict(torch.zeros(2, width, device=there)).device == there, "weights elsewhere would raise"
    if isinstance(made.fit, OwnBody):
        assert made.fit.reader.model.device == there
    assert isinstance(made, FixedEstimator) == config.is_fixed, "ranks make none that learns no more"
