"""Batches drawn at random, for properties of credit."""

from dataclasses import replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit

quick = settings(max_examples=12, deadline=None)  # of each of a dozen methods and more
rewards = st.integers(-8, 8).map(lambda n: n / 4)  # exact in binary, so that equal returns are equal to the bit


@st.composite
def batches(draw: st.DrawFn, unscorable: bool = False, penalties: bool = True) -> TurnBatch:
    """Batches with every column that a method may need; replies of 0 to 3 tokens."""
    E = draw(st.integers(1, 8))
    lengths = draw(st.lists(st.integers(1, 4), min_size=E, max_size=E))

    def ragged(values: st.SearchStrategy) -> list[list]:
        return [draw(st.lists(values, min_size=n, max_size=n)) for n in lengths]

    reward = ragged(rewards)
    if unscorable:
        for episode in draw(st.sets(st.integers(0, E - 1))):
            reward[episode][draw(st.integers(0, lengths[episode] - 1))] = float("nan")
    tokens = ragged(st.integers(0, 3))

    rng = np.random.default_rng(draw(st.integers(0, 2**16)))  # numbers that need only differ, not shrink

    def per_token() -> list[list[list[float]]]:
        return [[rng.uniform(0, 2, size=n).tolist() for n in episode] for episode in tokens]

    batch = TurnBatch.from_episodes(
        {"outcome": reward, "gain": ragged(rewards)},
        groups=draw(st.lists(st.sampled_from("abc"), min_size=E, max_size=E)),
        anchors=ragged(st.sampled_from(["aaaa", "aaab", "aabb", "abbb"])),
        truncated=draw(st.lists(st.booleans(), min_size=E, max_size=E)),
        tokens=tokens,
        columns={"calls": ragged(st.integers(0, 2)), "action": ragged(st.integers(0, 2))},
        token_columns={"value": per_token(), "entropy": per_token(), "reward": per_token(), "teacher": per_token()}
        | {"likelihood": per_token()},
    )
    drift_K = np.array([0.002, float("nan"), 0.02])[batch.group_K]
    final_E = rng.choice([0.5, 1.5, float("nan")], E)  # not known of every episode
    columns = {**batch.columns, "drift": drift_K, "final_value": final_E[batch.episode_K], "drawer": batch.episode_K}
    columns["tempered"] = np.array([0.0, 0.2, 0.0, -0.2])[batch.episode_K % 4]
    columns["reference"] = np.round(rng.normal(size=len(batch.turn_K)), 2)
    columns["guided"] = batch.episode_K % 2
    columns["implicit"] = rng.normal(size=len(batch.turn_K))
    batch = replace(batch, columns=columns)
    if not penalties:
        return batch
    penalty_K = draw(st.lists(st.sampled_from([0.0, 0.125]), min_size=sum(lengths), max_size=sum(lengths)))
    return replace(batch, penalty_K=np.array(penalty_K))


def advantage(batch: TurnBatch, method: dict) -> np.ndarray:
    return credit(batch, CreditConfig(advantage=method)).advantage_K


def rows(batch: TurnBatch, order_K: np.ndarray, **changes) -> TurnBatch:
    """The batch's turns in another order, or some of them."""
    names = ("group_K", "episode_K", "turn_K", "format_valid_K", "understood_K", "tokens_K", "anchor_K", "penalty_K")
    names += ("inner_K",)
    picked = {name: getattr(batch, name)[order_K] for name in names}
    parts = {name: part_K[order_K] for name, part_K in batch.parts.items()}
    columns = {name: column_K[order_K] for name, column_K in batch.columns.items()}
    tokens = {name: column_T[tokens_of(batch, order_K)] for name, column_T in batch.token_columns.items()}
    texts = tuple(batch.anchor_text[k] for k in order_K)
    held = {"parts": parts, "columns": columns, "token_columns": tokens, "anchor_text": texts}
    return replace(batch, **{**picked, **held, **changes})


def tokens_of(batch: TurnBatch, order_K: np.ndarray) -> np.ndarray:
    """Places of the reply tokens of these turns, in their order."""
    end_K = np.cumsum(batch.tokens_K)
    return np.array([t for k in order_K for t in range(end_K[k] - batch.tokens_K[k], end_K[k])], int)


def with_rewards(batch: TurnBatch, reward_K: np.ndarray) -> TurnBatch:
    return replace(batch, parts={"outcome": reward_K})
