"""A judge's verdicts as credit: do methods that read them pay the turns that mattered, and what if the judge is poor?

    python -m benchmarks.credit.judge_audit

In each world an expert of whose moves a share is random plays tasks in groups. True effects are of the outcome alone.
A verdict is 1 where the expert would have done the same; of a poor judge's verdicts a share is turned round, by the
turn's place. ``agreement`` is that of the judge with outcomes, as a run measures it in its first step. Nothing is
trained.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.credit.worlds.judged import PART
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.audit.audit import credit_audit
from manyturn.audit.methods import methods_of
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.credit.audit.scores import MethodScore, score_methods
from manyturn.trainers.credit.audit.turn_sample import AuditSample
from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.play.judges.agreement import agreement

OUT = RESULTS / "judge_audit.json"
READERS = ("capo", "renorm+gigpo", "attribution+gigpo", "agent_q")
SHARES = (0.0, 0.2, 0.4, 0.5)  # of verdicts that are turned round
SIZES: Mapping[str, Any] = {"tasks": 16, "group": 6, "steps": 200_000, "reward": "outcome"}
WORLDS: Mapping[str, tuple[str, float, Mapping[str, Any]]] = {
    "maze": ("JudgedMaze", 0.5, {}),
    "household tiny": ("JudgedHousehold", 0.7, {"difficulty": "tiny"}),
    "sql tiny": ("JudgedSQL", 0.3, {"difficulty": "tiny"}),
    "drafts tiny": ("JudgedDrafts", 0.3, {"difficulty": "tiny"}),
    "clarify easy": ("JudgedClarify", 0.4, {"difficulty": "easy"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    about = origin(OUT)
    worlds = {name: survey(*world, SIZES) for name, world in WORLDS.items()}
    write(OUT, about, {"sizes": dict(SIZES), "worlds": worlds})


def survey(world: str, noise: float, args: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of each method by the share of verdicts that are turned round."""
    env = f"{Path(__file__).with_name('worlds') / 'judged.py'}:{world}"
    methods = all_methods()
    audit = credit_audit(env, f"expert:{noise}", methods=methods, env_args=args, anchors=("environment",), **sizes)
    rows = dict[str, Any]()
    for share in SHARES:
        sample = with_noise(audit.sample, share)
        scores = [score for score in score_methods(sample, methods).scores if score.anchor == "environment"]
        rows[f"{share:g}"] = {
            "agreement": judge_agreement(sample),
            "methods": {score.method: _figures(score) for score in scores},
        }
    return rows


def all_methods() -> dict[str, CreditConfig]:
    """The methods that read verdicts, after GRPO and GiGPO without them, and GiGPO with verdicts as plain rewards."""
    ignored = {"name": "part_weights", "weights": {PART: 0.0}}
    plain = {name: CreditConfig.model_validate({"rewards": [ignored], "advantage": name}) for name in ("grpo", "gigpo")}
    return {
        **plain,
        "gigpo, verdicts added": CreditConfig.model_validate({"advantage": "gigpo"}),
        **methods_of(READERS),
    }


def with_noise(sample: AuditSample, share: float) -> AuditSample:
    """The sample with a share of the verdicts turned round."""
    batch = sample.batch
    verdict_K = batch.parts[PART]
    odd_K = generator("judge audit", share).random(len(verdict_K)) < share
    parts = {**batch.parts, PART: np.where(odd_K, 1 - verdict_K, verdict_K)}
    return replace(sample, batch=replace(batch, parts=parts))


def judge_agreement(sample: AuditSample) -> float:
    """Agreement of the mean verdict of an episode with its outcome."""
    batch = sample.batch
    turns_E = np.bincount(batch.episode_K)
    means_E = np.bincount(batch.episode_K, batch.parts[PART]) / turns_E
    return agreement(means_E.tolist(), (outcome_E(batch) > 0).tolist())


def _figures(score: MethodScore) -> dict[str, list[float] | float]:
    correlation, within = ([one.mean, one.low, one.high] for one in (score.correlation, score.within))
    return {"correlation": correlation, "within": within, "noise": score.noise}


if __name__ == "__main__":
    main()
