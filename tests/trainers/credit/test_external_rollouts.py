"""Rollouts of another trainer: numbers on the wrong token, and records that do not fit and are taken all the same."""

import re
from typing import Any

import numpy as np
import pytest
from golden_advantages import gigpo_config
from golden_frame import close
from needs_files import golden_file

import manyturn.credit as mc

NAN = float("nan")


def rows_of(inputs: dict[str, Any]) -> list[list[int]]:
    """Rows of a golden file, which are turns, by their trajectory."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(inputs["traj_index"]):
        rows.setdefault(name, []).append(row)
    return list(rows.values())


def cases() -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in golden_file("gigpo_pipeline")["cases"]]


@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize("rows", ["turns", "episodes"])
def test_the_numbers_of_gigpos_authors_arrive_at_the_tokens_of_another_trainer(case, rows):
    inputs, params = case["inputs"], case["params"]
    mask_KT, expected_KT = np.array(inputs["response_mask"]), np.array(case["expected"]["advantages"])
    episodes = rows_of(inputs)
    said = [np.concatenate([np.append(mask_KT[row][mask_KT[row] > 0], 0) for row in own]) for own in episodes]
    rollouts = [
        mc.Rollout(
            group=inputs["group_index"][own[0]],
            rewards=[inputs["step_env_reward"][row] for row in own],
            anchors=[inputs["anchor_obs"][row] for row in own],
            format_valid=[inputs["is_action_valid"][row] for row in own],
            **({"tokens": mask_KT[own].sum(1).tolist()} if rows == "turns" else {"mask": line}),
        )
        for own, line in zip(episodes, said, strict=True)
    ]
    coef = params["invalid_action_penalty_coef"]
    penalty = ({"name": "invalid_penalty", "coef": coef},) if coef else ()
    earned = mc.credit_rollouts(
        rollouts, mc.CreditConfig(rewards=penalty, advantage=gigpo_config(case, gamma=params["gamma"]))
    )
    order = [row for own in episodes for row in own]
    if rows == "turns":
        ours_KT = mc.on_mask(earned.advantage_T, earned.batch, mask_KT[order], rows="turns")
    else:
        width = max(map(len, said))
        padded = np.array([np.pad(line, (0, width - len(line))) for line in said])
        placed = mc.on_mask(earned.advantage_T, earned.batch, padded, fill=NAN)
        assert (np.isnan(placed) == (padded == 0)).all()
        ours_KT = np.zeros_like(expected_KT)
        ours_KT[mask_KT[order] > 0] = placed[padded > 0]
    # Where a group has no spread, float32 divides a rounding error by eps; the golden test of credit has the same rule.
    settled = np.abs(expected_KT[order]).max(1) < 1e3
    assert settled.mean() > 0.5
    close(case, ours_KT[settled], expected_KT[order][settled])


def two_tasks(**changes: Any) -> list[mc.Rollout]:
    """Four rollouts of two tasks, whose replies have tokens, values, entropies and contributions."""
    draw = np.random.default_rng(7)
    turns = [3, 2, 1, 2]
    lengths = [draw.integers(1, 4, count).tolist() for count in turns]
    return [
        mc.Rollout(
            **{
                "group": f"task {place // 2}",
                "rewards": {
                    "outcome": [0.0] * (count - 1) + [float(place % 2)],
                    "step": draw.normal(size=count).tolist(),
                },
                "anchors": draw.integers(0, 2, count).tolist(),
                "tokens": tokens,
                "columns": {"contribution": draw.normal(size=count).tolist()},
                "token_columns": {
                    "value": [draw.normal(size=n).tolist() for n in tokens],
                    "entropy": [draw.random(n).tolist() for n in tokens],
                },
                **changes,
            }
        )
        for place, (count, tokens) in enumerate(zip(turns, lengths, strict=True))
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"advantage": "gigpo"},
        {"advantage": "mt_grpo", "modulation": ("empg",)},
        {"advantage": "gae"},
        {"advantage": "bilevel_gae"},
        {"rewards": ({"name": "gated", "gates": ({"threshold": 0.5},)},), "advantage": "gigpo"},
        {"rewards": ("spa",), "advantage": "reinforce_pp"},
    ],
    ids=lambda options: "-".join(str(stage) for stage in options.values())[:40],
)
def test_every_token_gets_what_the_pipeline_gives_it(options):
    rollouts, config = two_tasks(), mc.CreditConfig(**options)
    earned = mc.credit_rollouts(rollouts, config)
    masks = [[place for n in rollout.tokens for place in (0, *[1] * n)] for rollout in rollouts]
    width = max(map(len, masks))
    mask_BT = np.array([mask + [0] * (width - len(mask)) for mask in masks])
    batch = mc.TurnBatch.from_episodes(
        {part: [rollout.rewards[part] for rollout in rollouts] for part in ("outcome", "step")},
        [rollout.group for rollout in rollouts],
        anchors=[rollout.anchors for rollout in rollouts],
        tokens=[rollout.tokens for rollout in rollouts],
        columns={"contribution": [rollout.columns["contribution"] for rollout in rollouts]},
        token_columns={name: [rollout.token_columns[name] for rollout in rollouts] for name in ("value", "entropy")},
    )
    direct = mc.credit(batch, config)
    placed_BT = mc.on_mask(earned.advantage_T, earned.batch, mask_BT)
    assert placed_BT[mask_BT > 0].tolist() == direct.advantage_T.tolist()
    assert not placed_BT[mask_BT == 0].any() and np.ptp(direct.advantage_T) > 0
    replies = [reply for episode in mc.by_reply(earned.advantage_T, earned.batch) for reply in episode]
    assert np.concatenate(replies).tolist() == direct.advantage_T.tolist()
    if earned.targets_T is not None:
        targets_BT = mc.on_mask(earned.targets_T, earned.batch, mask_BT, fill=NAN)
        assert (np.isnan(targets_BT) == (mask_BT == 0)).all()


def test_a_batch_whose_turns_are_in_another_order_is_laid_out_in_time():
    batch = mc.TurnBatch(
        group_K=np.zeros(3, int),
        episode_K=np.array([1, 0, 1]),
        turn_K=np.array([1, 0, 0]),
        parts={"outcome": np.zeros(3)},
        format_valid_K=np.ones(3, bool),
        understood_K=np.ones(3, bool),
        tokens_K=np.array([2, 1, 1]),
        truncated_E=np.zeros(2, bool),
    )
    placed = mc.on_mask([1.0, 2.0, 3.0, 4.0], batch, [[0, 1, 0, 0], [1, 0, 1, 1]])
    assert placed.tolist() == [[0, 3, 0, 0], [4, 0, 1, 2]]
    assert [[reply.tolist() for reply in episode] for episode in mc.by_reply([1.0, 2, 3, 4], batch)] == [
        [[3]],
        [[4], [1, 2]],
    ]


def test_a_mask_and_counted_tokens_say_the_same():
    by_mask = mc.batch_of(
        [mc.Rollout(group=0, rewards=[0, 1], mask=[0, 1, 1, 0, 1], token_columns={"value": [9, 1, 2, 9, 3]})]
    )
    by_ids = mc.batch_of(
        [mc.Rollout(group=0, rewards=1.0, tokens=[[7, 8], [9]], token_columns={"value": [[1, 2], [3]]})]
    )
    for batch in (by_mask, by_ids):
        assert batch.tokens_K.tolist() == [2, 1] and batch.reward_K.tolist() == [0, 1]
        assert batch.token_columns["value"].tolist() == [1, 2, 3]


def test_an_episode_that_could_not_be_scored_moves_nobody_and_is_never_a_zero():
    tries = [mc.Rollout(group=0, rewards=reward, tokens=[1, 2]) for reward in (1.0, 0.0)]
    config = mc.CreditConfig(advantage="grpo")
    alone = mc.credit_rollouts(tries, config).advantage_T
    for lost in (None, NAN, [0.0, None]):
        earned = mc.credit_rollouts([*tries, mc.Rollout(group=0, rewards=lost, tokens=[1, 2])], config)
        assert earned.advantage_T.tolist() == [*alone.tolist(), 0, 0, 0]
        assert mc.learnt_mask(earned, np.ones((3, 3), int)).tolist() == [[1] * 3, [1] * 3, [0] * 3]
        assert mc.learnt_mask(earned, np.ones((6, 2), int), rows="turns").sum(1).tolist() == [2, 2, 2, 2, 0, 0]


@pytest.mark.parametrize(
    ("changes", "said"),  # each begins with the rollout's place
    [
        ({"group": None}, "it has no group: name its task"),
        ({"tokens": [1, 1], "mask": [1, 0, 1]}, "it has both tokens and mask"),
        ({"rewards": [0.0], "tokens": [1, 1]}, "rewards is of 1 turns, and tokens of 2"),
        ({"rewards": [0.0, 1.0], "mask": [1, 1, 0]}, "rewards is of 2 turns, and mask of 1"),
        ({"anchors": ["x"], "tokens": [1, 1]}, "anchors is of 1 turns, and tokens of 2"),
        ({"rewards": {"outcome": [0, 1], "step": [0]}}, "rewards['outcome'] is of 2 turns, and rewards['step'] of 1"),
        ({"rewards": 1.0}, "one reward does not say how many turns there were"),
        ({"rewards": []}, "it has no turn: leave it out"),
        ({"mask": [[1, 0]]}, "mask has 2 dimensions"),
        ({"tokens": [2, 1], "token_columns": {"value": [[1], [1]]}}, "token_columns['value'] is of replies of [1, 1]"),
        ({"mask": [1, 0, 1], "token_columns": {"value": [1, 2]}}, "token_columns['value'] has 2 entries for a mask of"),
    ],
)
def test_a_rollout_that_does_not_fit_is_named_with_what_does_not(changes, said):
    with pytest.raises(ValueError, match=re.escape(f"rollout 0: {said}")):
        mc.batch_of([mc.Rollout(**{"group": "a", "rewards": [0, 1], **changes})])


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"anchors": None}, {"advantage": "gigpo"}, "give an anchor for each turn, or take a method without them"),
        ({"anchors": None}, {"advantage": {"name": "gigpo", "similarity": 0.9}}, "give an anchor text for each turn"),
        ({"token_columns": {}}, {"advantage": "gae"}, "gae needs 'value', which the rollouts lack: give it in columns"),
        (
            {"columns": {}},
            {"rewards": ("spa",), "advantage": "mt_grpo"},
            "spa needs 'contribution', which the rollouts",
        ),
    ],
)
def test_a_method_that_lacks_something_says_what_and_where_to_put_it(changes, options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        mc.credit_rollouts(two_tasks(**changes), mc.CreditConfig(**options))


def test_rollouts_that_have_nobody_to_be_compared_with_are_refused():
    """Every advantage would be 0, and a run would learn nothing for hours."""
    alone = [mc.Rollout(group=place, rewards=float(place), tokens=[1]) for place in range(3)]
    with pytest.raises(ValueError, match="each rollout has a group of its own, and grpo compares those of one group"):
        mc.credit_rollouts(alone, mc.CreditConfig(advantage="grpo"))
    assert mc.credit_rollouts(alone, mc.CreditConfig(advantage="reinforce_pp")).advantage_T.any()


def test_what_only_some_rollouts_have_is_refused():
    others = two_tasks()[1:]
    for name, said in (
        ("anchors", "rollout 0 lacks anchors, which rollout 1 has"),
        ("columns", "rollout 0 lacks the column 'contribution', which rollout 1 has"),
        ("token_columns", "rollout 0 lacks the token column 'value', which rollout 1 has"),
    ):
        without = two_tasks(**{name: {} if "columns" in name else None})[0]
        with pytest.raises(ValueError, match=re.escape(said)):
            mc.batch_of([without, *others])
    with pytest.raises(ValueError, match="rollout 1 lacks the reward part 'extra'"):
        mc.batch_of([mc.Rollout(group=0, rewards={"outcome": [1], "extra": [1]}), mc.Rollout(group=0, rewards=[1])])
    with pytest.raises(ValueError, match="there are no rollouts"):
        mc.batch_of([])


def test_a_mask_whose_runs_contradict_the_replies_is_refused():
    """The number of tokens was right, and the first turn's credit went to the second reply."""
    for tokens, mask in (([2, 1], [1, 0, 1, 1]), ([1, 2], [1, 1, 0, 1]), ([2, 3, 1], [1, 1, 1, 0, 1, 0, 1, 1])):
        batch = mc.TurnBatch.from_episodes([[0] * len(tokens)], groups=[0], tokens=[tokens])
        with pytest.raises(ValueError, match=re.escape(f"replies have {tokens} tokens, and runs")):
            mc.on_mask(np.arange(sum(tokens)), batch, [mask])


