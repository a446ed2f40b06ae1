"""Table and figure of the comparison of recipe with recipe, from its raw results.

    python benchmarks/credit_table.py [RESULTS.jsonl]

A method is compared with what it is laid on (ppo+spa with ppo), and one that stands alone with GRPO. A difference is
that of two runs of one world and seed, which began with the same weights. Pairs are counted by seed:
the interval, Student's over the seeds' differences, is for other seeds on the same panel of tasks. ``detectable`` is
the smallest true difference that so many seeds would show in four of five times, and the column beside it says how many
seeds a difference of 0.05 would take by the spread that was seen. The last column compares the mean success of all
training episodes: who learns sooner has more of it. p is of the sign-flip test over n seeds, which is 2/2^n at least:
where that is above 0.05 it is left out. The others are adjusted for their number in a world (Holm).
"""

import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from credit_plan import BASELINE, OTHERS
from provenance import RESULTS

from manyturn.agents.evaluation.statistics import (
    Interval,
    Values,
    detectable_difference,
    holm,
    mean_interval,
    paired_difference,
    sign_flip_p,
)
from manyturn.envs.contract.durable import replace_text

LABEL = (
    "Recipe against recipe: each as published, at the commits below. They differ in KL, penalty, clip, aggregation and "
    "shape of rollouts as well, so that no difference is a method's own; `credit_methods.py` takes them apart. "
    "Exploratory."
)
WANTED = 0.05
LEVEL = 0.05  # of a test that is worth making
AXES = {1: "updates", 2: "million tokens", 3: "seconds"}
Result = Mapping[str, Any]


class Row(NamedTuple):
    """A method in a world; ``difference`` and what follows are None without a pair to compare.

    Attributes:
        against: what it is compared with.
        success: mean over seeds, held-out tasks.
        before: mean over seeds of the warmed-up policies' success.
        difference: over the seeds that both have.
        sooner: the same of the mean success of all training episodes: who learns sooner has more of it.
        detectable: NaN where no spread was seen.
        seeds_wanted: seeds that would show a difference of 0.05; None where that cannot be told.
        p: of the sign-flip test, not adjusted; None where the seeds are too few for a small one.
    """

    world: str
    method: str
    against: str
    success: Interval
    before: float
    difference: Interval | None = None
    sooner: Interval | None = None
    detectable: float | None = None
    seeds_wanted: int | None = None
    p: float | None = None


def against(method: str) -> str:
    """What a method is compared with.

    >>> against("ppo+spa"), against("grpo+gated"), against("gigpo")
    ('ppo', 'grpo', 'grpo')
    """
    return method.rpartition("+")[0] or BASELINE


def by_seed(results: Sequence[Result], world: str, method: str) -> dict[str, list[float]]:
    """Seed -> success of each task of the panel; raises ValueError if panels differ."""
    chosen = [line for line in results if (line["world"], line["method"]) == (world, method)]
    if len({line["panel"] for line in results if line["world"] == world}) > 1:
        raise ValueError(f"runs on {world} were evaluated on different panels: run them again with one version")
    return {str(line["seed"]): [int(digit) / line["repeats"] for digit in line["successes"]] for line in chosen}


def rows(results: Sequence[Result]) -> list[Row]:
    """All methods in all worlds, the baseline first."""
    pairs = {(line["world"], line["method"]) for line in results}
    ordered = sorted(pairs, key=lambda pair: (pair[0], pair[1] != BASELINE, pair[1]))
    return [_row(results, world, method) for world, method in ordered]


def _row(results: Sequence[Result], world: str, method: str) -> Row:
    base = against(method)
    ours, theirs = by_seed(results, world, method), by_seed(results, world, base)
    starts = [line["before"] for line in results if (line["world"], line["method"]) == (world, method)]
    row = Row(world, method, base, mean_interval(ours, proportion=True), sum(starts) / len(starts))
    shared = sorted(ours.keys() & theirs.keys())
    if method == base or not shared:
        return row
    a, b = _only(shared, ours), _only(shared, theirs)
    sooner = paired_difference(*(_only(shared, over_training(results, world, name)) for name in (method, base)))
    p = sign_flip_p(a, b) if 2 / 2 ** len(shared) <= LEVEL else None
    return row._replace(difference=paired_difference(a, b), sooner=sooner, p=p, **power(a, b))


def over_training(results: Sequence[Result], world: str, method: str) -> dict[str, list[float]]:
    """Seed -> mean success of all training episodes, as a list of one."""
    chosen = [line for line in results if (line["world"], line["method"]) == (world, method)]
    return {str(line["seed"]): [sum(line["training"]) / len(line["training"])] for line in chosen}


