"""Tables and figures of the comparison of credit methods, from its lines.

    python -m benchmarks.credit.methods.table [RESULTS.jsonl]
    python -m benchmarks.credit.methods.table FILE --parts

Missing cells are named, and no hypothesis is judged before all of its seeds are there. ``--parts`` is for a file of
``--rate``: all rows have one learning rate, so that gains of parts can be added. Everything in it is exploratory.
Tables and a figure are written next to the file.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.credit.methods.figure import draw, draw_tested
from benchmarks.credit.methods.plan import METHODS, WORLDS, hypotheses_hash, order, seeds
from benchmarks.credit.methods.result_store import Line, choice, read_lines
from benchmarks.credit.methods.results import Difference, Results, judged
from benchmarks.kit.provenance import RESULTS
from benchmarks.kit.table import table
from manyturn.agents.evaluation.statistics import Interval
from manyturn.envs.contract.atomic_files import replace_text


def show(lines: Sequence[Line]) -> str:
    """All tables as Markdown. Raises ValueError where lines cannot stand in one table."""
    results = Results(lines)
    return "\n\n".join(
        [
            _head(lines, results),
            "## Hypotheses\n\nOne-sided sign-flip tests over seeds, adjusted for all that are named (Holm).",
            _hypotheses(results),
            "## Where a method's gain comes from\n\nThe gain of a full method on the base; what each of its parts "
            "gains on the base by itself; and the rest, which is the full gain less the sum of its parts. G-RA's rest "
            "is its gate, which acts on its reward. PPO's and Turn-PPO's rest holds their shape of rollouts. "
            "Exploratory, but for what is named above.",
            splits_table(results),
            "## All rows\n\nExploratory, but for what is named above. A seed fell if it ended below its warm-up.",
            _rows(results),
            "## Recipe against recipe\n\nRecipes as published, but for the learning rate and its schedule, against "
            "GRPO's. A difference is of everything that two recipes set, not of a method. Exploratory.",
            _recipes(results),
        ]
    )


def _head(lines: Sequence[Line], results: Results) -> str:
    if any(line["hypotheses"] != hypotheses_hash() for line in lines):
        raise ValueError("the hypotheses are not those that the results were made for: take hypotheses.toml back")
    commit = _commit(lines)
    made = {what: ", ".join(sorted({line[what] for line in lines})) for what in ("machine", "date", "plan")}
    hours = sum(line["cpu_seconds"] + line["warmup_seconds"] for line in lines) / 3600
    missing = list(_missing(results))
    parts = [
        "# Credit methods, with everything else equal",
        f"**{'Incomplete' if missing else 'Complete'}.** {len(lines)} cells, made by `benchmarks.credit.methods` in "
        f"{hours:.1f} hours of CPU. Machine: {made['machine']}. Dates: {made['date']}. Commit: {commit}. "
        f"Hypotheses: `benchmarks/credit/methods/hypotheses.toml`, {hypotheses_hash()}. Plan: {made['plan']}.",
        *[f"`{row}` does nothing in {world}: it does as `{peer}`." for (world, row), peer in results.idle.items()],
    ]
    return "\n\n".join([*parts, *(["Missing:\n\n" + "\n".join(missing)] if missing else [])])


def _missing(results: Results) -> Iterator[str]:
    for world in WORLDS:
        rows = [row for row in order() if (world, row) not in results.idle]
        unchosen = [row for row in rows if choice(results.choosing, world, row).missing]
        there = Counter(line["row"] for line in results.lines if line["world"] == world)
        short = {row: len(seeds()) - there[row] for row in rows if there[row] < len(seeds())}
        notes = [f"learning rates of {_listed(unchosen)}"] if unchosen else []
        notes += [f"{number} of {len(seeds())} seeds of {_listed([row for row in short if short[row] == number])}"
                 for number in sorted(set(short.values()))]  # fmt: skip
        if notes:
            yield f"- {world}: {'; '.join(notes)}"


def _listed(rows: Sequence[str]) -> str:
    return ", ".join(f"`{row}`" for row in rows)


def _hypotheses(results: Results) -> str:
    head = ["", "world", "claim", "seeds", "difference, over seeds", "over tasks", "p", "p (Holm)", "verdict"]
    return table(
        head,
        (
            [h["name"], h["world"], f"`{h['row']}` {'above' if h['sign'] == '+' else 'below'} `{h['against']}`",
             str(difference.seeds), _told(difference.by_seed), _told(difference.by_task),
             "" if p is None else f"{p:.4f}", "" if adjusted is None else f"{adjusted:.3f}", verdict]
            for h, difference, p, adjusted, verdict in judged(results)
        ),
    )  # fmt: skip


def splits_table(results: Results) -> str:
    """Gain of each part of a method, and the rest."""

    def lines() -> Iterator[list[str]]:
        for split in (results.split(world, method) for world in WORLDS for method in METHODS):
            if split.full is None or not split.full.seeds:
                continue
            yield [split.world, split.method, str(split.full.seeds), "**full method**", _gain(split.full)]
            for row, gain in split.parts.items():
                yield ["", "", "", row.partition("/")[2], _gain(gain)]
            yield ["", "", "", "the gate" if split.method == "gra" else "the rest", _gain(split.rest)]

    return table(["world", "method", "seeds", "part", "gain"], lines())


def _gain(gain: Difference | None) -> str:
    return "does nothing" if gain is None else _told(gain.by_seed)


def _rows(results: Results) -> str:
    def lines() -> Iterator[list[str]]:
        for world in WORLDS:
            for row in order():
                success = results.success(world, row)
                if not success.n_tasks:
                    continue
                counted = [line for line in results.lines if (line["world"], line["row"]) == (world, row)]
                chosen = choice(results.choosing, world, row)
                bound = " (bound)" if chosen.at_bound else ""
                before = sum(line["before"] for line in counted) / len(counted)
                fell = sum(line["after"] < line["before"] for line in counted)
                difference = results.difference(world, row, "base")
                gains = [_told(difference.by_seed), _told(difference.by_task)] if row != "base" else ["", ""]
                yield [world, f"`{row}`", f"{counted[0]['factor']:g}{bound}", str(success.n_tasks), f"{before:.3f}",
                       _told(success, ""), str(fell), *gains]  # fmt: skip

    head = ["world", "row", "learning rate", "seeds", "warmed up", "success", "seeds that fell"]
    return table([*head, "against base, over seeds", "over tasks"], lines())


def _recipes(results: Results) -> str:
    def lines() -> Iterator[list[str]]:
        for world in WORLDS:
            for row in order():
                difference = results.difference(world, row, "grpo/recipe")
                if row.endswith("/recipe") and row != "grpo/recipe" and difference.seeds:
                    intervals = [_told(difference.by_seed), _told(difference.by_task)]
                    yield [world, row.partition("/")[0], str(difference.seeds), *intervals]

    return table(["world", "recipe", "seeds", "against GRPO's recipe, over seeds", "over tasks"], lines())


def _told(interval: Interval, sign: str = "+") -> str:
    if math.isnan(interval.mean):
        return ""
    mean, low, high = (f"{value:{sign}.3f}" for value in interval[:3])
    return mean if math.isnan(interval.low) else f"{mean} [{low}, {high}]"


def show_parts(lines: Sequence[Line], results: Results) -> str:
    """Gain of each part at one learning rate, as Markdown.

    Raises:
        ValueError: lines of several commits, or rows of a world at several rates.
    """
    commit = _commit(lines)
    rates = {world: sorted({line["factor"] for line in lines if line["world"] == world}) for world in WORLDS}
    if several := [world for world, factors in rates.items() if len(factors) > 1]:
        raise ValueError(f"rows of {', '.join(several)} have several rates, at which parts do not add up")
    multiples = ", ".join(f"{world} {factors[0]:g}" for world, factors in rates.items() if factors)
    head = f"{len(lines)} cells of commit {commit}. Multiples of a world's own rate: {multiples}. Exploratory."
    return "\n\n".join(["# Parts of methods at one learning rate", head, splits_table(results)])


def _commit(lines: Sequence[Line]) -> str:
    commits = sorted({line["commit"] for line in lines})
    if len(commits) > 1 or commits[0].endswith("-dirty"):
        raise ValueError(f"a table is made of one clean commit, and these lines are of {', '.join(commits)}")
    return commits[0]


def publish(lines: Sequence[Line], path: Path) -> None:
    """Write tables and a figure next to the results."""
    results = Results(lines)
    replace_text(path.with_suffix(".md"), show(lines) + "\n")
    draw_tested([(h, difference, verdict) for h, difference, *_, verdict in judged(results)], path.with_suffix(".png"))


def publish_parts(lines: Sequence[Line], path: Path) -> None:
    """Write the table of parts and its figure next to the results."""
    results = Results(lines)
    replace_text(path.with_suffix(".md"), show_parts(lines, results) + "\n")
    draw([results.split(world, method) for world in WORLDS for method in METHODS], path.with_suffix(".png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=RESULTS / "credit_methods.jsonl")
    parser.add_argument("--parts", action="store_true", help="of a file whose rows have one learning rate")
    chosen = parser.parse_args()
    if not (lines := read_lines(chosen.file)):
        raise SystemExit(f"no results in {chosen.file}: make them with python -m benchmarks.credit.methods RUN-FOLDER")
    (publish_parts if chosen.parts else publish)(lines, chosen.file)
    print(f"written to {chosen.file.with_suffix('.md')} and {chosen.file.with_suffix('.png')}")


if __name__ == "__main__":
    main()
