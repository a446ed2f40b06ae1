"""Episodes that leave a trace in an update which they are left out of, and updates that go on after a large move."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from credit_batches import batches, quick
from hypothesis import given
from learner_steps import earned, episodes_of, equal, learn, learner, weights
from short_runs import resumed_to_the_bit, short_run

from manyturn.recipes import load_recipe
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.learn.passes.samples import at_replies
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

ODD = f"{Path(__file__).parents[2].joinpath('odd_replies.py')}:OddReplies"
QUICK = {
    "env": {"id": ODD},
    "agent": {"only_admissible": True},
    "sampling": {"max_tokens": 8},
    "evaluation": {"limit": 1},
    "warmup": {"episodes": 0},
}


def steps_of(run):
    return [line for line in read_metrics(run) if line["phase"] == "train"]


@quick
@given(batch=batches(unscorable=True))
def test_truncated_episodes_that_are_left_out_are_still_compared_with(batch):
    plain = credit(batch, CreditConfig(advantage="grpo"))
    without = credit(batch, CreditConfig(advantage="grpo", truncated="left_out"))
    np.testing.assert_array_equal(without.advantage_K, plain.advantage_K)
    np.testing.assert_array_equal(without.kept_E, ~batch.truncated_E)
    assert without.diagnostics["left_out_episodes"] == pytest.approx(batch.truncated_E.mean())
    assert plain.kept_E.all() and "left_out_episodes" not in plain.diagnostics


@quick
@given(batch=batches(unscorable=True))
def test_loop_drops_an_episode_only_where_no_turn_says_much(batch):
    result = credit(batch, CreditConfig(advantage={"name": "loop", "threshold": 0.5}))
    every = credit(batch, CreditConfig(advantage={"name": "loop", "threshold": 0.0}))
    for e, kept in enumerate(result.kept_E):
        assert kept == (np.abs(every.advantage_K[batch.episode_K == e]) >= 0.5).any()
    assert every.kept_E.all()


@pytest.mark.parametrize("aggregation", ["token-mean", "seq-mean-token-mean"])
def test_an_episode_that_is_left_out_leaves_no_trace_in_the_weights(aggregation):
    samples, kept_E = episodes_of(6), np.array([True, False, True, True, False, True])
    kept = [sample for sample in samples if kept_E[sample.episode]]
    loss, options = {"name": "clip", "aggregation": aggregation}, {"minibatch": 2, "old_logprobs": "engine"}
    one, other = learner(loss, **options), learner(loss, **options)
    learn(one, samples, kept_E=kept_E)
    learn(other, kept, advantage_T=earned(kept))
    everybody = learner(loss, **options)
    learn(everybody, samples)
    assert equal(weights(one), weights(other)) and not equal(weights(one), weights(everybody))
    assert one.updates == 2 and everybody.updates == 3


def test_a_step_that_leaves_all_out_moves_nothing():
    made = learner("clip")
    before = weights(made)
    told = learn(made, episodes_of(), kept_E=np.full(4, False))
    assert equal(weights(made), before) and made.updates == 0 and "loss" not in told


def moved(made, samples, before):
    """Mean over episodes of how much less likely what was said is than before."""
    now = made.read(samples).logprob
    less = at_replies(samples, before) - at_replies(samples, [row.numpy() for row in now])
    return less.sum() / len({sample.episode for sample in samples})


def test_updates_end_where_the_policy_has_moved_too_far():
    """Two passes over all episodes: the second sees how far the first has moved, and is not applied."""
    samples = episodes_of()
    free = learner("clip", epochs=2, lr=0.05)
    before = free.read(samples).logprob
    learn(free, samples)
    once = learner("clip", lr=0.05)
    learn(once, samples)
    distance = abs(moved(once, samples, before))
    for stop, updates, like in ((0.5 * distance, 1, once), (2 * distance, 2, free)):
        made = learner("clip", epochs=2, lr=0.05, stop_kl=stop)
        told = learn(made, samples)
        assert made.updates == updates and told["stopped"] == (updates == 1)
        assert abs(told["episode_kl"]) == pytest.approx(distance / 2, rel=1e-3)  # of the first update it is 0
        assert equal(weights(made), weights(like))


def test_a_run_of_loop_drops_what_says_little_and_goes_on_to_the_bit(tmp_path):
    recipe = load_recipe("loop")
    parts = {name: recipe[name] for name in ("credit", "objective", "learner")}
    parts["learner"] = {**parts["learner"], "minibatch": 3, "lr": 0.1, "stop_kl": 0.05}
    calm = resumed_to_the_bit(short_run(**QUICK, **parts, steps=4), tmp_path)
    assert any(0 < line["left_out_episodes"] < 1 for line in steps_of(calm))
    assert any(line["stopped"] for line in steps_of(calm))
    assert recipe["learner"]["stop_kl"] == 20 and recipe["credit"]["advantage"]["threshold"] == 0.01


def test_a_run_leaves_truncated_episodes_out_only_where_it_is_told_to(tmp_path):
    """After one of three turns all are cut off, so that the update has nobody to learn from."""
    env = {"id": ODD, "args": {"max_turns": 1}}
    for choice in ("as_ended", "left_out"):
        credit_of = {"advantage": "gigpo", "rewards": [{"name": "overlong", "max_tokens": 6, "buffer": 5}]}
        config = short_run(**{**QUICK, "env": env}, credit={**credit_of, "truncated": choice}, steps=1)
        asyncio.run(train(config, tmp_path / choice))
    [with_them], [without] = steps_of(tmp_path / "as_ended"), steps_of(tmp_path / "left_out")
    assert with_them["truncated"] == without["truncated"] == 1
    assert with_them["version"] == 3 and "left_out_episodes" not in with_them
    assert without["version"] == 0 and without["left_out_episodes"] == 1
