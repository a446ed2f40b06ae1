"""Forecast of a run's duration, from the seconds of a few of its steps.

Seconds of episodes and updates are those that were measured. The ``simulate`` of the schedule, which asks the same code
as the training loop, says what they come to in another order or with more places. It knows nothing of a device that two
parts share: with more places each turn is taken to cost the policy as long as before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from manyturn.agents.records.episode_rows import read_episodes
from manyturn.trainers.play.order.schedule import EpisodePlace
from manyturn.trainers.play.order.simulation import Workload, simulate
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.run_folder import RunFolderError, read_config, read_metrics, step_tables


@dataclass(frozen=True)
class Step:
    """A step that was made.

    Attributes:
        play_S: seconds of each of its S episodes, policy and environment together.
        env_seconds: of all its episodes, those of the environment.
        rollout_seconds: until all of them had ended.
        learn_seconds: of credit and updates.
        beside: seconds until the next step that are neither, such as for a checkpoint.
        by_env: name of each environment of several -> seconds of its episodes, and those of the environment itself.
    """

    play_S: Sequence[float]
    env_seconds: float
    rollout_seconds: float
    learn_seconds: float
    beside: float
    by_env: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """The measured costs of the first steps of a run.

    Attributes:
        steps: those that were looked at; what is in the first one alone, such as caches that fill, counts as well.
        begin: seconds before the first step: demonstrations, warm-up, evaluations.
        evaluation: seconds of those evaluations, which come once more at the end.
        places: episodes that were open together at most.
        staleness: of the order that they were made in.
    """

    config: RunConfig
    steps: Sequence[Step]
    begin: float
    evaluation: float
    places: int
    staleness: int


@dataclass(frozen=True)
class Planned:
    """A way to make the whole run.

    Attributes:
        minutes: of all of it.
        episodes_per_hour: of its steps.
        learner_idle, places_idle: shares of the time of its steps.
        env_turns: turns that environments work on at the same time, on the mean.
    """

    staleness: int
    places: int
    minutes: float
    episodes_per_hour: float
    learner_idle: float
    places_idle: float
    env_turns: float


def _refuse_warming(run: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Raise RunFolderError with what is left of the warm-up, if the run is in it."""
    measured = [line for line in lines if line["phase"] == "warmup"]
    if lines and lines[-1]["phase"] == "warmup" and measured[-1].get("warmup_left_seconds"):
        last = measured[-1]
        so_far = f"{last['demonstrations']:,} demonstrations and {last['cpu_seconds'] / 60:.1f} CPU minutes so far"
        raise RunFolderError(
            f"{run} is in its warm-up, with {so_far}, which takes at most {last['warmup_left_seconds'] / 60:.0f} "
            "minutes more at this speed: plan once it has made a step"
        )


def _last_session(lines: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], float]:
    """Lines since a run was last resumed, and the seconds before: the clock of each session begins at 0."""
    seconds = [line["seconds"] for line in lines]
    begins = [number for number in range(1, len(lines)) if seconds[number] < seconds[number - 1]]
    return lines[begins[-1] if begins else 0 :], sum(seconds[number - 1] for number in begins)


