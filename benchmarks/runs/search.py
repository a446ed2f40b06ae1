"""Plain sampling, best of n, beam and tree search at equal tokens, on a Household and a Treasure level.

    python -m benchmarks.runs.search RUN-FOLDER

Policies are trained first, by a short recipe that leaves them much to choose from. Each evaluation has the same tasks
and seed. The same command continues runs and evaluations that were interrupted, and ``search.toml`` has what was
expected.
"""

import argparse
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import manyturn as mt
from benchmarks.kit.provenance import RESULTS, origin, write

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "search.json"
METHODS = {
    "best_of_n": {"name": "best_of_n"},
    "beam": {"name": "beam"},
    "tree": {"name": "tree"},
    "tree, one reply at a time": {"name": "tree", "rollout": False, "explore": 0.1},
}
COLOURS = {"best_of_n": "#2563eb", "beam": "#ea580c", "tree": "#16a34a", "tree, one reply at a time": "#9333ea"}


def trained(folder: Path, world: Mapping[str, Any], plan: Mapping[str, Any]) -> Path:
    """The run of a world, trained unless it is there."""
    if not (folder / "checkpoints").is_dir() or not any((folder / "checkpoints").iterdir()):
        mt.train(recipe=plan["train"]["recipe"], out=folder, env=dict(world), progress=True, **plan["train"]["options"])
    return folder


def measured(out: Path) -> dict[str, Any]:
    """Success of an evaluation with its interval, and the tokens of an episode."""
    summary = json.loads((out / "summary.json").read_text())
    success = {name: round(summary["success"][name], 4) for name in ("mean", "ci_low", "ci_high")}
    tokens = {name: round(summary["tokens"][f"{name}_mean"], 1) for name in ("reply", "prompt")}
    ends = summary["measures"].get("search_ends", {}).get("mean", 1.0)
    return {**success, "tokens": tokens, "ends": round(ends, 2), "errors": summary["errors"]["n"]}


def against(first: Path, second: Path) -> dict[str, float]:
    """Success of the second evaluation less that of the first, paired by task."""
    [comparison] = mt.compare(first, second)["comparisons"]
    return {name: round(comparison["success"][name], 4) for name in ("difference", "ci_low", "ci_high")}


def searches(plan: Mapping[str, Any]) -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    """Every search that is measured: method, budget, value and options."""
    for budget in plan["budgets"]:
        for method, options in METHODS.items():
            yield method, budget, "progress", options
    for value in ("likelihood", "oracle"):
        for budget in plan[f"{value}_at"]:
            yield "best_of_n", budget, value, METHODS["best_of_n"]


def rows_of(run: Path, folder: Path, plan: Mapping[str, Any], result: dict[str, Any]) -> Iterator[None]:
    """Measure a policy without a search, greedy and sampled, and after each search; each adds to the result."""
    common: dict[str, Any] = {"limit": plan["panel"], "seed": plan["seed"]}
    plain = {name: folder / name for name in ("sampled", "greedy")}
    for name, temperature in (("sampled", 1.0), ("greedy", 0.0)):
        mt.evaluate(str(run), out=plain[name], sampling={"temperature": temperature}, **common)
    result |= {"plain": {name: measured(out) for name, out in plain.items()}, "searches": []}
    folders = dict[tuple[str, int, str], Path]()
    for method, budget, value, options in searches(plan):
        name = f"{method}-{budget}-{value}".replace(", ", "-").replace(" ", "-")
        out = folders[method, budget, value] = folder / name
        mt.evaluate(str(run), out=out, search={**options, "tokens": budget, "value": value}, **common)
        row = {"method": method, "tokens_most": budget, "value": value, **measured(out)}
        row["over_plain"] = against(plain["sampled"], out)
        if (rival := folders.get(("best_of_n", budget, value))) is not None and rival != out:
            row["over_best_of_n"] = against(rival, out)
        result["searches"].append(row)
        yield


def verdicts(worlds: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, bool] | None:
    """Verdicts on what was expected; None until every search is measured."""
    if any(len(worlds.get(world, {}).get("searches", ())) < len([*searches(plan)]) for world in plan["worlds"]):
        return None
    most = max(plan["budgets"])

    def row(world: str, method: str, value: str = "progress") -> dict[str, Any]:
        rows = worlds[world]["searches"]
        return next(r for r in rows if (r["method"], r["tokens_most"], r["value"]) == (method, most, value))

    above_plain = [row(w, m)["over_plain"]["ci_low"] > 0 for w in worlds for m in ("best_of_n", "tree")]
    return {
        "H1": all(above_plain),
        "H2": any(row(w, "tree")["over_best_of_n"]["ci_low"] > 0 for w in worlds),
        "H3": all(abs(row(w, "best_of_n", "likelihood")["over_plain"]["difference"]) < 0.15 for w in worlds),
    }


def draw(worlds: Mapping[str, Any], path: Path) -> None:
    """Success by tokens, a panel for each world."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(worlds), 3.8), layout="constrained")
    for number, (world, result) in enumerate(worlds.items(), 1):
        axes = figure.add_subplot(1, len(worlds), number)
        for name, marker in (("sampled", "o"), ("greedy", "D")):
            row = result["plain"][name]
            spread = [[row["mean"] - row["ci_low"]], [row["ci_high"] - row["mean"]]]
            axes.errorbar(
                [row["tokens"]["reply"]], [row["mean"]], spread, fmt=marker, color="#111827", label=f"plain, {name}"
            )
        for method, colour in COLOURS.items():
            rows = [r for r in result["searches"] if (r["method"], r["value"]) == (method, "progress")]
            tokens, means = [r["tokens"]["reply"] for r in rows], [r["mean"] for r in rows]
            axes.plot(tokens, means, "-o", color=colour, label=method)
            axes.fill_between(
                tokens, [r["ci_low"] for r in rows], [r["ci_high"] for r in rows], color=colour, alpha=0.1
            )
        axes.set(title=world, xlabel="reply tokens of an episode, mean", ylabel="success", ylim=(0, 1))
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args(words)
    plan = tomllib.loads(HERE.read_text())
    about = origin(chosen.out, ("torch", "numpy"), run_folder=chosen.run_folder)
    worlds = dict[str, Any]()
    for name, world in plan["worlds"].items():
        run = trained(chosen.run_folder / name, world, plan)
        worlds[name] = dict[str, Any]()
        for _ in rows_of(run, chosen.run_folder / f"{name}-evaluations", plan, worlds[name]):
            write(chosen.out, about, {"plan": plan, "verdicts": verdicts(worlds, plan), "worlds": worlds})
            draw(worlds, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
