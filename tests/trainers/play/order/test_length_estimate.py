"""Long episodes that look rare because those that were dropped are counted as short, or not at all."""

import numpy as np
import pytest

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.play.order.length_estimate import counted, mean_length


@pytest.mark.parametrize("patience", [4.0, 8.0, 16.0])
def test_what_was_cut_by_the_clock_does_not_bias_the_mean(patience):
    """Turns take their time whatever comes; an episode is cut when its time is up."""
    rng = generator("lengths", patience)
    lengths = np.minimum(8, 2 + rng.exponential(1.5, 40_000).astype(int))
    seconds = rng.exponential(1.0, (len(lengths), 8)).cumsum(1)
    total = seconds[np.arange(len(lengths)), lengths - 1]
    whole = total <= patience
    come = (seconds <= patience).sum(1)
    ended, cut = counted(lengths[whole].tolist()), counted(come[~whole].tolist())
    told, truth, kept = mean_length(ended, cut), lengths.mean(), lengths[whole].mean()
    naive = np.where(whole, lengths, come).mean()
    assert told == pytest.approx(truth, rel=0.02)
    if patience < 16:
        assert min(abs(kept - truth), abs(naive - truth)) > 3 * abs(told - truth)


def test_without_cuts_it_is_the_mean():
    lengths = [1, 1, 5, 8, 2]
    assert mean_length(counted(lengths)) == pytest.approx(np.mean(lengths))
    assert mean_length(counted([3], counted(lengths))) == pytest.approx(np.mean([*lengths, 3]))


def test_nothing_known_beyond_the_longest_counts_nothing():
    assert mean_length(counted([2]), counted([5])) == pytest.approx(4)  # half end at 2, the others are seen up to 5
