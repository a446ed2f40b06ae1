"""From rollouts of another trainer to credit: one record for each episode, and the checks that they fit each other."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.registry import Memory
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_layout import runs_of
from manyturn.trainers.credit.pipeline import Credit, credit

PER_TURN = ("anchors", "anchor_texts", "format_valid", "understood")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rollout:
    """One episode, as another trainer has it. A turn is one reply of the model.

    Attributes:
        group: name of its task: rollouts of one group are compared with each other.
        rewards: a reward for each turn; or such lists by the name of a reward part; or one number, which the last turn
            earns. What is not known is None or NaN: the rollout then leaves its group and gets advantage 0.
        tokens: of each turn the ids of its reply's tokens, or their number.
        mask: instead of tokens, of each position of the response whether the model said it. A run of ones is a reply.
        anchors: of each turn what tells its situation from others, before the reply: an observation or a state.
        anchor_texts, format_valid, understood: of each turn, as in ``TurnBatch.from_episodes``.
        truncated: whether a limit cut the episode off.
        columns: name -> a number for each turn.
        token_columns: name -> for each turn the numbers of its reply's tokens; or, with a mask, for each position.
    """

    group: Hashable
    rewards: Sequence[float | None] | Mapping[str, Sequence[float | None]] | float | None
    tokens: Sequence[int | Sequence[int]] | None = None
    mask: ArrayLike | None = None
    anchors: Sequence[Any] | None = None
    anchor_texts: Sequence[str | None] | None = None
    format_valid: Sequence[bool] | None = None
    understood: Sequence[bool] | None = None
    truncated: bool = False
    columns: Mapping[str, Sequence[float]] = field(default_factory=dict)
    token_columns: Mapping[str, Any] = field(default_factory=dict)

    def reply_lengths(self) -> list[int] | None:
        """Number of tokens of each reply; None if neither tokens nor mask are given.

        >>> Rollout(group=0, rewards=1.0, mask=[1, 1, 0, 0, 1]).reply_lengths()
        [2, 1]
        """
        if self.tokens is not None and self.mask is not None:
            raise ValueError("it has both tokens and mask: give one of them")
        if self.mask is not None:
            return [stop - start for start, stop in runs_of(self.mask)]
        if self.tokens is None:
            return None
        return [_count(reply) for reply in self.tokens]

    def episode_return(self) -> float:
        """Sum of all rewards; NaN if one is not known.

        >>> Rollout(group=0, rewards={"outcome": [0, 1], "step": [0.25, 0]}).episode_return()
        1.25
        """
        parts = self.rewards.values() if isinstance(self.rewards, Mapping) else [self.rewards]
        return float(sum(np.sum(np.array(part, np.float64)) for part in parts))


def credit_rollouts(rollouts: Sequence[Rollout], config: CreditConfig, memory: Memory | None = None) -> Credit:
    """Credit for the turns of rollouts, which are the episodes of its batch in their order.

    >>> tries = [Rollout(group="task 7", rewards=1.0, tokens=[2, 1]), Rollout(group="task 7", rewards=0.0, tokens=[3])]
    >>> credit_rollouts(tries, CreditConfig(advantage={"name": "grpo", "std": False})).advantage_T
    array([ 0.5,  0.5,  0.5, -0.5, -0.5, -0.5])

    Args:
        memory: what the stages remembered last time; None at the beginning.

    Raises:
        ValueError: a list is longer or shorter than its rollout, some rollouts lack what others have, a method lacks
            what it needs, or no rollout has others to be compared with.
    """
    batch = batch_of(rollouts)
    there = batch.columns.keys() | batch.token_columns.keys()
    for column, stage in config.needs.items():
        if column not in there:
            raise ValueError(
                f"{stage} needs {column!r}, which the rollouts lack: give it in columns, a number for each turn, or in "
                "token_columns, a number for each reply token; or take another method"
            )
    if problem := singletons(batch, config):
        raise ValueError(problem)
    return credit(batch, config, memory)


def singletons(batch: TurnBatch, config: CreditConfig) -> str | None:
    """The reason why a method that compares within groups gives none of these credit; None: it does."""
    advantage = config.advantage
    compares = advantage.compares_groups and getattr(advantage, "singleton", "zero") == "zero"
    if not compares or len(np.unique(batch.group_K)) < len(np.unique(batch.episode_K)):
        return None
    return (
        f"each rollout has a group of its own, and {advantage.name} compares those of one group: give all attempts at "
        "a task the same group"
    )


def batch_of(rollouts: Sequence[Rollout]) -> TurnBatch:
    """The rollouts as a batch: rollout e is episode e, its turns in their order.

    >>> batch_of([Rollout(group="task 7", rewards=[0, 1], anchors=["hall", "cellar"], mask=[1, 0, 1, 1])]).tokens_K
    array([1, 2])

    Raises:
        TypeError: one is no ``Rollout``.
        ValueError: names the rollout by its place, and what does not fit in it.
    """
    if not rollouts:
        raise ValueError("there are no rollouts to give credit to")
    for place, rollout in enumerate(rollouts):
        if not isinstance(rollout, Rollout):
            how = "mc.Rollout(**...)" if isinstance(rollout, Mapping) else "mc.Rollout(group=..., rewards=...)"
            raise TypeError(f"rollout {place} is of type {type(rollout).__name__}: give {how}")
        if not isinstance(rollout.group, Hashable):
            kind = type(rollout.group).__name__
            raise TypeError(f"rollout {place}: its group is a {kind}: give a text, or the ids of its prompt as a tuple")
    lengths = [_checked(place, rollout) for place, rollout in enumerate(rollouts)]
    parts = [_parts(rollout, len(replies)) for rollout, replies in zip(rollouts, lengths, strict=True)]
    by_part = {name: [part[name] for part in parts] for name in _same_names("reward part", parts)}
    per_turn = {name: [getattr(rollout, name) for rollout in rollouts] for name in PER_TURN if _given(name, rollouts)}
    columns = _same_names("column", [rollout.columns for rollout in rollouts])
    token_columns = _same_names("token column", [rollout.token_columns for rollout in rollouts])
    return TurnBatch.from_episodes(
        by_part,
        groups=[rollout.group for rollout in rollouts],
        tokens=lengths,
        truncated=[rollout.truncated for rollout in rollouts],
        columns={name: [rollout.columns[name] for rollout in rollouts] for name in columns},
        token_columns={name: [_by_reply(rollout, name) for rollout in rollouts] for name in token_columns},
        **per_turn,
    )


def _checked(place: int, rollout: Rollout) -> list[int]:
    """Number of tokens of each turn of a rollout, one where it says nothing of them; ValueError if it does not fit."""
    try:
        return _reply_lengths(rollout)
    except ValueError as problem:
        raise ValueError(f"rollout {place}: {problem}") from None


def _reply_lengths(rollout: Rollout) -> list[int]:
    if rollout.group is None:
        raise ValueError("it has no group: name its task, so that attempts at one task are compared")
    replies, rewards = rollout.reply_lengths(), rollout.rewards
    turns = {name: len(values) for name in PER_TURN if (values := getattr(rollout, name)) is not None}
    turns |= {f"columns[{name!r}]": len(values) for name, values in rollout.columns.items()}
    if isinstance(rewards, Mapping):
        turns |= {f"rewards[{name!r}]": len(values) for name, values in rewards.items()}
    elif (listed := _of_turns(rewards)) is not None:
        turns["rewards"] = len(listed)
    if replies is not None:
        turns["tokens" if rollout.mask is None else "mask"] = len(replies)
    if not turns:
        raise ValueError("one reward does not say how many turns there were: give tokens, or a mask")
    *others, (name, count) = turns.items()
    for other, size in others:
        if size != count:
            raise ValueError(f"{other} is of {size} turns, and {name} of {count}: give one entry for each turn")
    if not count:
        raise ValueError("it has no turn: leave it out")
    replies = [1] * count if replies is None else replies
    for name in rollout.token_columns:
        if (size := [len(values) for values in _by_reply(rollout, name)]) != replies:
            raise ValueError(f"token_columns[{name!r}] is of replies of {size} tokens, not {replies}")
    return replies


def _parts(rollout: Rollout, turns: int) -> Mapping[str, Sequence[float]]:
    """Rewards of each turn by the name of the part; NaN where they are not known."""
    rewards = rollout.rewards
    if isinstance(rewards, Mapping):
        return {name: np.array(values, np.float64).tolist() for name, values in rewards.items()}
    listed = _of_turns(rewards)
    last: list[Any] = [0.0] * (turns - 1) + [rewards]
    return {OUTCOME: np.array(last if listed is None else listed, np.float64).tolist()}


def _of_turns(rewards: Any) -> Sequence[float | None] | None:
    """Rewards that are one for each turn, and not one for all."""
    return rewards if np.ndim(rewards) else None


def _count(reply: Any) -> int:
    """Tokens of a reply of which there are the ids, or their number."""
    return len(reply) if np.ndim(reply) else int(reply)


def _by_reply(rollout: Rollout, name: str) -> Sequence[Sequence[float]]:
    """A token column as a list for each reply."""
    values = rollout.token_columns[name]
    if rollout.mask is None:
        return values
    if len(values) != np.size(rollout.mask):
        raise ValueError(
            f"token_columns[{name!r}] has {len(values)} entries for a mask of {np.size(rollout.mask)}: give one for "
            "each position"
        )
    return [values[start:stop] for start, stop in runs_of(rollout.mask)]


def _given(name: str, rollouts: Sequence[Rollout]) -> bool:
    """True if all rollouts have the field, False if none has; ValueError if only some have it."""
    return _all_or_none(name, rollouts, lambda rollout: getattr(rollout, name) is not None)


def _same_names(kind: str, named: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """The names, which must be the same in all rollouts."""
    names = list(dict.fromkeys(name for by_name in named for name in by_name))
    for name in names:
        _all_or_none(f"the {kind} {name!r}", named, lambda by_name, name=name: name in by_name)
    return names


def _all_or_none(what: str, things: Sequence[Any], has: Callable[[Any], bool]) -> bool:
    present = [has(thing) for thing in things]
    if any(present) and not all(present):
        raise ValueError(
            f"rollout {present.index(False)} lacks {what}, which rollout {present.index(True)} has: "
            "give it for all or none"
        )
    return all(present)
