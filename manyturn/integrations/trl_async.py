"""TRL's asynchronous trainer: a row for each turn, with its credit; rows and packing were run with trl 1.16.0.

``AsyncGRPOTrainer`` takes one advantage for each row of tokens. A row that is one turn therefore carries the credit of
turns as it is, and TRL's packing computes once what the rows of an episode begin with. Credit that tells the tokens of
a turn apart is refused, and so are methods with a critic. Source: ``async_rollout_worker.py`` in trl 1.16.0.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.contract.options.registry import Memory
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_rollouts import Rollout, credit_rollouts

# Where the class is in 1.16, and in later releases, which moved it.
_PLACES = ("trl.experimental.async_grpo.async_rollout_worker", "trl.trainer.async_grpo_trainer", "trl")


class ModelCall(NamedTuple):
    """A turn as the model's server computed it: ids of the prompt and of the reply, and a log-probability for each of
    the reply's."""

    prompt: Sequence[int]
    reply: Sequence[int]
    logprobs: Sequence[float]


class TurnSamples(NamedTuple):
    """Rows in the queue.

    Attributes:
        samples: TRL's ``RolloutSample``, one for each turn that is learnt from, in the order of rollouts and turns.
        memory: what methods remember; hand it back with the next rollouts.
        diagnostics: figures of credit.
    """

    samples: list[Any]
    memory: Memory
    diagnostics: dict[str, float]


def turn_samples(
    rollouts: Sequence[Rollout],
    calls: Sequence[Sequence[ModelCall]],
    credit: CreditConfig,
    *,
    version: int,
    first_group: int = 0,
    memory: Memory | None = None,
) -> TurnSamples:
    """The rows of rollouts, complete groups of which belong together in one call.

    Args:
        rollouts: E episodes; what they say of tokens is taken from ``calls``.
        calls: of each episode its turns.
        version: TRL's ``model_version`` of the weights that drew them.
        first_group: TRL's ``group_id`` of the first group; the others follow, in the order in which they begin.
        memory: what the call before returned.

    Raises:
        ImportError: the installed TRL has no such rows.
        ValueError: rollouts and calls do not fit, or the credit is not one for each turn.
    """
    if "value" in credit.needs:
        raise ValueError(f"{credit.needs['value']} learns a critic, and TRL has none: take another, such as gigpo")
    for number, (rollout, own) in enumerate(zip(rollouts, calls, strict=True)):
        _check(number, rollout, own)
    fields = [
        replace(rollout, tokens=[len(call.reply) for call in own], mask=None)
        for rollout, own in zip(rollouts, calls, strict=True)
    ]
    earned = credit_rollouts(fields, credit, memory or {})
    if earned.token_T is not None:
        raise ValueError(
            f"{credit.advantage.name} tells the tokens of a turn apart, and a row of TRL's has one advantage: take one "
            "of turns, such as gigpo, or CreditGRPOTrainer"
        )
    sample, learnt_K = _sample_class(), earned.kept_E[earned.batch.episode_K] & earned.batch.scorable_K
    numbers = {group: first_group + number for number, group in enumerate(dict.fromkeys(one.group for one in fields))}
    rows = []
    for turn, (episode, place) in enumerate(
        (episode, place) for episode, own in enumerate(calls) for place in range(len(own))
    ):
        if learnt_K[turn]:
            advantage = float(earned.advantage_K[turn])
            group = numbers[fields[episode].group]
            rows.append(_row(sample, calls[episode][place], advantage, version, group, fields[episode]))
    return TurnSamples(rows, dict(earned.memory), dict(earned.diagnostics))


def _check(number: int, rollout: Rollout, own: Sequence[ModelCall]) -> None:
    if rollout.tokens is not None or rollout.mask is not None:
        raise ValueError(f"rollout {number} has tokens of its own: leave them out, calls have them")
    for turn, call in enumerate(own):
        if not call.prompt or not call.reply or len(call.reply) != len(call.logprobs):
            raise ValueError(
                f"turn {turn} of rollout {number} has {len(call.prompt)} tokens of a prompt, {len(call.reply)} of a "
                f"reply and {len(call.logprobs)} log-probabilities: give ids for both, and one number for each reply's"
            )


def _row(sample: type, call: ModelCall, advantage: float, version: int, group: int, rollout: Rollout) -> Any:
    mask = [0] * len(call.prompt) + [1] * len(call.reply)
    return sample(
        prompt=[],
        completion=[],
        input_ids=np.array([*call.prompt, *call.reply], np.int64),
        completion_mask=np.array(mask, np.int64),
        old_log_probs=np.array([0.0] * len(call.prompt) + list(call.logprobs), np.float32),
        advantage=advantage,
        model_version=version,
        group_id=group,
        metrics={"reward": rollout.episode_return()},
    )


def _sample_class() -> type:
    for place in _PLACES:
        try:
            return import_module(place).RolloutSample
        except (ImportError, AttributeError):
            continue
    raise ImportError("the installed trl has no RolloutSample, a row of its asynchronous trainer: install trl 1.16.0")
