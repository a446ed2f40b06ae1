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
from credit_methods_lines import Line, cell_of, chosen_factor, read_lines, refused_beside
from credit_methods_plan import (
    BASE,
    CHOICE_SEEDS,
    FACTORS,
    METHODS,
    OWN,
    WORLDS,
    Cell,
    choices,
    hypotheses,
    hypotheses_hash,
    order,
    parts_of,
)
from credit_methods_results import Results, judged
from provenance import RESULTS

from manyturn.agents.statistics import Interval
from manyturn.envs.contract.durable import replace_text


def show(lines: Sequence[Line], refused: Sequence[Line] = ()) -> str:
    """All tables as Markdown.

    Args:
        refused: lines of rows that did nothing in their world, and are therefore not missing.
    """
    results = Results(lines)
    return "\n\n".join(
        [
            _head(lines, results, refused),
            "## Hypotheses\n\nOne-sided sign-flip tests over seeds, adjusted for all that are named (Holm).",
            _hypotheses(results),
            "## Where a recipe's gain comes from\n\nMethod against method: the gain of a recipe on the base is the sum "
            "of what its own stage gains and what its companions add. G-RA's companions, rewards for turns, come "
            "before its gate; for all others the stage comes first. `stage, given companions` is the stage's "
            "difference where both sides have the companions; it is empty where they would differ in the shape of "
            "rollouts, too. Exploratory, but for what is named above.",
            _splits(results),
            "## All rows\n\nExploratory, but for what is named above.",
            _rows(results),
            "## Recipe against recipe\n\nRecipes as published, against GRPO's. A difference is of everything that two "
            "recipes set, not of a method. Exploratory.",
            _recipes(results),
        ]
    )


def _head(lines: Sequence[Line], results: Results, refused: Sequence[Line]) -> str:
    idle = {(line["world"], line["row"]): line["beside"] for line in refused}
    planned = [cell for world in WORLDS for cell in _planned(world) if (cell.world, cell.row) not in idle]
    there = {cell_of(line) if line["seed"] in CHOICE_SEEDS else cell_of(line)._replace(factor=0.0) for line in lines}
    missing = [cell for cell in planned if cell not in there]
    if any(line["hypotheses"] != hypotheses_hash() for line in lines):
        raise ValueError("the hypotheses are not those that the results were made for: take credit_methods.toml back")
    made = {what: ", ".join(sorted({line[what] for line in lines})) for what in ("machine", "date", "commit")}
    hours = sum(line["cpu_seconds"] + line["warmup_seconds"] for line in lines) / 3600
    status = f"Incomplete: {len(missing)} of {len(planned)} cells are missing" if missing else "Complete"
    told = [
        "# Credit methods, with everything else equal",
        f"**{status}.** Made by `benchmarks/credit_methods.py` in {hours:.1f} hours of CPU. Machine: "
        f"{made['machine']}. Dates: {made['date']}. Commits: {made['commit']}. Hypotheses: "
        f"`benchmarks/credit_methods.toml`, {hypotheses_hash()}.",
        *[f"`{row}` is left out of {at}: in its first cell it ended as `{end}`." for (at, row), end in idle.items()],
    ]
    return "\n\n".join([*told, *(["Missing:\n\n" + "\n".join(_missing(missing))] if missing else [])])


def _planned(world: str) -> list[Cell]:
    """The cells of a world; those that count have a factor of 0 here, whichever is chosen."""
    counting = [Cell(world, row, seed, 0.0) for seed in range(hypotheses()["seeds"]) for row in order()]
    return [*choices(world), *counting]


def _missing(missing: Sequence[Cell]) -> Iterator[str]:
    seeds = hypotheses()["seeds"]
    for world in WORLDS:
        left = Counter(cell.row for cell in missing if cell.world == world and not cell.chooses)
        unchosen = sum(cell.world == world and cell.chooses for cell in missing)
        told = [f"{unchosen} cells that choose learning rates"] if unchosen else []
        if set(left) == set(order()) and set(left.values()) == {seeds}:
            told.append(f"all {seeds} seeds of all rows")
        else:
            told += [f"`{row}` {number} of {seeds} seeds" for row, number in left.items()]
        if told:
            yield f"- {world}: {', '.join(told)}"


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
                told = [_told(one.by_seed) for one in (split.gain, split.stage, split.companions)]
                given = results.difference(world, f"{method}/recipe", f"{method}/companions")
                yield [world, method, str(split.gain.seeds), *told, "" if _has_shape(method) else _told(given.by_seed)]

    head = ["world", "recipe", "seeds", "gain on the base", "own stage", "companions", "stage, given companions"]
    return _table(head, lines())


def _has_shape(method: str) -> bool:
    """Whether a recipe sets the shape of its rollouts, which its companions' row leaves out."""
    return method in OWN and bool(parts_of(method)[2])


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
            for method in (name for name in METHODS if name in OWN):  # G-RA's row is its gate alone, not its recipe
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
    results, refused = Results(lines), read_lines(refused_beside(path))
    replace_text(path.with_suffix(".md"), show(lines, refused) + "\n")
    idle = {(line["world"], line["row"].partition("/")[0]) for line in refused}
    draw([results.split(world, method) for world in WORLDS for method in METHODS], path.with_suffix(".png"), idle)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "credit_methods.jsonl"
    if not (lines := read_lines(path)):
        raise SystemExit(f"no results in {path}: make them with python benchmarks/credit_methods.py RUN-FOLDER")
    publish(lines, path)
    print(f"written to {path.with_suffix('.md')} and {path.with_suffix('.png')}")


if __name__ == "__main__":
    main()