@pytest.mark.parametrize(
    ("tokens", "mask"),
    [
        ([2, 1], [1, 1, 1, 0]),  # nothing between two replies
        ([3, 1], [1, 0, 1, 1, 0, 1]),  # a token inside of a reply is masked
        ([0, 2, 0, 1], [0, 1, 1, 0, 1]),  # empty replies
        ([2, 2, 1, 1], [1, 0, 1, 0, 1, 1, 0, 1, 1]),  # a gap in one place, two replies in a run in another
        ([], [0, 0]),
    ],
)
def test_a_mask_with_gaps_inside_replies_or_without_gaps_between_them_is_taken(tokens, mask):
    rewards, lengths = ([[0] * len(tokens)], [tokens]) if tokens else ([[0]], [[0]])
    batch = mc.TurnBatch.from_episodes(rewards, groups=[0], tokens=lengths)
    placed = mc.on_mask(np.arange(sum(tokens)), batch, [mask], fill=NAN)[0]
    assert placed[np.array(mask) > 0].tolist() == list(range(sum(tokens)))


def test_a_dictionary_is_answered_with_what_to_give():
    tries = [mc.Rollout(group=0, rewards=1.0, tokens=[1]), {"group": 0, "rewards": 0.0, "tokens": [1]}]
    with pytest.raises(TypeError, match=re.escape("rollout 1 is of type dict: give mc.Rollout(**...)")):
        mc.credit_rollouts(tries, mc.CreditConfig(advantage="grpo"))


@pytest.mark.parametrize(
    ("mask", "rows", "said"),
    [
        ([[1, 1, 0], [1, 1, 0]], "episodes", "row 0 of the mask has 2 tokens of the model, but episode 0 of the batch"),
        ([[1, 1], [1, 0], [1, 0]], "episodes", "the mask has 3 rows for 2 episodes: rows = 'episodes' takes one for"),
        ([[1, 1], [1, 1], [1, 0]], "turns", "row 1 of the mask has 2 tokens of the model, but turn 1 of the batch has"),
        ([1, 1, 1, 1], "episodes", "the mask has 1 dimensions: give a row for each episode"),
    ],
)
def test_a_mask_that_was_cut_after_its_tokens_were_counted_is_refused(mask, rows, said):
    batch = mc.TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0], tokens=[[2, 1], [1]])
    with pytest.raises(ValueError, match=re.escape(said)):
        mc.on_mask([1.0, 2.0, 3.0, 4.0], batch, mask, rows=rows)
