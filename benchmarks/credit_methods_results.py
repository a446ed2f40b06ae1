"""What the lines of the comparison of credit methods say: differences, where gains come from, and the hypotheses.

A difference is that of two rows of one world and seed, which began with the same weights. It has two intervals, both
Student's: over seeds, for other seeds on the same tasks; over tasks, for other tasks and these seeds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from credit_methods_lines import Line
from credit_methods_plan import BASE, CHOICE_SEEDS, WORLDS, hypotheses
from scipy.stats import permutation_test

from manyturn.agents.statistics import Interval, holm, mean_interval, paired_difference

Scores = dict[str, dict[str, list[float]]]
"""Seed -> task -> successes of its episodes."""


class Difference(NamedTuple):
    """How much better one row is than another; over no seeds, everything is NaN.

    Attributes:
        seeds: that both have.
        by_seed, by_task: the mean with its interval over either.
        each: the difference of each seed.
    """

    seeds: int
    by_seed: Interval
    by_task: Interval
    each: tuple[float, ...]


class Split(NamedTuple):
    """What a recipe gains on the base, and the two parts that this is the sum of, seed by seed."""

    world: str
    method: str
    gain: Difference
    stage: Difference
    companions: Difference


class Results:
    """The cells that count, by world and row. Raises ValueError where panels differ."""

    def __init__(self, lines: Sequence[Line]):
        self.lines = [line for line in lines if line["seed"] not in CHOICE_SEEDS]
        self.choosing = [line for line in lines if line["seed"] in CHOICE_SEEDS]
        for world in WORLDS:
            if len({line["panel"] for line in self.lines if line["world"] == world}) > 1:
                raise ValueError(f"runs on {world} were evaluated on different panels: run them again with one version")

    def scores(self, world: str, row: str) -> Scores:
        return {
            str(line["seed"]): {
                str(task): [int(digit) / line["repeats"]] for task, digit in enumerate(line["successes"])
            }
            for line in self.lines
            if (line["world"], line["row"]) == (world, row)
        }

    def success(self, world: str, row: str) -> Interval:
        """Over seeds."""
        by_seed = {seed: _all(tasks) for seed, tasks in self.scores(world, row).items()}
        return mean_interval({seed: [sum(values) / len(values)] for seed, values in by_seed.items()}, proportion=True)

    def difference(self, world: str, row: str, against: str) -> Difference:
        ours, theirs = self.scores(world, row), self.scores(world, against)
        shared = sorted(ours.keys() & theirs.keys(), key=int)
        if not shared:
            nothing = Interval(math.nan, math.nan, math.nan, 0, 0)
            return Difference(0, nothing, nothing, ())
        a, b = ({seed: _all(found[seed]) for seed in shared} for found in (ours, theirs))
        a_by_task, b_by_task = (_by_task([found[seed] for seed in shared]) for found in (ours, theirs))
        each = tuple(sum(a[seed]) / len(a[seed]) - sum(b[seed]) / len(b[seed]) for seed in shared)
        return Difference(len(shared), paired_difference(a, b), paired_difference(a_by_task, b_by_task), each)

    def split(self, world: str, method: str) -> Split:
        """A recipe's gain and its parts, over the seeds that have all three rows.

        The stage comes first, on the base, and the companions are what the rest adds. G-RA's gate acts on what its
        companions bring, which therefore come first.
        """
        middle = "gra/companions" if method == "gra" else f"{method}/stage"
        both = {str(line["seed"]) for line in self.lines if line["world"] == world}
        for row in (BASE, middle, f"{method}/recipe"):
            both &= self.scores(world, row).keys()
        kept = Results([line for line in self.lines if str(line["seed"]) in both])
        first = kept.difference(world, middle, BASE)
        second = kept.difference(world, f"{method}/recipe", middle)
        stage, companions = (second, first) if method == "gra" else (first, second)
        return Split(world, method, kept.difference(world, f"{method}/recipe", BASE), stage, companions)


def _all(tasks: Mapping[str, Sequence[float]]) -> list[float]:
    return [value for values in tasks.values() for value in values]


def _by_task(seeds: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    return {task: [value for found in seeds for value in found[task]] for task in seeds[0]}


def one_sided_p(each: Sequence[float], sign: str) -> float:
    """How often exchanging both rows at random, seed by seed, gives a mean as far to that side; exact for few seeds.

    >>> one_sided_p([0.1, 0.2, 0.1], "+")
    0.125
    """
    values = np.array(each) if sign == "+" else -np.array(each)
    # Sums that are equal but for rounding count as equal.
    found = permutation_test(
        (values.round(9),), lambda x, axis: np.sum(x, axis=axis).round(9), permutation_type="samples",
        alternative="greater", n_resamples=10_000, vectorized=True, rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(found.pvalue)


def judged(results: Results) -> Iterator[tuple[Mapping[str, Any], Difference, float | None, float | None, str]]:
    """Each hypothesis with its difference, p, p after Holm over all that are named, and the verdict.

    One whose seeds are not all there has no p, and counts among those that are named.
    """
    written = hypotheses()
    found = [results.difference(h["world"], h["row"], h["against"]) for h in written["hypotheses"]]
    complete = [difference.seeds >= written["seeds"] for difference in found]
    p_values = [
        one_sided_p(difference.each, h["sign"]) if whole else 1.0
        for h, difference, whole in zip(written["hypotheses"], found, complete, strict=True)
    ]
    for h, difference, whole, p, adjusted in zip(
        written["hypotheses"], found, complete, p_values, holm(p_values), strict=True
    ):
        if not whole:
            yield h, difference, None, None, f"open: {difference.seeds} of {written['seeds']} seeds"
        else:
            yield h, difference, p, adjusted, "shown" if adjusted <= written["level"] else "not shown"
