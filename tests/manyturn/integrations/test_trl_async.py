"""Rows of TRL's asynchronous trainer: a turn that is learnt from with another's credit, or twice."""

import os
from dataclasses import asdict

import numpy as np
import pytest
from needs_host import host  # pyright: ignore[reportMissingImports]

import manyturn.credit as mc

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
GIGPO = mc.CreditConfig(advantage={"name": "gigpo", "gamma": 0.9})
REWARDS = [[0.0, 0.0, 1.0], [0.0, 0.0], [0.5, 0.0], [0.0, 1.0]]
ANCHORS = [["hall", "kitchen", "cellar"], ["hall", "garden"], ["shed", "field"], ["shed", "well"]]


@pytest.fixture(autouse=True)
def _trl() -> None:
    host("trl")


def played(skip=None):
    """Two episodes of each of two tasks, and their calls: each prompt is all that was read and said before."""
    from manyturn.integrations.trl_async import ModelCall

    rollouts, calls = [], []
    for episode, (rewards, anchors) in enumerate(zip(REWARDS, ANCHORS, strict=True)):
        history, own = [1, 2 + episode // 2], []
        for turn in range(len(rewards)):
            reply = [10 + 10 * episode + turn] * (turn + 1)
            own.append(ModelCall(list(history), reply, [-0.25 * (turn + 1)] * len(reply)))
            history += [*reply, 7]
        rewards = [None, *rewards[1:]] if episode == skip else rewards
        rollouts.append(mc.Rollout(group=f"task {episode // 2}", rewards=rewards, anchors=anchors))
        calls.append(own)
    return rollouts, calls


def expected(rollouts, calls):
    """Of each turn its credit by the library."""
    told = [
        mc.Rollout(group=one.group, rewards=one.rewards, anchors=one.anchors, tokens=[len(call.reply) for call in own])
        for one, own in zip(rollouts, calls, strict=True)
    ]
    return mc.credit_rollouts(told, GIGPO).advantage_K


def test_every_token_in_trls_packing_has_the_credit_of_its_turn():
    from trl.experimental.async_grpo.packing import TreeRow  # pyright: ignore[reportMissingImports]

    from manyturn.integrations.trl_async import turn_samples

    rollouts, calls = played()
    found = turn_samples(rollouts, calls, GIGPO, version=3, first_group=5)
    turns = [call for own in calls for call in own]
    assert len(found.samples) == len(turns) and "groups_without_signal" in found.diagnostics
    row = TreeRow()
    for sample in found.samples:
        row.add(asdict(sample))
    packed = row.pack()
    assert len(packed["input_ids"]) < sum(len(call.prompt) + len(call.reply) for call in turns), "prompts are shared"
    credit = expected(rollouts, calls)
    assert len({round(float(one), 6) for one in credit}) > 3
    by_token = np.repeat(credit, [len(call.reply) for call in turns])
    np.testing.assert_allclose(packed["advantages"].numpy(), by_token, rtol=1e-6)
    assert packed["old_log_probs"].tolist() == [number for call in turns for number in call.logprobs]
    labels = packed["shift_labels"][packed["token_index"]].tolist()
    assert labels == [token for call in turns for token in call.reply]
    assert [one.group_id for one in found.samples] == [5] * 5 + [6] * 4
    assert {one.model_version for one in found.samples} == {3}


def test_an_episode_that_could_not_be_scored_has_no_row():
    from manyturn.integrations.trl_async import turn_samples

    rollouts, calls = played(skip=1)
    found = turn_samples(rollouts, calls, GIGPO, version=0)
    assert len(found.samples) == 7 and not any(np.isnan(one.advantage) for one in found.samples)


@pytest.mark.parametrize(
    ("credit", "said"),
    [("gae", "learns a critic, and TRL has none"), ("reinforce_pp", "tells the tokens of a turn apart")],
)
def test_what_a_row_cannot_carry_is_refused_by_its_name(credit, said):
    from manyturn.integrations.trl_async import turn_samples

    with pytest.raises(ValueError, match=said):
        turn_samples(*played(), mc.CreditConfig(advantage=credit), version=0)


def test_tokens_that_do_not_fit_are_named():
    from manyturn.integrations.trl_async import turn_samples

    rollouts, calls = played()
    calls[2][1] = calls[2][1]._replace(logprobs=[])
    with pytest.raises(ValueError, match=r"turn 1 of rollout 2 has .* 2 of a reply and 0 log-probabilities"):
        turn_samples(rollouts, calls, GIGPO, version=0)
