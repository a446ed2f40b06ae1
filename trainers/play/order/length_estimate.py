"""Estimate of the length of episodes, where some were ended before their end.

An episode that was cut after three turns says only that it has more than three. Left out, or counted as three, it would
make long episodes look rare just where they are dropped most. So lengths are estimated as lifetimes are, by the product
of Kaplan and Meier (1958, Journal of the American Statistical Association 53): from every number of turns, the share of
those that go on, among all that are known to have come so far.
"""

from collections.abc import Sequence


def counted(lengths: Sequence[int], before: Sequence[int] = ()) -> list[int]:
    """The number of episodes with each number of turns, which is the place in the list; added to the counts ``before``.

    >>> counted([2, 3, 3], [0, 1])
    [0, 1, 1, 2]
    """
    counts = [*before, *[0] * (max(lengths, default=-1) + 1 - len(before))]
    for length in lengths:
        counts[length] += 1
    return counts


def mean_length(ended: Sequence[int], cut: Sequence[int] = ()) -> float:
    """Mean turns of an episode.

    Args:
        ended: how many episodes ended after each number of turns, by ``counted``.
        cut: how many were cut after each number of turns, and would have had more. It is taken that those would have
            gone on like the others that came so far; where the longest was cut, what lies behind it is unknown and
            counts nothing.

    >>> mean_length([0, 0, 2, 2])
    2.5
    >>> mean_length([0, 0, 2, 2], [0, 0, 0, 0]), mean_length([0, 0, 2, 2], [0, 4])  # one turn says nothing here
    (2.5, 2.5)
    >>> mean_length([0, 0, 2, 2], [0, 0, 4])  # these are longer than two
    2.75
    """
    most = max(len(ended), len(cut) + 1)
    ends, cuts = ([*counts, *[0] * (most - len(counts))] for counts in (ended, cut))
    come, going_on, mean = sum(ends) + sum(cuts), 1.0, 0.0
    for length in range(most):
        if not come:
            break
        going_on *= 1 - ends[length] / come
        mean += going_on
        come -= ends[length] + cuts[length]
    return mean