def measured(run: Path, first: int | None = None) -> Measured:
    """The costs so far of a run, which may still be running.

    Args:
        first: look at so many of its first steps; None: at all.

    Raises:
        RunFolderError: there is no run, it has made no step, was interrupted among these steps, or plays different
            numbers of episodes in them.
        ConfigError: its configuration is damaged.
    """
    config, lines = read_config(run), read_metrics(run)
    trained = [line for line in lines if line["phase"] == "train"][:first]
    if not trained:
        _refuse_warming(run, lines)
        raise RunFolderError(f"{run} has made no step yet: manyturn train --steps 3 makes enough of them to plan by")
    start, until = lines.index(trained[0]), lines.index(trained[-1])
    clock = [line["seconds"] for line in lines[start : until + 1]]
    if clock != sorted(clock):
        raise RunFolderError(
            f"{run} was interrupted and resumed within its first {len(trained)} steps, and how long it stood is not "
            "known: plan by fewer with --first, or by another run"
        )
    begin = trained[0]["seconds"] - trained[0]["rollout_seconds"] - trained[0]["learn_seconds"]
    session, earlier_seconds = _last_session(lines[: start + 1])
    before = max((line["seconds"] for line in session if line["step"] < 1), default=0.0)
    ends = [line["seconds"] for line in trained]
    steps = []
    for line, earlier in zip(trained, [begin, *ends], strict=False):
        rows = read_episodes(step_tables(run, line["step"])[1])
        beside = line["seconds"] - earlier - line["rollout_seconds"] - line["learn_seconds"]
        play_S = [row["seconds_policy"] + row["seconds_env"] for row in rows]
        env_seconds = sum(row["seconds_env"] for row in rows)
        pairs = [(row["task"], (row["seconds_policy"] + row["seconds_env"], row["seconds_env"])) for row in rows]
        by_env = {env: [pair for task, pair in pairs if task.startswith(f"{env}/")] for env in config.weights}
        seconds = line["rollout_seconds"], line["learn_seconds"]
        steps.append(Step(play_S, env_seconds, *seconds, max(0.0, beside), by_env))
    staleness = config.order.staleness if config.order.kind == "asynchronous" else 0
    if len({len(step.play_S) for step in steps}) > 1:
        raise RunFolderError(f"steps of {run} have different numbers of episodes, which no plan can be made of")
    places = _places(config, staleness)
    return Measured(config, steps, earlier_seconds + begin, begin - before, places, staleness)


def plan(costs: Measured, steps: int, staleness: int, places: int) -> Planned:
    """The whole run in an order, with so many places. Steps after the measured ones are taken to be like those."""
    episodes = len(costs.steps[0].play_S)
    simulated = simulate(_workload(costs, steps, staleness, places, _scale(costs)))
    seconds = simulated.seconds
    env = mean(step.env_seconds for step in costs.steps) * steps
    return Planned(
        staleness,
        places,
        (costs.begin + seconds + costs.evaluation) / 60,
        3600 * episodes * steps / seconds,
        _over_time(simulated.figures, "learner_idle"),
        _over_time(simulated.figures, "players_idle"),
        env / seconds,
    )


def _workload(costs: Measured, steps: int, staleness: int, places: int, scale: float = 1.0) -> Workload:
    """So many steps, of which each is one of those that were measured, in turn."""

    def like(step: int) -> Step:
        return costs.steps[(step - 1) % len(costs.steps)]

    def play(place: EpisodePlace) -> float:  # in place of a group that is dropped, another one begins
        return like(place.step).play_S[place.number] * scale

    def learn(step: int) -> float:
        return like(step).learn_seconds + like(step).beside

    episodes, config = len(like(1).play_S), costs.config
    if config.order.consume == "drawn":
        return Workload(episodes, steps, staleness, places, play, learn)
    return Workload(
        episodes, steps, staleness, places, play, learn, groups=config.rollout.tasks, consume=config.order.consume
    )


def _scale(costs: Measured) -> float:
    """Ratio of the measured seconds of rollouts to the simulated seconds of episodes; both are of one order."""
    if costs.staleness:
        return 1.0  # an episode's own seconds are all that is known of it
    count = len(costs.steps)
    alone = simulate(_workload(costs, count, 0, costs.places)).seconds
    learnt = sum(step.learn_seconds + step.beside for step in costs.steps)
    played = sum(step.rollout_seconds for step in costs.steps)
    return played / max(alone - learnt, 1e-9)


def _over_time(figures: Sequence[dict[str, float]], name: str) -> float:
    return mean(line[name] for line in figures)


def _places(config: RunConfig, staleness: int) -> int:
    return min(config.rollout.concurrency, config.rollout.tasks * config.rollout.group * (staleness + 1))
