"""Agreement of verdicts with what is known: the environment's own outcome, and the length of the replies.

    agreement = share of pairs of a success and a failure in which the success has the better verdict, ties half
    line      = least squares of the verdict on log(1 + characters of the reply)

An episode's verdict is the mean of those on its turns. Agreement is the area under the ROC curve: 0.5 is chance,
whatever share of the episodes succeeds.
"""

import math
from collections.abc import Sequence

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.trainers.credit.batch.turn_batch import FloatK
from manyturn.trainers.play.judges.judge_config import JudgeConfig
from manyturn.trainers.play.judges.rubric import Scores


class JudgeDisagrees(RuntimeError):
    """A judge's verdicts do not follow the environment's outcomes, or this cannot be measured."""


def agreement(verdicts: Sequence[float], successes: Sequence[bool]) -> float:
    """Share of pairs in the right order; NaN where there is no success or no failure.

    >>> agreement([0.9, 0.5, 0.5, 0.1], [True, True, False, False])
    0.875
    """
    good = np.array([verdict for verdict, success in zip(verdicts, successes, strict=True) if success])
    bad = np.array([verdict for verdict, success in zip(verdicts, successes, strict=True) if not success])
    if not len(good) or not len(bad):
        return float("nan")
    over = good[:, None] - bad[None, :]
    return float(np.mean(np.where(over > 0, 1.0, np.where(over < 0, 0.0, 0.5))))


def judged_outcomes(episodes: Sequence[Episode], config: JudgeConfig) -> tuple[list[float], list[bool]]:
    """Verdict and success of each episode that has both."""
    means = [float(np.mean(verdicts_of(e, config))) if verdicts_of(e, config) else math.nan for e in episodes]
    pairs = zip(means, [episode.success for episode in episodes], strict=True)
    sound = [(verdict, success) for verdict, success in pairs if success is not None and not math.isnan(verdict)]
    return [verdict for verdict, _ in sound], [success for _, success in sound]


def verdicts_of(episode: Episode, config: JudgeConfig) -> list[float]:
    """Verdicts on an episode: one for each turn, or one; none where it was not judged."""
    return [turn.parts[config.part] for turn in episode.turns if config.part in turn.parts]


def lengths_of(episode: Episode, config: JudgeConfig) -> list[float]:
    """Characters of what each verdict is on."""
    lengths = [float(len(turn.reply)) for turn in episode.turns]
    return lengths if config.verdicts == "turn" else [sum(lengths)]


def check_agreement(episodes: Sequence[Episode], config: JudgeConfig) -> None:
    """Raise JudgeDisagrees where a run is not to trust its judge."""
    if not config.min_agreement:
        return
    verdicts, successes = judged_outcomes(episodes, config)
    share = agreement(verdicts, successes)
    if math.isnan(share):
        ends = "succeeded" if successes and all(successes) else "failed" if successes else "had no verdict or outcome"
        raise JudgeDisagrees(
            f"the agreement of the judge {config.by} with outcomes cannot be measured: all {len(episodes)} episodes of "
            f"the first step {ends}: begin with a policy that sometimes succeeds, or set judge.min_agreement = 0 to "
            "trust it unmeasured"
        )
    if share < config.min_agreement:
        raise JudgeDisagrees(
            f"the judge {config.by} agrees with outcomes at {share:.2f} over {len(successes)} episodes of the first "
            f"step, {sum(successes)} of them successes, and judge.min_agreement is {config.min_agreement:g} (0.5 is "
            "chance): give other criteria or a better judge"
        )


def without_length(scores: Sequence[Scores], lengths: Sequence[FloatK]) -> list[Scores]:
    """Verdicts without what a straight line in the logarithm of the lengths explains, within 0 to 1.

    >>> scores = [np.array([0.2, 0.4]), np.array([0.6, 0.8])]
    >>> without_length(scores, [np.array([0.0, 1.0]), np.array([3.0, 7.0])])
    [array([0.5, 0.5]), array([0.5, 0.5])]
    """
    flat, x = np.concatenate(list(scores)), np.log1p(np.concatenate(list(lengths)))
    there = ~np.isnan(flat)
    if not there.any() or np.ptp(x[there]) == 0:
        return list(scores)
    centred = x - x[there].mean()
    slope = centred[there] @ (flat[there] - flat[there].mean()) / (centred[there] @ centred[there])
    flat = np.clip((flat - slope * centred).round(12), 0.0, 1.0)
    return np.split(flat, np.cumsum([len(one) for one in scores])[:-1])
