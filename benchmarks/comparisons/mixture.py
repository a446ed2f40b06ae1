"""One policy for three environments against three policies, and tasks that grow against uniform drawing.

    python -m benchmarks.comparisons.mixture FOLDER --out benchmarks/results/mixture.jsonl
    python -m benchmarks.comparisons.mixture FOLDER --table --out benchmarks/results/mixture.jsonl

``together`` is the recipe three-worlds-tiny. Its three rivals are the same recipe with one of the environments, a
third of the tasks of a step and a third of the demonstrations: each environment has the same episodes in both arms.
``growing`` and ``uniform`` train on mazes of four rooms with the turns of the largest, and are measured on mazes of 4,
6 and 9 rooms. Both play as many episodes. The hypotheses were written first, in ``mixture.toml``.

FOLDER keeps every run, so that the same command goes on after an interruption.
"""

import argparse
import asyncio
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.kit.comparison_run import finish, stored_line
from benchmarks.kit.provenance import RESULTS, origin
from benchmarks.kit.table import table
from manyturn.agents.evaluation.statistics import mean_interval
from manyturn.api.evaluation import evaluate
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import RunConfig, configure

PLAN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
OUT = RESULTS / "mixture.jsonl"
MAZE = "manyturn/Maze-v0"
LEVELS = ("easy", "medium", "hard")
TURNS = 36  # of the largest mazes, so that a maze that has grown can be solved
TOY: dict[str, Any] = {
    "steps": 1,
    "model": {"width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
    "warmup": {"episodes": 12, "max_updates": 2, "check_every": 2, "check_episodes": 3, "must_succeed": False},
    "rollout": {"tasks": 3, "group": 2},
    "evaluation": {"limit": 3},
    "agent": {"max_context": 4096},  # so few words make long sentences
}


class Cell(NamedTuple):
    """A run of the comparison.

    Attributes:
        arm: together, growing, uniform, or the name of the environment that a policy has to itself.
    """

    arm: str
    seed: int


def cells(seeds: Sequence[int]) -> Iterator[Cell]:
    """All runs, seed by seed, so that an early stop leaves complete comparisons."""
    for seed in seeds:
        for arm in ("together", *_worlds(), "growing", "uniform"):
            yield Cell(arm, seed)


def _worlds() -> dict[str, dict[str, Any]]:
    return {env["name"]: env for env in load_recipe("three-worlds-tiny")["envs"]}


def config_of(cell: Cell, *, toy: bool = False) -> RunConfig:
    """The configuration of a run.

    Args:
        toy: a run of seconds, to see that everything works.
    """
    changes: dict[str, Any] = {"seed": cell.seed, **(TOY if toy else {})}
    if cell.arm in ("growing", "uniform"):
        curriculum = "grow" if cell.arm == "growing" else "uniform"
        world = {"env": {"args": {"difficulty": "easy", "max_turns": TURNS}}, "curriculum": curriculum}
        room = {"agent": {"max_context": 1024}, "steps": 120, "evaluation": {"every": 0}}
        return configure(load_recipe("quickstart"), {**world, **room}, changes)
    recipe = load_recipe("three-worlds-tiny")
    if cell.arm == "together":
        return configure(recipe, changes)
    worlds = _worlds()
    env = {name: value for name, value in worlds[cell.arm].items() if name != "name"}
    entries = {"warmup": ("episodes", "max_updates", "check_episodes"), "rollout": ("tasks",)}
    third = {
        section: {name: max(1, {**recipe[section], **changes.get(section, {})}[name] // len(worlds)) for name in names}
        for section, names in entries.items()
    }
    return configure(recipe, {"env": env}, changes, third)


def measured(cell: Cell, folder: Path, *, toy: bool = False) -> dict[str, Any]:
    """The line of a run, which is made or resumed in a folder: held-out success by environment, or by level."""
    config = config_of(cell, toy=toy)
    asyncio.run(finish(config, folder))
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    made = json.loads((folder / "made.json").read_text(encoding="utf-8"))
    line = {**cell._asdict(), "played": summary["played"], "seconds": summary["seconds"], **made}
    if cell.arm in ("growing", "uniform"):
        args = {level: {"difficulty": level, "max_turns": TURNS} for level in LEVELS}
        limit = config.evaluation.limit
        rates = {level: evaluate(str(folder), MAZE, env_args=args[level], limit=limit).summary for level in LEVELS}
        return {**line, "success": {level: one["success"]["mean"] for level, one in rates.items()}}
    own = summary.get("envs", {cell.arm: summary})
    return {**line, "success": {name: one["after"]["success"] for name, one in own.items()}}


def verdicts(lines: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Differences over seeds, each with its 95 % interval: together less apart, growing less uniform."""
    by_cell = {(line["arm"], line["seed"]): line["success"] for line in lines}
    rows, mixed = list[tuple[str, ...]](), dict[str, list[float]]()
    for seed in sorted({line["seed"] for line in lines}):
        alone = {world: by_cell.get((world, seed), {}).get(world) for world in _worlds()}
        both = by_cell.get(("together", seed), {})
        if both and None not in alone.values():
            gaps = {world: both[world] - rate for world, rate in alone.items() if rate is not None}
            for name, gap in {**gaps, "all three": mean(gaps.values())}.items():
                mixed.setdefault(f"together - apart, {name}", []).append(gap)
        grown, even = (by_cell.get((arm, seed)) for arm in ("growing", "uniform"))
        if grown and even:
            for level in LEVELS:
                mixed.setdefault(f"growing - uniform, {level}", []).append(grown[level] - even[level])
    for name, gaps in mixed.items():
        interval = mean_interval({str(place): [gap] for place, gap in enumerate(gaps)})
        rows.append((name, f"{interval.mean:+.3f}", f"{interval.low:+.3f} to {interval.high:+.3f}", str(len(gaps))))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", nargs="*", default=None, metavar="ARM", help="arms to run; default: all")
    parser.add_argument("--toy", action="store_true", help="runs of seconds, for one seed")
    parser.add_argument("--table", action="store_true", help="print the differences of --out, and run nothing")
    args = parser.parse_args()
    if not args.table:
        about = origin(args.out, ("torch", "transformers", "numpy"), folder=args.folder)
        lines = list[dict[str, Any]]()
        for cell in cells(PLAN["seeds"][:1] if args.toy else PLAN["seeds"]):
            if args.only is None or cell.arm in args.only:
                place = args.folder / f"{cell.arm}-{cell.seed}"
                file = place.with_suffix(".json")
                lines.append(stored_line(file, lambda c=cell, p=place: measured(c, p, toy=args.toy)))
                print(json.dumps(lines[-1]), flush=True)
        head = {**about, "margin": PLAN["margin"], "expected": PLAN["expected"]}
        args.out.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)), encoding="utf-8")
    _, *read = map(json.loads, args.out.read_text(encoding="utf-8").splitlines())
    print(table(("difference", "mean", "95 % interval", "seeds"), verdicts(read)))


if __name__ == "__main__":
    main()
