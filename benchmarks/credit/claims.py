"""Two methods in the worlds built for their claims, each against its base with everything else equal.

    nice -n 15 python -m benchmarks.credit.claims RUN-FOLDER
    python -m benchmarks.credit.claims RUN-FOLDER --minutes 30

``claims.toml`` states what is expected, and was committed before the runs. Seed by seed, base and method of each claim
are run in this process from one warm-up. Each run's line is stored at once, and the same command on the same commit
resumes. ``results/claims.json`` has the lines, and per claim the difference with its interval over seeds.
"""

import argparse
import asyncio
import json
import math
import time
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from transformers.utils import logging as transformers_logging

from benchmarks.credit.settings import COMMON, EPISODES, WORLDS
from benchmarks.kit.cell import Start, config_changes, finish, held_out, run_cell, stored_line
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.evaluation.statistics import paired_difference, sign_flip_p
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.record.stop_signal import Stopped

FILE = Path(__file__).resolve().with_name("claims.toml")
OUT = RESULTS / "claims.json"
ARMS = ("base", "method")
_CURVES = (
    "contribution_error",
    "progress_loss",
    "epo_weight",
    "entropy",
    "turns",
)  # of each step


class Claim(NamedTuple):
    """An entry of ``claims.toml``.

    Attributes:
        own: entries of the method's recipe that its base does not have.
        sign: direction in which the method should end up.
        steps: of the base.
        explored: episodes that the method plays before its first step, in place of steps.
        why: reason for the sign.
    """

    name: str
    world: str
    base: list[str]
    method: str
    own: list[str]
    sign: str
    steps: int
    explored: int
    why: str


@cache
def plan() -> tuple[int, tuple[Claim, ...]]:
    """The number of seeds, and the claims."""
    values = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return values["seeds"], tuple(Claim(**entry) for entry in values["claims"])


def config_of(claim: Claim, arm: str, seed: int) -> RunConfig:
    """The configuration of a run."""
    recipe = load_recipe(claim.method)
    own = [_popped(recipe, place.split(".")) for place in claim.own]  # both arms have the rest of the recipe
    below = [COMMON, WORLDS[claim.world], *map(load_recipe, claim.base), recipe]
    settled: dict[str, Any] = {"seed": seed, "steps": claim.steps, "evaluation": {"every": 0}}
    if arm == "method":
        below += own
        if claim.explored:
            settled["steps"] -= claim.explored // EPISODES
            settled["progress"] = {"exploration": {"episodes": claim.explored}}
    values = stacked(below)
    settled["rollout"] = {"tasks": EPISODES // values["rollout"]["group"]}
    return configure(values, settled)


def _popped(recipe: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """An entry as a layer of its own; it is removed from the recipe."""
    name, *rest = path
    if not rest:
        return {name: recipe.pop(name)}
    return {name: _popped(recipe[name], rest)}


def warmup_of(claim: Claim, seed: int) -> RunConfig:
    """The run whose end both arms begin with."""
    values = stacked([COMMON, WORLDS[claim.world]])
    return configure(values, {"seed": seed, "steps": 0, "evaluation": {"every": 0}})


def run(root: Path, claim: Claim, arm: str, seed: int) -> dict[str, Any]:
    """A run's line, which is made if it is missing."""

    def make() -> dict[str, Any]:
        start = Start(warmup_of(claim, seed), root / claim.name / f"warmup-{seed}")
        asyncio.run(finish(*start))
        config = config_of(claim, arm, seed)
        line = {"claim": claim.name, "arm": arm, "seed": seed, "config": config_changes(config)}
        line |= run_cell(start, config, root, figures)
        print(f"{claim.name} {arm} seed {seed}: {line['before']:.3f} -> {line['after']:.3f}", flush=True)
        return line

    return stored_line(root / claim.name / f"{arm}-{seed}.json", make)


def figures(folder: Path) -> dict[str, Any]:
    """The figures of a finished run."""
    summary = json.loads((folder / "summary.json").read_text())
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    curves = {name: [round(line[name], 5) for line in steps] for name in _CURVES if all(name in line for line in steps)}
    return {
        **{name: summary[name]["success"] for name in ("before", "after", "random", "expert")},
        **held_out(folder),
        "training": [round(line["success"], 4) for line in steps],
        **curves,
        "played": summary["played"],
        **({"exploration": summary["exploration"]} if "exploration" in summary else {}),
        "weights": summary["weights"],
    }


def verdict(claim: Claim, lines: Sequence[Mapping[str, Any]], planned: int) -> dict[str, Any]:
    """Verdict on a claim from the seeds that both arms have; open until all planned seeds are there."""
    by_arm = {arm: {line["seed"]: line for line in lines if line["arm"] == arm} for arm in ARMS}
    seeds = sorted(by_arm["base"].keys() & by_arm["method"].keys())
    ours, base = ({str(seed): [by_arm[arm][seed]["after"]] for seed in seeds} for arm in ("method", "base"))
    claimed: dict[str, Any] = {**claim._asdict(), "seeds": seeds, "each": []}
    if len(seeds) < 2:
        return {**claimed, "verdict": "not run"}
    difference, p = paired_difference(ours, base), sign_flip_p(ours, base)
    claimed["each"] = [round(ours[str(seed)][0] - base[str(seed)][0], 4) for seed in seeds]
    ends = {"difference": difference.mean, "ci_low": difference.low, "ci_high": difference.high, "p": p}
    beyond = difference.low > 0 if claim.sign == "+" else difference.high < 0
    contrary = difference.high < 0 if claim.sign == "+" else difference.low > 0
    of = {"base": base, "method": ours}
    means = {arm: sum(value for [value] in of[arm].values()) / len(seeds) for arm in ARMS}
    numbers = {name: None if math.isnan(value) else round(value, 4) for name, value in {**means, **ends}.items()}
    judged = "shown" if beyond else "the contrary is shown" if contrary else "not shown"
    return {**claimed, **numbers, "verdict": judged if len(seeds) >= planned else f"{len(seeds)} of {planned} seeds"}


def main() -> None:
    seeds, claims = plan()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where warm-ups and lines lie")
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no run begins")
    parser.add_argument("--out", type=Path, default=OUT, help="file of the result")
    chosen = parser.parse_args()
    about = origin(chosen.out, ("torch", "transformers", "gymnasium", "numpy"), run_folder=chosen.folder)
    end = time.monotonic() + 60 * chosen.minutes
    transformers_logging.disable_progress_bar()
    root, lines = chosen.folder.resolve() / about["commit"], list[dict[str, Any]]()
    try:
        for seed, claim, arm in [(s, c, a) for s in range(chosen.seeds) for c in claims for a in ARMS]:
            if time.monotonic() < end or (root / claim.name / f"{arm}-{seed}.json").is_file():
                lines.append(run(root, claim, arm, seed))
    except Stopped:
        print("stopped: what is finished is stored, and the same command continues")
    verdicts = [verdict(claim, [line for line in lines if line["claim"] == claim.name], seeds) for claim in claims]
    for judged in verdicts:
        numbers = {name: judged.get(name) for name in ("base", "method", "difference", "ci_low", "ci_high", "p")}
        print(f"{judged['name']}: {judged['verdict']}, seeds {judged['seeds']}, {numbers}")
    write(chosen.out, about, {"claims": verdicts, "runs": lines})


if __name__ == "__main__":
    main()
