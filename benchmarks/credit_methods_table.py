"""The tables of the comparison of credit methods, and its figures, from the lines that are there.

    python benchmarks/credit_methods_table.py [RESULTS.jsonl]

Cells that are missing are named, and no hypothesis is judged before all of its seeds are there.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from credit_methods_figure import draw_tested
from credit_methods_lines import Line, choice, read_lines
from credit_methods_plan import METHODS, WORLDS, hypotheses_hash, order, seeds
from credit_methods_results import Difference, Results, judged
from provenance import RESULTS

from manyturn.agents.evaluation.statistics import Interval
from manyturn.envs.contract.durable import replace_text


def show(lines: Sequence[Line]) -> str:
    """All tables as Markdown. Raises ValueError where lines cannot stand in one table."""
    results = Results(lines)
    return "\n\n".join(
        [
            _head(lines, results),
            "## Hypotheses\n\nOne-sided sign-flip tests over seeds, adjusted for all that are named (Holm).",
            _hypotheses(results),
            "## Where a method's gain comes from\n\nThe gain of a whole method on the base; what each of its parts "
            "gains on the base alone; and the rest, which is the whole less the sum of its parts. G-RA's rest is its "
            "gate, which acts on its reward. PPO's and Turn-PPO's rest holds their shape of rollouts. Exploratory, but "
            "for what is named above.",
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
        raise ValueError("the hypotheses are not those that the results were made for: take credit_methods.toml back")
    commits = sorted({line["commit"] for line in lines})
    if len(commits) > 1 or commits[0].endswith("-dirty"):
        raise ValueError(f"a table is made of one clean commit, and these lines are of {', '.join(commits)}")
    made = {what: ", ".join(sorted({line[what] for line in lines})) for what in ("machine", "date", "plan")}
    hours = sum(line["cpu_seconds"] + line["warmup_seconds"] for line in lines) / 3600
    missing = list(_missing(results))
    told = [
        "# Credit methods, with everything else equal",
        f"**{'Incomplete' if missing else 'Complete'}.** {len(lines)} cells, made by `benchmarks/credit_methods.py` in "
        f"{hours:.1f} hours of CPU. Machine: {made['machine']}. Dates: {made['date']}. Commit: {commits[0]}. "
        f"Hypotheses: `benchmarks/credit_methods.toml`, {hypotheses_hash()}. Plan: {made['plan']}.",
        *[f"`{row}` does nothing in {world}: it does as `{peer}`." for (world, row), peer in results.idle.items()],
    ]
    return "\n\n".join([*told, *(["Missing:\n\n" + "\n".join(missing)] if missing else [])])


def _missing(results: Results) -> Iterator[str]:
    for world in WORLDS:
        rows = [row for row in order() if (world, row) not in results.idle]
        unchosen = [row for row in rows if choice(results.choosing, world, row).missing]
        there = Counter(line["row"] for line in results.lines if line["world"] == world)
        short = {row: len(seeds()) - there[row] for row in rows if there[row] < len(seeds())}
        told = [f"learning rates of {_listed(unchosen)}"] if unchosen else []
        told += [f"{number} of {len(seeds())} seeds of {_listed([row for row in short if short[row] == number])}"
                 for number in sorted(set(short.values()))]  # fmt: skip
        if told:
            yield f"- {world}: {'; '.join(told)}"


def _listed(rows: Sequence[str]) -> str:
    return ", ".join(f"`{row}`" for row in rows)


def _hypotheses(results: Results) -> str:
    head = ["", "world", "claim", "seeds", "difference, over seeds", "over tasks", "p", "p (Holm)", "verdict"]
    return _table(
        head,
        (
            [h["name"], h["world"], f"`{h['row']}` {'above' if h['sign'] == '+' else 'below'} `{h['against']}`",
             str(difference.seeds), _told(difference.by_seed), _told(difference.by_task),
             "" if p is None else f"{p:.4f}", "" if adjusted is None else f"{adjusted:.3f}", verdict]
            for h, difference, p, adjusted, verdict in judged(results)
        ),
    )  # fmt: skip


def splits_table(results: Results) -> str:
    """What each part of a method gains, and the rest."""

    def lines() -> Iterator[list[str]]:
        for split in (results.split(world, method) for world in WORLDS for method in METHODS):
            if split.whole is None or not split.whole.seeds:
                continue
            yield [split.world, split.method, str(split.whole.seeds), "**the whole**", _gain(split.whole)]
            for row, gain in split.parts.items():
                yield ["", "", "", row.partition("/")[2], _gain(gain)]
            yield ["", "", "", "the gate" if split.method == "gra" else "the rest", _gain(split.rest)]

    return _table(["world", "method", "seeds", "part", "gain"], lines())


def _gain(gain: Difference | None) -> str:
    return "does nothing" if gain is None else _told(gain.by_seed)


def _rows(results: Results) -> str:
    def lines() -> Iterator[list[str]]:
        for world in WORLDS:
            for row in order():
                success = results.success(world, row)
                if not success.n_tasks:
                    continue
                found = [line for line in results.lines if (line["world"], line["row"]) == (world, row)]
                chosen = choice(results.choosing, world, row)
                bound = " (bound)" if chosen.at_bound else ""
                before = sum(line["before"] for line in found) / len(found)
                fell = sum(line["after"] < line["before"] for line in found)
                difference = results.difference(world, row, "base")
                told = [_told(difference.by_seed), _told(difference.by_task)] if row != "base" else ["", ""]
                yield [world, f"`{row}`", f"{found[0]['factor']:g}{bound}", str(success.n_tasks), f"{before:.3f}",
                       _told(success, ""), str(fell), *told]  # fmt: skip

    head = ["world", "row", "learning rate", "seeds", "warmed up", "success", "seeds that fell"]
    return _table([*head, "against base, over seeds", "over tasks"], lines())


def _recipes(results: Results) -> str:
    def lines() -> Iterator[list[str]]:
        for world in WORLDS:
            for row in order():
                found = results.difference(world, row, "grpo/recipe")
                if row.endswith("/recipe") and row != "grpo/recipe" and found.seeds:
                    yield [world, row.partition("/")[0], str(found.seeds), _told(found.by_seed), _told(found.by_task)]

    return _table(["world", "recipe", "seeds", "against GRPO's recipe, over seeds", "over tasks"], lines())


def _table(head: Sequence[str], lines: Iterator[list[str]]) -> str:
    found = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *found]) if found else "Nothing yet."


def _told(interval: Interval, sign: str = "+") -> str:
    if math.isnan(interval.mean):
        return ""
    mean, low, high = (f"{value:{sign}.3f}" for value in interval[:3])
    return mean if math.isnan(interval.low) else f"{mean} [{low}, {high}]"


def publish(lines: Sequence[Line], path: Path) -> None:
    """Write tables and a figure next to the results."""
    results = Results(lines)
    replace_text(path.with_suffix(".md"), show(lines) + "\n")
    draw_tested([(h, difference, verdict) for h, difference, *_, verdict in judged(results)], path.with_suffix(".png"))


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "credit_methods.jsonl"
    if not (lines := read_lines(path)):
        raise SystemExit(f"no results in {path}: make them with python benchmarks/credit_methods.py RUN-FOLDER")
    publish(lines, path)
    print(f"written to {path.with_suffix('.md')} and {path.with_suffix('.png')}")


if __name__ == "__main__":
    main()
