"""The learner: what a split, an order, a correction, a head and a checkpoint may and may not change."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from learner_steps import earned, episodes_of, equal, learn, learner, weights

from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.learn.heads.head_config import ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.passes.samples import Sample, at_replies, on_replies, samples_of

pytestmark = pytest.mark.versions

CRITIC, ESTIMATOR = ValueHeadConfig(lr=0.05), ProgressHeadConfig(lr=0.05)
EVERYTHING = {
    "name": "clip",
    "aggregation": "seq-mean-token-mean",
    "kl": {"coef": 0.1, "target": 0.05, "horizon": 10},
    "epo": {"coef": 0.05, "horizon": 8},
    "correction": {"level": "sequence", "normalise": True},
    "reject": [{"divergence": "k2", "upper": 0.1}],
}


def heads_need(made: Learner, samples: list[Sample]) -> dict[str, np.ndarray]:
    """What the heads are to learn: targets that depend on the token, outcomes that depend on the episode."""
    given, names = {}, {head.name for head in made.heads}
    if "value" in names:
        given["targets_T"] = at_replies(samples, [sample.ids % 3 for sample in samples]).astype(float)
    if "progress" in names:
        given["outcome_E"] = np.arange(1.0 + max(sample.episode for sample in samples)) % 2
    return given


def gradient(made: Learner, samples: list[Sample], **given: Any) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """The gradient of the only update of a step."""
    found: list[torch.Tensor] = []
    update = made.optimizer.update

    def watched() -> float:
        found.extend(p.grad.clone() for p in made.optimizer.trained if p.grad is not None)
        return update()

    made.optimizer.update = watched  # type: ignore[method-assign]
    figures = learn(made, samples, **heads_need(made, samples), **given)
    assert len(found) == len(made.optimizer.trained)
    return found, figures


@pytest.mark.parametrize("objective", [EVERYTHING, "gspo", "clip", {**EVERYTHING, "sequence": "branch"}])
def test_neither_micro_batches_nor_the_order_of_rows_change_the_gradient(objective):
    samples = episodes_of(noise=0.3)
    heads = (ValueHeadConfig(into_policy=0.3, hidden=4), ESTIMATOR)
    whole, told = gradient(learner(objective, *heads, double=True, micro_tokens=4096), samples)
    split, split_told = gradient(learner(objective, *heads, double=True, micro_tokens=64), samples)
    order = np.argsort([-sample.episode for sample in samples], kind="stable")  # rows of an episode stay in time order
    turned, _ = gradient(learner(objective, *heads, double=True), [samples[i] for i in order])
    for one, other, third in zip(whole, split, turned, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
        torch.testing.assert_close(one, third, rtol=0, atol=1e-6)
    assert split_told == pytest.approx(told, abs=1e-6)


def test_an_engine_that_agrees_needs_no_correction():
    """The weights are 1 and every rule is kept, so the update is the plain one to the last bit."""
    samples, rules = episodes_of(), [{"upper": 0.01}, {"divergence": "k1", "over": "sum", "upper": 1.01}]
    plain, corrected = learner(double=True), learner({"name": "clip", "correction": {}, "reject": rules}, double=True)
    for made in (plain, corrected):
        for sample, row in zip(samples, made.read(samples).logprob, strict=True):
            sample.engine_logprob[:] = row.numpy()
        figures = learn(made, samples)
    assert figures["effective_samples"] == 1 and figures["rejected_tokens"] == 0
    assert figures["engine_kl"] == 0 and figures["engine_ratio_max"] == 1
    assert equal(weights(plain), weights(corrected))


def test_weights_follow_the_engine():
    """A token that the engine drew twice as gladly as the learner would counts half."""
    samples = episodes_of()
    for sample in samples:
        sample.engine_logprob[sample.reply_mask] += np.log(2.0)
    half, _ = gradient(learner({"name": "clip", "correction": {}}, double=True), samples)
    whole, _ = gradient(learner(double=True), samples)
    for ours, theirs in zip(half, whole, strict=True):
        torch.testing.assert_close(2 * ours, theirs, rtol=1e-4, atol=1e-7)


def test_rejected_tokens_say_nothing():
    samples = episodes_of(noise=0.5)
    objective = {"name": "clip", "reject": [{"divergence": "k2", "upper": 0.05}]}
    before, told = gradient(learner(objective, double=True), samples)
    assert 0.1 < told["rejected_tokens"] < 0.9
    old = at_replies(samples, learner(double=True).read(samples).logprob)
    away = 0.5 * (old - at_replies(samples, [sample.engine_logprob for sample in samples])) ** 2 > 0.05
    after, _ = gradient(learner(objective, double=True), samples, advantage_T=np.where(away, 1e6, earned(samples)))
    assert equal(before, after)


def test_a_step_that_is_rejected_whole_changes_nothing():
    made = learner({"name": "clip", "reject": [{"upper": 1e-9}]})
    before = weights(made)
    figures = learn(made, episodes_of(noise=0.5))
    assert figures["rejected_tokens"] == 1 and made.updates == 0
    assert equal(before, weights(made))


def test_a_critic_begins_at_zero_learns_its_targets_and_leaves_the_policy_alone():
    samples, alone, made = episodes_of(), learner(), learner("clip", CRITIC)
    targets_T = heads_need(made, samples)["targets_T"]
    targets_T[::5] = np.nan
    known = np.isfinite(targets_T)
    values = made.read(samples).head_values("value")
    assert list(map(len, values)) == list(map(len, samples))
    assert not torch.cat(values).any()
    losses = []
    for step in range(40):
        learn(alone, samples, step)
        figures = learn(made, samples, step, targets_T=targets_T)
        losses.append(figures["value_loss"])
    assert losses[-1] < 0.3 * losses[0] and figures["value_explained"] > 0.3
    assert (
        np.corrcoef(at_replies(samples, made.read(samples).head_values("value"))[known], targets_T[known])[0, 1] > 0.5
    )
    assert equal(weights(alone), weights(made))
    shared = learner("clip", ValueHeadConfig(into_policy=1.0, lr=0.05))
    for step in range(2):  # in the first step the head is 0 and hands nothing on
        learn(shared, samples, step, targets_T=targets_T)
    assert not equal(weights(made), weights(shared))


@pytest.mark.parametrize("hidden", [0, 8])
def test_contributions_come_to_sum_to_the_outcome(hidden):
    samples = episodes_of()
    made = learner("clip", ProgressHeadConfig(lr=0.05, hidden=hidden), lr=1e-4)
    outcome_E = np.array([1.0, 0.0, np.nan, 2.0])
    turns = [len(set(sample.reply[sample.reply_mask])) for sample in samples]
    assert [len(row) for row in made.read(samples).head_values("progress")] == turns
    first = learn(made, samples, outcome_E=outcome_E)["progress_loss"]
    assert first == pytest.approx(np.mean([1.0, 0.0, 4.0]))
    for step in range(1, 40):
        last = learn(made, samples, step, outcome_E=outcome_E)["progress_loss"]
    assert last < 0.1
    owner = np.concatenate([np.full(n, sample.episode) for n, sample in zip(turns, samples, strict=True)])
    total_E = np.bincount(owner, np.concatenate(made.read(samples).head_values("progress")))
    assert np.abs(total_E - outcome_E)[[0, 1, 3]].max() < 0.7


def test_heads_are_given_what_they_learn_from():
    samples = episodes_of()
    for head, told in [(CRITIC, "a critic learns from"), (ESTIMATOR, "estimator learns from")]:
        with pytest.raises(ValueError, match=told):
            learn(learner("clip", head), samples)
    with pytest.raises(ValueError, match="one for each"):
        learn(learner("clip", CRITIC), samples, targets_T=np.zeros(3))
    with pytest.raises(ValueError, match=r"no head 'value': add a section \[value\]"):
        learner().read(samples).head_values("value")


@pytest.mark.parametrize("hidden", [0, 4])
def test_a_learner_that_is_resumed_goes_on_to_the_same_bits(hidden):
    samples = episodes_of(noise=0.3)

    def fresh() -> Learner:
        critic, estimator = ValueHeadConfig(hidden=hidden), ProgressHeadConfig(hidden=hidden)
        return learner(EVERYTHING, critic, estimator, epochs=2, minibatch=2)

    calm, first, resumed = fresh(), fresh(), fresh()
    needed = heads_need(calm, samples)
    for step in range(4):
        told = learn(calm, samples, step, 1 - step / 4, **needed)
    for step in range(2):
        learn(first, samples, step, 1 - step / 4, **needed)
    resumed.model.load_state_dict(first.model.state_dict())
    resumed.load_plain(json.loads(json.dumps(first.plain())))
    resumed.load_tensors({name: value.clone() for name, value in first.tensors().items()})
    for step in range(2, 4):
        again = learn(resumed, samples, step, 1 - step / 4, **needed)
    assert again == told and told["kl_coef"] != 0.1 and "epo_reference" in told
    ours, theirs = resumed.tensors(), calm.tensors()
    assert ours.keys() == theirs.keys() and equal(list(ours.values()), list(theirs.values()))
    assert equal(weights(resumed), weights(calm))
    with pytest.raises(ValueError, match="has no value head"):
        learner("clip", CRITIC).load_tensors(learner().tensors())


def test_a_kl_weight_that_has_adapted_to_0_stays_there():
    """And is not taken for one that was never adapted: five replies at no divergence take all of it away."""
    samples = episodes_of(2)
    assert sum(len(set(sample.reply[sample.reply_mask])) for sample in samples) == 5
    free, held = learner(), learner({"name": "clip", "kl": {"coef": 10.0, "target": 1.0, "horizon": 1}})
    for step in range(3):
        for made in (free, held):
            learn(made, samples, step)
        assert held.memory.kl_coef == 0
    assert equal(weights(free), weights(held))


def test_what_is_said_in_the_samples_is_in_the_order_of_turns():
    """So that arrays of the learner are token columns of a batch as they stand."""
    ledgers = [Ledger(), Ledger()]
    for turn, (prompt, reply) in enumerate([([1, 2], [10, 11]), ([1, 2, 10, 11, 3], [12]), ([7], [13, 14])]):
        ledgers[0].record(prompt, reply, [-0.1 * turn] * len(reply), version=0)
    ledgers[1].record([5], [15], [-1.0], version=0)
    task = Task("t", "train", {})
    episodes = [Episode(EpisodeKey(0, "test", "t", i), task, ledger=ledger) for i, ledger in enumerate(ledgers)]
    samples = samples_of(episodes)
    assert [sample.reply.tolist() for sample in samples] == [[-1, -1, 0, 0, -1, 1], [-1, 2, 2], [-1, 0]]
    assert [sample.turns for sample in samples] == [3, 3, 1]
    assert at_replies(samples, [sample.ids for sample in samples]).tolist() == [10, 11, 12, 13, 14, 15]
    rows = on_replies(samples, np.arange(6.0), elsewhere=-1)
    assert rows[0].tolist() == [-1, -1, 0, 1, -1, 2]
    assert at_replies(samples, rows).tolist() == [0, 1, 2, 3, 4, 5]