def _only(seeds: Sequence[str], values: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {seed: values[seed] for seed in seeds}


def power(ours: Values, theirs: Values) -> dict[str, Any]:
    """What the pairs could show, and how many would show a difference of 0.05."""
    detectable = detectable_difference(ours, theirs)
    wanted = None if math.isnan(detectable) else max(2, math.ceil(len(ours) * (detectable / WANTED) ** 2))
    return {"detectable": detectable, "seeds_wanted": wanted}


def show(results: Sequence[Result]) -> str:
    """The table as Markdown."""
    lines = [
        f"| world | method | seeds | warmed up | success | against | difference | p | detectable | seeds for {WANTED} "
        "| difference over training |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    found = rows(results)
    for row in found:
        family = [other.p for other in found if other.world == row.world and other.p is not None]
        head = f"| {row.world} | {row.method} | {row.success.n_tasks} | {row.before:.3f} | {_told(row.success)} |"
        if row.difference is None or row.sooner is None:
            lines.append(f"{head} | | | | | |")
            continue
        p = "" if row.p is None else f"{holm(family)[family.index(row.p)]:.3f}"
        wanted = "?" if row.seeds_wanted is None else row.seeds_wanted
        told = f"{row.against} | {_told(row.difference, '+')} | {p} | {row.detectable:.3f} | {wanted}"
        lines.append(f"{head} {told} | {_told(row.sooner, '+')} |")
    return "\n".join(lines)


def _told(interval: Interval, sign: str = "") -> str:
    mean, low, high = (f"{value:{sign}.3f}" for value in interval[:3])
    return mean if math.isnan(interval.low) else f"{mean} [{low}, {high}]"


def middle_curve(curves: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    """Over seeds, point by point as far as all of them go: medians of the axes, the mean of the success.

    Other programs on the machine make single runs slow; they hardly move the median of their seconds.
    """
    return [
        [*(statistics.median(axis) for axis in axes), statistics.fmean(success)]
        for points in zip(*curves, strict=False)
        for *axes, success in [tuple(zip(*points, strict=True))]
    ]


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw success against updates, tokens and seconds: a row for each world, the mean over seeds of each method.

    The recipes that are compared in one world alone would hide the others, and are left to the table.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    worlds = sorted({line["world"] for line in results})
    shown = {line["method"] for line in results} - set(OTHERS)
    methods = sorted(shown, key=lambda method: (method != BASELINE, method))
    if not worlds:
        return
    style: dict[str, dict[str, Any]] = {
        method: {"color": f"C{number % 10}", "ls": "--" if number > 9 else "-", "lw": 1.4 if number else 2.4}
        for number, method in enumerate(methods)
    }
    figure, axes = pyplot.subplots(
        len(worlds), len(AXES), figsize=(11, 2.7 * len(worlds)), sharey=True, layout="constrained", squeeze=False
    )
    for row, world in zip(axes, worlds, strict=True):
        for method in methods:
            curves = [line["curve"] for line in results if (line["world"], line["method"]) == (world, method)]
            points = middle_curve(curves)
            for panel, column in zip(row, AXES, strict=True):
                scale = 1e-6 if AXES[column].startswith("million") else 1.0
                x, y = [point[column] * scale for point in points], [point[4] for point in points]
                panel.plot(x, y, **style[method])
        row[0].set_ylabel(f"{world}\nsuccess")
    for panel, name in zip(axes[-1], AXES.values(), strict=True):
        panel.set_xlabel(f"{name} since the warm-up")
    for panel in axes.flat:
        panel.set_ylim(-0.02, 1.02)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", alpha=0.3)
    handles = [pyplot.Line2D([], [], **style[method], label=method) for method in methods]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(5, len(methods)), frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def read(path: Path) -> list[Result]:
    """The results in a file; raises SystemExit if there is none."""
    if not path.is_file():
        raise SystemExit(f"no file {path}: make it with python benchmarks/credit.py RUN-FOLDER --out {path}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def publish(results: Sequence[Result], path: Path) -> str:
    """Write table and figure beside the results; returns the table."""
    made = (", ".join(sorted({line[what] for line in results})) for what in ("machine", "date", "commit"))
    told = dict(zip(("machine", "dates", "commits"), made, strict=True))
    head = f"{LABEL}\n\nRaw results: `{path.name}`. "
    head += " ".join(f"{what.capitalize()}: {text}." for what, text in told.items())
    table = show(results)
    replace_text(path.with_suffix(".md"), f"{head}\n\n{table}\n")
    draw(results, path.with_suffix(".png"))
    return table


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "credit.jsonl"
    print(publish(read(path), path))


if __name__ == "__main__":
    main()
