"""Two methods in the worlds built for their claims, each against its base with everything else equal.

    nice -n 15 python benchmarks/claims.py RUN-FOLDER
    python benchmarks/claims.py RUN-FOLDER --minutes 30

``claims.toml`` holds what is expected, and was committed before the runs. Seed by seed, base and method of each claim
are run in this process from one warm-up. A line is stored for each run at once, and the same command on the same commit
continues. ``results/claims.json`` has the lines, and for each claim the difference with its interval over seeds.
"""

import argparse
import asyncio
import json
import math
import os
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from credit import told_of
from credit_cell import plant
from credit_plan import COMMON, EPISODES, WORLDS
from provenance import RESULTS, origin, write
from transformers.utils import logging as transformers_logging

from manyturn.agents.evaluation.paired_comparison import read_evaluation, values_over
from manyturn.agents.evaluation.statistics import paired_difference, sign_flip_p
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.record.stop_signal import Stopped
from manyturn.trainers.run.loop.loop import train

FILE = Path(__file__).resolve().with_name("claims.toml")
OUT = RESULTS / "claims.json"
ARMS = ("base", "method")
_KEPT = ("contribution_error", "progress_loss", "epo_weight", "entropy", "turns")  # of each step, where it is there


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
    """How many seeds there are, and the claims."""
    values = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return values["seeds"], tuple(Claim(**entry) for entry in values["claims"])


def config_of(claim: Claim, arm: str, seed: int) -> RunConfig:
    """The configuration of a run."""
    recipe = load_recipe(claim.method)
    own = [_taken(recipe, place.split(".")) for place in claim.own]  # what is left of the recipe is for both
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


def _taken(recipe: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """An entry, which is taken out of the recipe, as a layer of its own."""
    name, *rest = path
    if not rest:
        return {name: recipe.pop(name)}
    return {name: _taken(recipe[name], rest)}


def warmup_of(claim: Claim, seed: int) -> RunConfig:
    """The run whose end both arms begin with."""
    values = stacked([COMMON, WORLDS[claim.world]])
    return configure(values, {"seed": seed, "steps": 0, "evaluation": {"every": 0}})


def run(root: Path, claim: Claim, arm: str, seed: int) -> dict[str, Any]:
    """A run's line, which is made where it is not there."""
    kept = root / claim.name / f"{arm}-{seed}.json"
    if kept.is_file():
        return json.loads(kept.read_text())
    source, began = root / claim.name / f"warmup-{seed}", time.process_time()
    source.parent.mkdir(parents=True, exist_ok=True)
    if not (source / "summary.json").is_file():
        begun = (source / "config.toml").is_file()
        asyncio.run(train(None if begun else warmup_of(claim, seed), source, resume=begun))
    config = config_of(claim, arm, seed)
    with tempfile.TemporaryDirectory(prefix="run-", dir=root) as aside:
        folder = Path(aside) / "run"
        asyncio.run(_from_warmup(config, source, folder))
        line = {"claim": claim.name, "arm": arm, "seed": seed, "config": told_of(config), **found_in(folder)}
    line["cpu_seconds"] = round(time.process_time() - began, 1)
    aside_file = kept.with_suffix(".writing")
    aside_file.write_text(json.dumps(line) + "\n")
    os.replace(aside_file, kept)
    print(f"{claim.name} {arm} seed {seed}: {line['before']:.3f} -> {line['after']:.3f}", flush=True)
    return line


async def _from_warmup(config: RunConfig, source: Path, folder: Path) -> None:
    await plant(config, source, folder)
    await train(None, folder, resume=True)


def found_in(folder: Path) -> dict[str, Any]:
    """What is kept of a finished run: ``successes`` has a digit for each task of the panel, its successful episodes."""
    summary, evaluation = json.loads((folder / "summary.json").read_text()), read_evaluation(folder)
    panel, steps = evaluation.panel, [line for line in read_metrics(folder) if line["phase"] == "train"]
    scores = values_over(evaluation.rows, "success", dict(zip(panel.contents, panel.tasks, strict=True)))
    told = {name: [round(line[name], 5) for line in steps] for name in _KEPT if all(name in line for line in steps)}
    return {
        **{name: summary[name]["success"] for name in ("before", "after", "random", "expert")},
        "panel": panel.hash,
        "successes": "".join(str(int(sum(scores[task]))) for task in panel.tasks),
        "training": [round(line["success"], 4) for line in steps],
        **told,
        "played": summary["played"],
        **({"exploration": summary["exploration"]} if "exploration" in summary else {}),
        "weights": summary["weights"],
    }


def verdict(claim: Claim, lines: Sequence[Mapping[str, Any]], planned: int) -> dict[str, Any]:
    """What the seeds that both arms have say of a claim; nothing is judged before all that were planned are there."""
    by_arm = {arm: {line["seed"]: line for line in lines if line["arm"] == arm} for arm in ARMS}
    seeds = sorted(by_arm["base"].keys() & by_arm["method"].keys())
    ours, base = ({str(seed): [by_arm[arm][seed]["after"]] for seed in seeds} for arm in ("method", "base"))
    told: dict[str, Any] = {**claim._asdict(), "seeds": seeds, "each": []}
    if len(seeds) < 2:
        return {**told, "verdict": "not run"}
    found, p = paired_difference(ours, base), sign_flip_p(ours, base)
    told["each"] = [round(ours[str(seed)][0] - base[str(seed)][0], 4) for seed in seeds]
    ends = {"difference": found.mean, "ci_low": found.low, "ci_high": found.high, "p": p}
    beyond = found.low > 0 if claim.sign == "+" else found.high < 0
    contrary = found.high < 0 if claim.sign == "+" else found.low > 0
    of = {"base": base, "method": ours}
    means = {arm: sum(value for [value] in of[arm].values()) / len(seeds) for arm in ARMS}
    figures = {name: None if math.isnan(value) else round(value, 4) for name, value in {**means, **ends}.items()}
    judged = "shown" if beyond else "the contrary is shown" if contrary else "not shown"
    return {**told, **figures, "verdict": judged if len(seeds) >= planned else f"{len(seeds)} of {planned} seeds"}


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
    told = [verdict(claim, [line for line in lines if line["claim"] == claim.name], seeds) for claim in claims]
    for found in told:
        shown = {name: found.get(name) for name in ("base", "method", "difference", "ci_low", "ci_high", "p")}
        print(f"{found['name']}: {found['verdict']}, seeds {found['seeds']}, {shown}")
    write(chosen.out, about, {"claims": told, "runs": lines})


if __name__ == "__main__":
    main()
