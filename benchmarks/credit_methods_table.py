"""The tables of the comparison of credit methods, and its figure, from the lines that are there.

    python benchmarks/credit_methods_table.py [RESULTS.jsonl]

Cells that are missing are named, and no hypothesis is judged before all of its seeds are there.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from credit_methods_figure import draw
from credit_methods_lines import Line, cell_of, chosen_factor, read_lines
from credit_methods_plan import BASE, FACTORS, METHODS, WORLDS, choices, hypotheses, hypotheses_hash, order, rows
from credit_methods_results import Results, judged
from provenance import RESULTS

from manyturn.agents.statistics import Interval
from manyturn.envs.contract.durable import replace_text


def show(lines: Sequence[Line]) -> str:
    """All tables as Markdown."""
    results = Results(lines)
    return "\n\n".join(
        [
            _head(lines, results),
            "## Hypotheses\n\nOne-sided sign-flip tests over seeds, adjusted for all that are named (Holm).",
            _hypotheses(results),
            "## Where a recipe's gain comes from\n\nMethod against method: the gain of a recipe on the base is the sum "
            "of what its own stage gains and what its companions add. G-RA's companions, rewards for turns, come "
            "before its gate; for all others the stage comes first. `stage beside companions` is the stage's "
            "difference where both sides have the companions. Exploratory, but for what is named above.",
            _splits(results),
            "## All rows\n\nExploratory, but for what is named above.",
            _rows(results),
            "## Recipe against recipe\n\nRecipes as published, against GRPO's. A difference is of everything that two "
            "recipes set, not of a method. Exploratory.",
            _recipes(results),
        ]
    )


def _head(lines: Sequence[Line], results: Results) -> str:
    seeds, cells = hypotheses()["seeds"], len(WORLDS) * len(rows()) * hypotheses()["seeds"]
    planned = cells + sum(len(choices(world)) for world in WORLDS)
    made = {what: ", ".join(sorted({line[what] for line in lines})) for what in ("machine", "date", "commit")}
    hours = sum(line["cpu_seconds"] + line["warmup_seconds"] for line in lines) / 3600
    told = [
        "# Credit methods, with everything else equal",
        f"**{'Complete' if len(lines) == planned else 'Incomplete'}: {len(lines)} of {planned} cells are there.** "
        f"Made by `benchmarks/credit_methods.py` in {hours:.1f} hours of CPU. Machine: {made['machine']}. "
        f"Dates: {made['date']}. Commits: {made['commit']}. Hypotheses: `benchmarks/credit_methods.toml`, "
        f"{hypotheses_hash()}.",
    ]
    if any(line["hypotheses"] != hypotheses_hash() for line in lines):
        raise ValueError("the hypotheses are not those that the results were made for: take credit_methods.toml back")
    if missing := list(_missing(lines, results, seeds)):
        told.append("Missing:\n\n" + "\n".join(f"- {text}" for text in missing))
    return "\n\n".join(told)


def _missing(lines: Sequence[Line], results: Results, seeds: int) -> Iterator[str]:
    for world in WORLDS:
        count = Counter(line["row"] for line in results.lines if line["world"] == world)
        left = {row: seeds - count[row] for row in order() if count[row] < seeds}
        there = {cell_of(line) for line in lines}
        unchosen = sum(cell not in there for cell in choices(world))
        if unchosen:
            yield f"{world}: {unchosen} cells that choose learning rates"
        if len(left) == len(order()) and set(left.values()) == {seeds}:
            yield f"{world}: all {seeds} seeds of all rows"
        elif left:
            yield f"{world}: " + ", ".join(f"`{row}` {number} of {seeds} seeds" for row, number in left.items())


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


def _splits(results: Results) -> str:
    def lines() -> Iterator[list[str]]:
        for world in WORLDS:
            for method in METHODS:
                split = results.split(world, method)
                if not split.gain.seeds:
                    continue
                beside = results.difference(world, f"{method}/recipe", f"{method}/companions")
                found = (split.gain, split.stage, split.companions, beside)
                yield [world, method, str(split.gain.seeds), *(_told(one.by_seed) for one in found)]

    head = ["world", "recipe", "seeds", "gain on the base", "own stage", "companions", "stage beside companions"]
    return _table(head, lines())


def _rows(results: Results) -> str:
    def lines() -> Iterator[list[str]]:
        for world in WORLDS:
            for row in order():
                success = results.success(world, row)
                if not success.n_tasks:
                    continue
                found = [line for line in results.lines if (line["world"], line["row"]) == (world, row)]
                factor = chosen_factor(results.choosing, world, row)
                edge = " (edge)" if factor in (FACTORS[0], FACTORS[-1]) else ""
                before = sum(line["before"] for line in found) / len(found)
                difference = results.difference(world, row, BASE)
                told = [_told(difference.by_seed), _told(difference.by_task)] if row != BASE else ["", ""]
                yield [world, f"`{row}`", f"{factor:g}{edge}", str(success.n_tasks), f"{before:.3f}",
                       _told(success, ""), *told]  # fmt: skip

    head = ["world", "row", "learning rate", "seeds", "warmed up", "success", "against base, over seeds", "over tasks"]
    return _table(head, lines())


def _recipes(results: Results) -> str:
    def lines() -> Iterator[list[str]]:
        for world in WORLDS:
            for method in METHODS:
                found = results.difference(world, f"{method}/recipe", "grpo/recipe")
                if found.seeds:
                    yield [world, method, str(found.seeds), _told(found.by_seed), _told(found.by_task)]

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
    """Write tables and figure next to the results."""
    replace_text(path.with_suffix(".md"), show(lines) + "\n")
    results = Results(lines)
    draw([results.split(world, method) for world in WORLDS for method in METHODS], path.with_suffix(".png"))


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "credit_methods.jsonl"
    if not (lines := read_lines(path)):
        raise SystemExit(f"no results in {path}: make them with python benchmarks/credit_methods.py RUN-FOLDER")
    publish(lines, path)
    print(f"written to {path.with_suffix('.md')} and {path.with_suffix('.png')}")


if __name__ == "__main__":
    main()
