"""Estimate of a whole run: seconds, memory, tokens, and money, from a trial of its configuration.

A unit of the run costs what it cost in the trial. Two things differ, and are taken into account as assumptions that
the estimate states. After its full warm-up the policy has the success that ends the warm-up, and it then closes half of
the distance to full success, evenly over the steps. An episode of success is as long as the expert's; one without is as
long as such episodes were in the trial.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.forecast.amounts import RunAmounts
from manyturn.trainers.run.forecast.phase_costs import PhaseCosts, sum_of
from manyturn.trainers.run.forecast.trial import Cost, Trial

_GAINED = 0.5  # share of the distance to full success that the steps close


@dataclass(frozen=True)
class EpisodeLengths:
    """Turns of an episode, as multiples of those in the trial's last step.

    Attributes:
        success: at the end of the warm-up, as the estimate assumes it; None where success is not known.
        before, steps, after: before the first step, in the mean over the steps, and after the last one.
    """

    success: float | None
    before: float
    steps: float
    after: float

    @classmethod
    def of(cls, trial: Trial, config: RunConfig, line: Mapping[str, Any]) -> Self:
        """The lengths that follow from the success of a trial and of its expert."""
        warmup, success, turns = config.warmup, line.get("success"), line.get("turns")
        shortened = warmup.imitates and trial.config.warmup.max_updates < warmup.max_updates
        start = max(success or 0.0, warmup.until_success) if shortened and warmup.until_success else success
        expert = trial.summary.get("expert", {}).get("turns")
        if start is None or success is None or not turns or not expert:
            return cls(start, 1.0, 1.0, 1.0)
        failed = max(turns, (turns - success * expert) / (1 - success)) if success < 1 else turns

        def length(reached: float) -> float:
            return (reached * min(expert, failed) + (1 - reached) * failed) / turns

        end = start + _GAINED * (1 - start)
        return cls(start, length(start), length((start + end) / 2), length(end))


@dataclass(frozen=True)
class RunEstimate:
    """Estimate of a run: time, memory, tokens and groups with a signal.

    Attributes:
        parts: name of each part of the run -> its cost.
        amounts: of the run.
        lengths: that it rests on.
        line: metrics of the trial's last step.
        tokens: that the policy says, and that updates read.
        memory_mb: at the peak of the trial; ``device`` where there is a GPU.
        usd: at endpoints that have prices; None where none was asked, or none has prices.
        trial: cost of the trial.
        warmup: updates of imitation in it.
    """

    parts: Mapping[str, Cost]
    amounts: RunAmounts
    lengths: EpisodeLengths
    line: Mapping[str, Any]
    tokens: tuple[int, int]
    memory_mb: Mapping[str, float]
    usd: float | None
    trial: Cost
    warmup: int

    @property
    def total(self) -> Cost:
        return sum_of(self.parts.values())

    @property
    def signal(self) -> float | None:
        """Share of the groups of the trial's last step that had a signal."""
        silent = self.line.get("groups_without_signal")
        return None if silent is None else 1.0 - silent

    @classmethod
    def of(cls, config: RunConfig, trial: Trial) -> Self:
        """The estimate of a run by its trial."""
        amounts = RunAmounts.of(config, trial.phase("begin")[0].line["tasks"])
        costs = PhaseCosts.of(trial)
        lengths = EpisodeLengths.of(trial, config, costs.line)
        return cls(
            _parts(config, amounts, costs, lengths),
            amounts,
            lengths,
            costs.line,
            _tokens(amounts, lengths, costs.line),
            {name: trial.summary[name] for name in ("peak_memory_mb", "peak_device_mb") if name in trial.summary},
            _usd(amounts, costs.line),
            trial.cost,
            trial.summary["warmup"].get("updates", 0),
        )


def _parts(config: RunConfig, amounts: RunAmounts, costs: PhaseCosts, lengths: EpisodeLengths) -> dict[str, Cost]:
    passes = 0
    if config.progress is not None and config.progress.is_fixed:
        passes = config.progress.exploration.passes
    elif config.value is not None and config.value.pretraining is not None:
        passes = config.value.pretraining.passes
    explored = costs.episode.times(lengths.before).plus(costs.exploring, passes)
    held_out = amounts.evaluated * (lengths.before + lengths.after) + amounts.validations * lengths.steps
    played = costs.episode.times(held_out + amounts.checks * lengths.before)
    parts = {
        "loading": costs.loading,
        "demonstrations": costs.demonstrations.times(max(amounts.demonstrations, 1)),
        "imitating": costs.update.times(amounts.updates),
        "exploring": explored.times(amounts.explored),
        "playing": costs.episode.times(amounts.steps * amounts.step_episodes * lengths.steps),
        "learning": costs.learning.times(amounts.steps * lengths.steps),
        "measuring": played.plus(costs.demonstrations, amounts.scripted if amounts.demonstrations else 0),
        "rest": costs.rest.times(amounts.steps),
    }
    return {name: cost for name, cost in parts.items() if cost.seconds > 0}


def _tokens(amounts: RunAmounts, lengths: EpisodeLengths, line: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens that the policy says in all its episodes, and that the updates of all steps read."""
    episode = (line.get("turns") or 0.0) * (line.get("reply_tokens") or 0.0)
    trained = (line.get("trained_tokens") or 0) * lengths.steps * amounts.steps
    return round(episode * lengths.steps * amounts.policy_episodes), round(trained)


def _usd(amounts: RunAmounts, line: Mapping[str, Any]) -> float | None:
    """Money for partners at endpoints, in all episodes, and for a judge at one, in all steps."""
    partners = [value for name, value in line.items() if name.rpartition("/")[2] == "cost"]
    judge = line.get("judge_cost")
    if not partners and judge is None:
        return None
    return sum(partners) / max(amounts.step_episodes, 1) * amounts.policy_episodes + (judge or 0.0) * amounts.steps
