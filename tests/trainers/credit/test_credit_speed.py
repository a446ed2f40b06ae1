"""Credit that takes too long for a step's episodes, or places tokens of episodes in another order than that of time."""

import time
from dataclasses import replace

import numpy as np
import pytest
from test_advantages import by_method, run

from manyturn.trainers.credit.batch.reply_tokens import places_in_episode
from manyturn.trainers.credit.batch.turn_batch import TurnBatch


@pytest.fixture(scope="module")
def large() -> TurnBatch:
    """1,024 episodes of 50 turns and about 10 tokens a turn."""
    rng = np.random.default_rng(0)
    E, turns = 1024, 50
    K = E * turns
    tokens_K = rng.integers(0, 20, K)
    T = int(tokens_K.sum())
    return TurnBatch(
        group_K=np.repeat(np.arange(E) // 8, turns),
        episode_K=np.repeat(np.arange(E), turns),
        turn_K=np.tile(np.arange(turns), E),
        parts={"outcome": rng.random(K) / turns, "gain": np.zeros(K)},
        format_valid_K=np.ones(K, bool),
        understood_K=np.ones(K, bool),
        tokens_K=tokens_K,
        truncated_E=np.zeros(E, bool),
        anchor_K=rng.integers(0, 5000, K),
        columns={
            **{"calls": rng.integers(0, 2, K), "drift": np.full(K, 0.01), "final_value": np.zeros(K)},
            **{"action": rng.integers(0, 9, K), "drawer": np.repeat(np.arange(E), turns), "tempered": np.zeros(K)},
            "implicit": rng.normal(size=K),
        },
        token_columns={name: rng.random(T) for name in ("value", "entropy", "reward", "teacher")},
        group_names={group: f"task {group}" for group in range(E // 8)},
    )


@pytest.mark.slow
@by_method
def test_credit_of_half_a_million_tokens_takes_less_than_a_second(stages, large):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run(large, stages)
        times.append(time.perf_counter() - start)
    assert min(times) < 1


def test_places_of_tokens_count_up_inside_each_episode_in_time_order(large):
    order_K = np.random.default_rng(1).permutation(len(large.turn_K))
    batch = replace(
        large,
        **{name: getattr(large, name)[order_K] for name in ("group_K", "episode_K", "turn_K", "tokens_K")},
        columns={},
        token_columns={},
    )
    place_T, turn_T = places_in_episode(batch), batch.turn_of_T
    order_T = np.lexsort((turn_T * 0 + np.arange(len(turn_T)), batch.turn_K[turn_T], batch.episode_K[turn_T]))
    tokens_E = np.bincount(batch.episode_K, batch.tokens_K).astype(int)
    assert (place_T[order_T] == np.concatenate([np.arange(n) for n in tokens_E])).all()
