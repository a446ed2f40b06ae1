"""Progress under a prover is a potential along what was drawn, and says what the policy's own value does not."""

import numpy as np
import pytest
from test_forks import group

from manyturn.trainers.credit.advantages.pav import PavConfig, pav
from manyturn.trainers.credit.batch.turn_batch import TurnBatch


def played(groups: int) -> tuple[TurnBatch, list[list[float]], list[list[int]]]:
    rewards, drawers, names = [], [], []
    for number in range(groups):
        mine = group(number)
        rewards += mine[0]
        drawers += mine[1]
        names += [number] * len(mine[0])
    return TurnBatch.from_episodes(rewards, names, columns={"drawer": drawers}), rewards, drawers


@pytest.mark.parametrize("best_of", [1, 3])
def test_progress_along_an_episodes_draws_sums_to_what_its_end_is_above_its_start(best_of):
    """A branch's first draw is in its parent's row. Were it paid twice, or by itself, long episodes would gain."""
    batch, rewards, drawers = played(60)
    level_K = pav(batch, PavConfig(best_of=best_of, alpha=2.0)).levels["progress"].reshape(-1, 2)
    for first in range(0, len(rewards), 6):
        of = {0: [0, 2, 3], 1: [1, 4, 5]}  # episodes by the one that drew their first turn
        q = [np.mean([rewards[first + e][1] for e in of[parent]]) for parent in of]
        start = 1 - (1 - np.mean(q)) ** best_of
        for e in range(6):
            whole = level_K[first + drawers[first + e][0], 0] + level_K[first + e, 1]
            assert whole == pytest.approx(2 * (1 - (1 - rewards[first + e][1]) ** best_of - start), abs=1e-9)
            assert drawers[first + e][0] == e % 6 or level_K[first + e, 0] == 0


def test_under_its_own_prover_siblings_sum_to_zero():
    batch, _, _ = played(60)
    level_K = pav(batch, PavConfig(best_of=1)).levels["progress"]
    sums: dict[tuple[int, float], list[float]] = {}
    for row in np.flatnonzero(batch.turn_K == 1):
        sums.setdefault((batch.group_K[row], batch.column("drawer")[row - 1]), []).append(level_K[row])
    assert len(sums) == 120 and max(abs(sum(level)) for level in sums.values()) < 1e-9 < max(level_K)


def test_a_better_prover_prefers_a_turn_that_keeps_a_chance_to_one_that_makes_success_sure():
    """The policy's own value rises by a quarter at both."""

    def progress(best_of: int, ends: list[float]) -> float:
        rewards, drawers = [[0.0, end] for end in ends], [[0, 0], [0, 1], [2, 2], [2, 3]]
        batch = TurnBatch.from_episodes(rewards, [0] * 4, columns={"drawer": drawers})
        return float(pav(batch, PavConfig(best_of=best_of)).levels["progress"][0])

    keeps, makes_sure = [1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]
    assert progress(1, keeps) == progress(1, makes_sure) == 0.25
    assert progress(4, keeps) > 50 * progress(4, makes_sure) > 0
