"""Agreement of a rubric of several criteria with outcomes, in two worlds where success is certain.

    python -m benchmarks.credit.rubric_agreement

The rubric has weights and a gate, and rules judge. A run's own judge gives the verdicts and measures the agreement, as
in a first step. ``rubric_agreement.toml`` has the rubrics and what was expected.

    agreement = share of pairs of a success and a failure in which the success has the better verdict, ties half
    interval  = percentiles of a bootstrap over tasks, whose episodes stay together
"""

import argparse
import asyncio
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.play.guidance.guidance import Workshop
from manyturn.trainers.play.judges.agreement import agreement, judged_outcomes
from manyturn.trainers.play.judges.judge_config import JudgeConfig
from manyturn.trainers.play.judges.judging import Judging
from manyturn.trainers.play.judges.rule import RULES, Case, RuleConfig

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "rubric_agreement.json"
MAX_TURNS = 40
PART = JudgeConfig().part


class FlippedRuleConfig(RuleConfig):
    name: Literal["flipped"] = "flipped"
    needs_expert: ClassVar[bool] = True
    of: Annotated[Any, RULES.optional_field]
    """Rule that is turned round."""


def flipped(case: Case, config: FlippedRuleConfig) -> Sequence[float]:
    """1 minus another rule's verdict."""
    return [1 - score for score in RULES.apply(config.of, case)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    RULES.register(FlippedRuleConfig)(flipped)
    plan = tomllib.loads(HERE.read_text())
    about = origin(OUT, ("numpy",))
    worlds = {name: asyncio.run(survey(world, plan)) for name, world in plan["worlds"].items()}
    write(OUT, about, {"plan": plan, "verdicts": verdicts(worlds), "worlds": worlds})


def rubrics(criteria: Sequence[Mapping[str, Any]]) -> dict[str, JudgeConfig]:
    """The good rubric and four others that are made from it."""
    turned = [one if one.get("gate") else {**one, "rule": {"name": "flipped", "of": one["rule"]}} for one in criteria]
    options: dict[str, dict[str, Any]] = {
        "good": {"criteria": criteria},
        "flipped": {"criteria": turned},
        "coin": {"criteria": criteria, "noise": 0.5},
        "without the gate": {"criteria": [one for one in criteria if not one.get("gate")]},
        "without the expert": {"criteria": [one for one in criteria if one["rule"] != "expert"]},
    }
    return {name: JudgeConfig.model_validate({"min_agreement": 0, **judge}) for name, judge in options.items()}


def criteria_alone(criteria: Sequence[Mapping[str, Any]]) -> dict[str, JudgeConfig]:
    """A judge by each criterion alone."""
    bare = [{"name": one["name"], "rule": one["rule"]} for one in criteria]
    return {one["name"]: JudgeConfig.model_validate({"min_agreement": 0, "criteria": [one]}) for one in bare}


def mean_verdict(judged: Sequence[Episode], member: int) -> float:
    """Mean over the turns of a policy's episodes."""
    verdict_K = [turn.parts[PART] for episode in judged if episode.key.member == member for turn in episode.turns]
    return round(float(np.nanmean(verdict_K)), 4)


async def survey(world: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    """The agreement of each rubric in a world, over all policies and within one, and the good rubric's lead."""
    members = {f"{noise:g}": member for member, noise in enumerate(plan["policies"])}
    async with open_seats(world["id"], world["args"]) as seats:
        tasks = seats.tasks("train")[: plan["tasks"]]
        episodes = list[Episode]()
        for noise, member in zip(plan["policies"], members.values(), strict=True):
            keys = [(task, EpisodeKey(plan["seed"], "rubric", task.id, member)) for task in tasks]
            episodes += await gather(seats, Scripted(noise), keys, max_turns=MAX_TURNS)
        workshop = Workshop(seats, MAX_TURNS, Patience())
        judged = {
            name: await Judging(config, workshop).judged(episodes, first=True)
            for name, config in rubrics(world["criteria"]).items()
        }
        single = {
            name: await Judging(config, workshop).judged(episodes, first=True)
            for name, config in criteria_alone(world["criteria"]).items()
        }
    alone = members[f"{plan['alone']:g}"]
    chosen = {"all": judged, "alone": {n: [e for e in es if e.key.member == alone] for n, es in judged.items()}}
    success = {noise: np.mean([bool(e.success) for e in episodes if e.key.member == m]) for noise, m in members.items()}
    return {
        "success": {noise: round(float(share), 3) for noise, share in success.items()},
        "criteria": {
            name: {noise: mean_verdict(of, member) for noise, member in members.items()} for name, of in single.items()
        },
        **{name: _rows(of, world["criteria"], plan["draws"]) for name, of in chosen.items()},
    }


def _rows(
    judged: Mapping[str, Sequence[Episode]], criteria: Sequence[Mapping[str, Any]], draws: int
) -> dict[str, dict[str, Any]]:
    """Agreement of each rubric, and by how much the good rubric's is above it, with intervals."""
    configs, rows, samples = rubrics(criteria), dict[str, dict[str, Any]](), dict[str, np.ndarray]()
    for name, episodes in judged.items():
        values, resampled = agreements(episodes, configs[name], draws)
        samples[name] = np.array([values, *resampled])
        verdict_count = len(judged_outcomes(episodes, configs[name])[0])
        trusted = bool(values >= JudgeConfig().min_agreement)
        rows[name] = {"agreement": _interval(samples[name]), "episodes": verdict_count, "trusted": trusted}
        if name != "good":
            rows[name]["good_less_this"] = _interval(samples["good"] - samples[name])
    return rows


def agreements(episodes: Sequence[Episode], config: JudgeConfig, draws: int) -> tuple[float, list[float]]:
    """Agreement over all episodes, and over those of each bootstrap draw of tasks, the same for every rubric."""
    by_task = dict[str, list[Episode]]()
    for episode in episodes:
        by_task.setdefault(episode.task.id, []).append(episode)
    outcomes = [judged_outcomes(group, config) for group in by_task.values()]
    rng, count = generator("rubric agreement"), len(outcomes)
    picks = [range(count), *rng.integers(count, size=(draws, count))]
    values = [
        agreement([v for n in pick for v in outcomes[n][0]], [s for n in pick for s in outcomes[n][1]])
        for pick in picks
    ]
    return values[0], values[1:]


def _interval(values: np.ndarray) -> list[float]:
    """The first value, and the 2.5th and 97.5th percentile of the rest."""
    return [round(float(x), 4) for x in (values[0], *np.nanpercentile(values[1:], (2.5, 97.5)))]


def verdicts(worlds: Mapping[str, Any]) -> dict[str, bool]:
    """Verdicts on what was expected."""

    def every(condition: Callable[[Any], bool]) -> bool:
        return all(condition(world) for world in worlds.values())

    def figures(world: Any, rubric: str, name: str = "agreement") -> list[float]:
        return world["all"][rubric][name]

    return {
        "H1": every(lambda w: figures(w, "good")[1] > 0.85 and w["alone"]["good"]["agreement"][1] > 0.6),
        "H2": every(lambda w: figures(w, "flipped")[2] < 0.4),
        "H3": every(lambda w: 0.4 < figures(w, "coin")[0] < 0.6),
        "H4": every(lambda w: abs(figures(w, "without the gate", "good_less_this")[0]) < 0.05),
        "H5": every(lambda w: figures(w, "without the expert", "good_less_this")[1] > 0),
    }


if __name__ == "__main__":
    main()
