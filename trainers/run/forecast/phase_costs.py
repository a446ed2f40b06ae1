"""Cost of each unit of a run, from the lines of its trial."""

from dataclasses import dataclass
from typing import Any, Self

from manyturn.trainers.run.forecast.amounts import RunAmounts
from manyturn.trainers.run.forecast.trial import Cost, Stamped, Trial


@dataclass(frozen=True)
class PhaseCosts:
    """Costs of units.

    Attributes:
        loading: of all before the first demonstration.
        demonstrations: of one that is played before the first update, or of all trajectories that are read.
        update: of one of imitation, with the demonstrations of a stream that it needs.
        episode: of one that the policy plays in a step.
        learning: of credit and updates of a step.
        rest: of what else a step does, such as writing its tables.
        exploring: of training an estimator or a critic.
        line: the metrics of the last step; of the warm-up's measurement where there is no step.
    """

    loading: Cost
    demonstrations: Cost
    update: Cost
    episode: Cost
    learning: Cost
    rest: Cost
    exploring: Cost
    line: dict[str, Any]

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """The costs in a trial."""
        tasks = trial.phase("begin")[0]
        amounts = RunAmounts.of(trial.config, tasks.line["tasks"])
        steps = trial.phase("train")
        measured = trial.phase("warmup")
        last = (steps or measured or [Stamped({}, Cost())])[-1]
        episodes = amounts.step_episodes if steps else amounts.checks
        return cls(
            tasks.at,
            _demonstrations(trial, amounts),
            _update(trial),
            _part(last.line, "rollout").times(1 / max(episodes, 1)),
            _part(last.line, "learn") if steps else Cost(),
            _rest(steps),
            _exploring(trial),
            last.line,
        )


def _part(line: dict[str, Any], name: str) -> Cost:
    return Cost(line.get(f"{name}_seconds") or 0.0, line.get(f"{name}_cpu_seconds") or 0.0)


def _demonstrations(trial: Trial, amounts: RunAmounts) -> Cost:
    cost = sum_of(_part(stamped.line, "rollout") for stamped in trial.phase("demonstrations"))
    return cost.times(1 / max(amounts.demonstrations, 1))


def _update(trial: Trial) -> Cost:
    """An update of imitation; the first one, which also fills caches, counts only where there is no other."""
    first, later = trial.phase("imitation"), trial.phase("warmup")
    updates = trial.config.warmup.max_updates
    counted, number = (later, updates - 1) if updates > 1 else (first, 1)
    cost = sum_of(_part(s.line, name) for s in counted for name in ("learn", "demonstration"))
    return cost.times(1 / number)


def _rest(steps: list[Stamped]) -> Cost:
    """The cost between two steps that is neither of playing nor of learning."""
    if len(steps) < 2:
        return Cost()
    (_, before), (line, after) = steps[-2:]
    beside = after.plus(before, -1.0).plus(_part(line, "rollout"), -1.0).plus(_part(line, "learn"), -1.0)
    return Cost(max(0.0, beside.seconds), max(0.0, beside.cpu_seconds))


def _exploring(trial: Trial) -> Cost:
    """A pass of the training before the first step over one episode of exploration."""
    played, trained = trial.phase("exploration"), [*trial.phase("estimator"), *trial.phase("critic")]
    if not played or not trained:
        return Cost()
    passes = trained[-1].at.plus(played[-1].at, -1.0)
    return passes.times(1 / len(trained) / played[-1].line["played_episodes"])


def sum_of(costs: Any) -> Cost:
    """The sum of costs."""
    total = Cost()
    for cost in costs:
        total = total.plus(cost)
    return total
