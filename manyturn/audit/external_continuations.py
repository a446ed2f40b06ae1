"""Continuations of another trainer's rollouts: which ones an audit needs, and checks of what its function returned.

V(s) before a turn needs continuations in which the policy draws the turn's reply. Where chance has a part in the turn,
Q(s, a) needs others, which begin in the same state with the recorded reply: their mean is over the luck of the turn.
Continuations of one number share their randomness, so that the errors of Q and V are alike and cancel in Q - V.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from manyturn.trainers.credit.audit.effects import END, Effects, effects_of_task
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK


class Continuation(NamedTuple):
    """A continuation to be played.

    Attributes:
        rollout: place of the rollout in the list.
        turns: how many of its turns are repeated first.
        number: of the continuation: its randomness comes from it.
    """

    rollout: int
    turns: int
    number: int


Returned = float | tuple[float, Any]
"""The sum of rewards from there on, which those of repeated turns are no part of. After a given first reply, that sum
with the reply that was played first, as it was given; its reward is in the sum."""
Replay = Callable[..., Returned]
"""Takes the values of a ``Continuation`` and plays on with the policy. With recorded replies it takes a fourth value:
the first reply of the continuation, or None, where the policy draws it."""
ReplayMany = Callable[..., Sequence[Returned]]
"""Takes all continuations of a group, so that an engine can draw them together, and with recorded replies a list of as
many first replies; returns a ``Returned`` for each."""
Play = Callable[[Sequence[Continuation], Sequence[Any]], Sequence[Returned]]
Replies = Sequence[Sequence[Any]]
"""The recorded reply of each turn of each rollout, as text or ids; None for a turn in which chance has no part."""


class GroupReturns(NamedTuple):
    """Returns of the continuations of a group's rollouts, by the K turns of these, rollout after rollout.

    Attributes:
        returns_CM: of each of C starts the returns of M continuations from there on.
        rollout_K: place of the rollout in the list.
        before_K: number of the start before the turn; first turns share theirs.
        next_K: number of the start after it; ``END`` where the rollout is over.
        repeated_K: number of the start from which the turn's reply is repeated; ``END`` where it is not.
    """

    returns_CM: np.ndarray
    rollout_K: IntK
    before_K: IntK
    next_K: IntK
    repeated_K: IntK

    @property
    def is_repeated_K(self) -> BoolK:
        return self.repeated_K != END

    def effects(self, reward_K: FloatK, reach: float) -> Effects:
        """True effects of the turns, without their luck where replies are repeated."""
        after_K = np.where(self.is_repeated_K, self.repeated_K, self.next_K)
        reward_K = np.where(self.is_repeated_K, 0.0, reward_K)
        return effects_of_task(list(self.returns_CM), self.before_K, after_K, reward_K, reach)

    def luck(self, reward_K: FloatK, reach: float) -> tuple[np.ndarray, FloatK]:
        """Luck of the K turns that are repeated, r_k + V(s_(k+1)) - Q(s_k, a_k), by M continuations (K, M), and the
        standard error of the mean of each (K)."""
        is_repeated_K = self.is_repeated_K
        repeated_K, next_K, reward_K = (
            self.repeated_K[is_repeated_K],
            self.next_K[is_repeated_K],
            reward_K[is_repeated_K],
        )
        error_K = effects_of_task(list(self.returns_CM), repeated_K, next_K, reward_K, reach).error_K
        next_KM = np.where(next_K[:, None] == END, 0.0, self.returns_CM[next_K])
        return reward_K[:, None] + next_KM - self.returns_CM[repeated_K], error_K


class _Start(NamedTuple):
    """A state that continuations begin in, and the reply that they begin with; None: the policy draws it."""

    rollout: int
    turns: int
    reply: Any = None


def continued(members: Sequence[int], play: Play, continuations: int, replies: Replies) -> GroupReturns:
    """Play all continuations of a group.

    Args:
        members: places of the group's rollouts.
        continuations: from each start.

    Raises:
        ValueError: the function returned no sum for a continuation, or did not repeat a reply.
    """
    starts, turns = list[_Start](), list[tuple[int, int, int]]()
    for place in members:
        for turn, reply in enumerate(replies[place]):
            before, repeated = 0, END
            if turn > 0 or not starts:
                before = len(starts)
                starts.append(_Start(place, turn))
            if reply is not None:
                repeated = len(starts)
                starts.append(_Start(place, turn, reply))
            turns.append((place, before, repeated))
    requests = [Continuation(start.rollout, start.turns, number) for start in starts for number in range(continuations)]
    firsts = [start.reply for start in starts for _ in range(continuations)]
    returned = list(play(requests, firsts))
    if len(returned) != len(requests):
        raise ValueError(
            f"replay_many returned {len(returned)} sums for {len(requests)} continuations: return one for each"
        )
    sums = [_sum(*one) for one in zip(returned, requests, firsts, strict=True)]
    rollout_K, before_K, repeated_K = np.array(turns).T
    is_last_K = np.append(np.diff(rollout_K) != 0, True)
    next_K = np.where(is_last_K, END, np.roll(before_K, -1))
    return GroupReturns(np.array(sums).reshape(-1, continuations), rollout_K, before_K, next_K, repeated_K)


def player_of(replay: Replay | None, replay_many: ReplayMany | None, *, repeats: bool) -> Play:
    """The function that plays continuations with their first replies. Raises ValueError where it cannot take these.

    Args:
        repeats: whether recorded replies are given.
    """
    if (replay is None) == (replay_many is None):
        raise ValueError("give one of replay, for a continuation at a time, and replay_many, for those of a group")
    if repeats and not _takes(replay or replay_many, *((0, 0, 0, None) if replay else ([], []))):
        fix = "replay(rollout, turns, number, first_reply)" if replay else "replay_many(continuations, first_replies)"
        raise ValueError(f"replies are given, and the function takes no first reply: define {fix}")
    if replay_many is not None:
        return replay_many if repeats else lambda requests, firsts: replay_many(requests)
    assert replay is not None
    return lambda requests, firsts: [
        replay(*one, *([first] if repeats else [])) for one, first in zip(requests, firsts, strict=True)
    ]


def refuse_other_replies(replies: Replies, turns: Sequence[int]) -> None:
    """Raise ValueError where recorded replies are not one for each turn of each rollout, or are none at all."""
    if len(replies) != len(turns):
        raise ValueError(f"replies are of {len(replies)} rollouts, and {len(turns)} are given: give a list for each")
    for place, (line, count) in enumerate(zip(replies, turns, strict=True)):
        if len(line) != count:
            raise ValueError(
                f"rollout {place} has {count} turns, and replies of {len(line)}: give one for each turn, None where "
                "chance has no part in it"
            )
    if all(reply is None for line in replies for reply in line):
        raise ValueError("all replies are None, which has no effect: give the recorded ones, or leave replies out")


def _takes(function: Any, *values: Any) -> bool:
    try:
        inspect.signature(function).bind(*values)
    except TypeError:
        return False
    except ValueError:  # a built-in function without a signature
        return True
    return True


def _sum(returned: Any, request: Continuation, first: Any) -> float:
    """The sum of a continuation's rewards. Raises ValueError where it is none, or the first reply is another one."""
    is_pair = isinstance(returned, tuple | list) and len(returned) == 2
    total: Any = returned[0] if is_pair else returned
    reply: Any = returned[1] if is_pair else None
    at = f"the replay of rollout {request.rollout} from turn {request.turns}"
    try:
        value = float(total)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{at} returned {total!r:.60}: return the sum of the rewards from there on, as a number")
    if first is not None and not is_pair:
        raise ValueError(f"{at} did not return its first reply: return (sum, first reply) where a first reply is given")
    if first is not None and not np.array_equal(reply, first):
        raise ValueError(
            f"{at} began with the reply {reply!r:.60} where {first!r:.60} was given: begin with the given reply, draw "
            "chance again, and let the policy go on; or leave replies out"
        )
    return value
