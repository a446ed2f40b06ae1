"""Results of the comparison of credit methods: differences, sources of gains, and verdicts on the hypotheses.

A difference is that of rows of one world and seed, which began with the same weights. It has two intervals, both
Student's: over seeds, for other seeds on the same tasks; over tasks, for other tasks and these seeds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import permutation_test

from benchmarks.credit.methods.plan import BASE, CHOICE_SEEDS, WORLDS, full_row_of, hypotheses, order, parts_of
from benchmarks.credit.methods.result_store import Line, idle_as
from manyturn.agents.evaluation.statistics import Interval, holm, mean_interval

Scores = dict[str, dict[str, list[float]]]
"""Seed -> task -> successes of its episodes."""


class Difference(NamedTuple):
    """Difference of two rows; over no seeds, everything is NaN.

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
    """Sources of a full method's gain on the base, over the seeds that have all of its rows.

    Attributes:
        parts: row -> what it gains on the base; None where it did nothing.
        full: gain of the full method; None where it did nothing.
        rest: gain of the full method beyond the sum of its parts: they help or hinder each other, or rollouts have
            another shape.
    """

    world: str
    method: str
    parts: dict[str, Difference | None]
    full: Difference | None
    rest: Difference | None


class Results:
    """The cells that count, by world and row; those of rows that did nothing do not.

    Raises ValueError where panels differ.
    """

    def __init__(self, lines: Sequence[Line]):
        self.choosing = [line for line in lines if line["seed"] in CHOICE_SEEDS]
        self.idle = {(world, row): peer for world in WORLDS for row in order() if (peer := idle_as(lines, world, row))}
        counting = [line for line in lines if line["seed"] not in CHOICE_SEEDS]
        self.lines = [line for line in counting if (line["world"], line["row"]) not in self.idle]
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
        return self.combined(world, {row: 1, against: -1})

    def combined(self, world: str, weights: Mapping[str, int]) -> Difference:
        """Sum of rows with weights that add up to 0, over the seeds that have all of these."""
        scores = {row: self.scores(world, row) for row in weights}
        shared = sorted(set.intersection(*[set(tasks) for tasks in scores.values()]), key=int)
        if not shared:
            nothing = Interval(math.nan, math.nan, math.nan, 0, 0)
            return Difference(0, nothing, nothing, ())
        values = np.array(  # (row, seed, task)
            [[_all(scores[row][seed]) for seed in shared] for row in weights]
        )
        summed = np.tensordot(np.array(list(weights.values())), values, axes=1)
        by_seed = {seed: list(summed[at]) for at, seed in enumerate(shared)}
        by_task = {str(at): list(summed[:, at]) for at in range(summed.shape[1])}
        each = tuple(float(value) for value in summed.mean(axis=1))
        return Difference(len(shared), mean_interval(by_seed), mean_interval(by_task), each)

    def split(self, world: str, method: str) -> Split:
        """Gains of a full method and of its parts on the base."""
        full, parts = full_row_of(method), parts_of(method)
        alive = [row for row in (BASE, *parts, full) if (world, row) not in self.idle]
        both = set.intersection(*[set(self.scores(world, row)) for row in alive])
        same_seeds = Results([line for line in self.lines if str(line["seed"]) in both])
        gains = {row: same_seeds.difference(world, row, BASE) if row in alive else None for row in (*parts, full)}
        gain, rest = gains.pop(full), None
        if gain is not None:
            acting = [row for row in parts if row in alive]
            rest = same_seeds.combined(world, {full: 1, **dict.fromkeys(acting, -1), BASE: len(acting) - 1})
        return Split(world, method, gains, gain, rest)


def _all(tasks: Mapping[str, Sequence[float]]) -> list[float]:
    return [value for values in tasks.values() for value in values]


def one_sided_p(each: Sequence[float], sign: str) -> float:
    """Share of random exchanges of both rows, seed by seed, with a mean as far to that side; exact for few seeds.

    >>> one_sided_p([0.1, 0.2, 0.1], "+")
    0.125
    """
    values = np.array(each) if sign == "+" else -np.array(each)
    # Sums that are equal but for rounding count as equal.
    test = permutation_test(
        (values.round(9),), lambda x, axis: np.sum(x, axis=axis).round(9), permutation_type="samples",
        alternative="greater", n_resamples=10_000, vectorized=True, rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(test.pvalue)


def judged(results: Results) -> Iterator[tuple[Mapping[str, Any], Difference, float | None, float | None, str]]:
    """Each hypothesis with its difference, p, p after Holm over all that are named, and the verdict.

    One whose seeds are not all there has no p, and counts among those that are named.
    """
    written = hypotheses()
    differences = [results.difference(h["world"], h["row"], h["against"]) for h in written["hypotheses"]]
    complete = [difference.seeds >= written["seeds"] for difference in differences]
    p_values = [
        one_sided_p(difference.each, h["sign"]) if ready else 1.0
        for h, difference, ready in zip(written["hypotheses"], differences, complete, strict=True)
    ]
    for h, difference, ready, p, adjusted in zip(
        written["hypotheses"], differences, complete, p_values, holm(p_values), strict=True
    ):
        if (h["world"], h["row"]) in results.idle:
            yield h, difference, 1.0, adjusted, "not shown: it did nothing"
        elif not ready:
            yield h, difference, None, None, f"open: {difference.seeds} of {written['seeds']} seeds"
        else:
            yield h, difference, p, adjusted, "shown" if adjusted <= written["level"] else "not shown"
