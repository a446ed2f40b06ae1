"""The learning rate of each step, as a share of ``learner.lr``.

    warm-up  s / (W + 1)                                   in the first W of S steps, s = 1, 2, ...
    then     p = (s - 1 - W) / (S - W)
             constant   1
             linear     1 - (1 - end) p
             cosine     end + (1 - end) (1 + cos(pi p)) / 2

Source: linear warm-up and cosine decay are those of verl (``get_cosine_schedule_with_warmup`` and
``get_constant_schedule_with_warmup``), and the numbers after the warm-up agree with them.

Differences: the first of verl's W steps has a rate of 0, and its episodes teach nothing. Ours rises by the same amount
from step to step, and reaches its height at the same step W + 1. The code of EPO begins its warm-up at ``end``. Heads
that learn by gradient have a rate of their own, which stays as it is.
"""

import math

from manyturn.trainers.learn.learner.learner_config import LearnerConfig


def rate_share(config: LearnerConfig, step: int, steps: int) -> float:
    """The share of the learning rate that a step of a run learns at.

    >>> cosine = LearnerConfig(lr_schedule="cosine", lr_end=0.2, lr_warmup=2)
    >>> [round(rate_share(cosine, step, 6), 3) for step in range(1, 7)]
    [0.333, 0.667, 1.0, 0.883, 0.6, 0.317]

    Args:
        step: its number, from 1.
        steps: how many the run has.
    """
    rise = warmup_steps(config, steps)
    if step <= rise:
        return step / (rise + 1)
    over = (step - 1 - rise) / (steps - rise)
    match config.lr_schedule:
        case "constant":
            return 1.0
        case "linear":
            return 1 - (1 - config.lr_end) * over
        case "cosine":
            return config.lr_end + (1 - config.lr_end) * (1 + math.cos(math.pi * over)) / 2


def warmup_steps(config: LearnerConfig, steps: int) -> int:
    """Steps W over which the rate rises; of a share of the run, the next whole number.

    >>> [warmup_steps(LearnerConfig(lr_warmup=warmup), 15) for warmup in (0, 0.1, 10)]
    [0, 2, 10]
    """
    return math.ceil(config.lr_warmup * steps) if config.lr_warmup < 1 else int(config.lr_warmup)


def knows_the_end(config: LearnerConfig) -> bool:
    """True if the rate of a step depends on the number of steps of the run.

    >>> [knows_the_end(LearnerConfig(lr_schedule="constant", lr_warmup=warmup)) for warmup in (10, 0.1)]
    [False, True]
    """
    return 0 < config.lr_warmup < 1 or (config.lr_schedule != "constant" and config.lr_end < 1)
