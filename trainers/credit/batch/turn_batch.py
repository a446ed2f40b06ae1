"""The batch that credit is computed on: K turns of E episodes, with T reply tokens, as a structure of arrays."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyturn.envs.contract.random_keys import digest

FloatK = NDArray[np.float64]
FloatT = NDArray[np.float64]
IntK = NDArray[np.int64]
BoolK = NDArray[np.bool_]
BoolE = NDArray[np.bool_]

_ZEROS: Any = None  # becomes an array of zeros


@dataclass(frozen=True, eq=False)
class TurnBatch:
    """K turns of E episodes. Turns may be in any order; every turn of an episode is there.

    A NaN reward says that the episode could not be scored. All its turns get the advantage 0 and none enters a
    group's statistics; it is never taken for a reward of 0.

    Attributes:
        group_K: id of the task group, one per episode.
        episode_K: number of the episode, 0 to E-1.
        turn_K: number of the turn inside its episode, from 0 and without gaps.
        parts: name -> rewards (K); a turn's reward is the sum of its named parts.
        format_valid_K: whether an action could be read from the reply.
        understood_K: whether the environment understood the action.
        tokens_K: number of tokens of the reply.
        truncated_E: whether the episode was cut off before its own end.
        inner_K: whether the turn is an inner one, which the environment did not see. Left out: none is. The stages of
            credit see a batch without any; see ``decisions``.
        anchor_K: equal ids say "the same situation"; they mean something inside one group only. None: not known.
        anchor_text: the situations as texts, one per turn, None where there is none; by these similar ones are grouped.
        penalty_K: at least 0, taken from a turn's score and from its return after discounting, so that it reaches
            no other turn. Left out: zeros.
        columns: name -> further numbers of each turn (K) that some methods need, such as "progress".
        token_columns: name -> numbers of each reply token (T), turn after turn in the order of the batch, such as
            "entropy" or "value".
        group_names: id of a group -> its name, which is the same in every batch: what methods that remember groups
            know them by.
    """

    group_K: IntK
    episode_K: IntK
    turn_K: IntK
    parts: Mapping[str, FloatK]
    format_valid_K: BoolK
    understood_K: BoolK
    tokens_K: IntK
    truncated_E: BoolK
    anchor_K: IntK | None = None
    anchor_text: tuple[Any, ...] | None = None
    penalty_K: FloatK = _ZEROS
    columns: Mapping[str, FloatK] = field(default_factory=dict)
    token_columns: Mapping[str, FloatT] = field(default_factory=dict)
    group_names: Mapping[int, str] = field(default_factory=dict)
    inner_K: BoolK = _ZEROS

    def __post_init__(self) -> None:
        K = len(self.turn_K)
        penalty_K = np.zeros(K) if self.penalty_K is None else self.penalty_K
        inner_K = np.zeros(K, bool) if self.inner_K is None else self.inner_K
        ready: dict[str, Any] = {
            "group_K": _column("group_K", self.group_K, K, np.int64),
            "episode_K": _column("episode_K", self.episode_K, K, np.int64),
            "turn_K": _column("turn_K", self.turn_K, K, np.int64),
            "parts": {n: _column(f"parts[{n!r}]", part_K, K, np.float64) for n, part_K in self.parts.items()},
            "format_valid_K": _column("format_valid_K", self.format_valid_K, K, np.bool_),
            "understood_K": _column("understood_K", self.understood_K, K, np.bool_),
            "tokens_K": _column("tokens_K", self.tokens_K, K, np.int64),
            "truncated_E": _column("truncated_E", self.truncated_E, len(self.truncated_E), np.bool_),
            "penalty_K": _column("penalty_K", penalty_K, K, np.float64),
            "inner_K": _column("inner_K", inner_K, K, np.bool_),
        }
        if self.anchor_K is not None:
            ready["anchor_K"] = _column("anchor_K", self.anchor_K, K, np.int64)
        if self.anchor_text is not None:
            ready["anchor_text"] = tuple(self.anchor_text)
        T = int(ready["tokens_K"].sum())
        ready["columns"] = {n: _column(f"columns[{n!r}]", values, K, np.float64) for n, values in self.columns.items()}
        ready["token_columns"] = {
            n: _column(f"token_columns[{n!r}]", values, T, np.float64, "reply token")
            for n, values in self.token_columns.items()
        }
        for name, value in ready.items():
            object.__setattr__(self, name, value)
        _check_values(self)
        _check_episodes(self)

    @classmethod
    def from_episodes(
        cls,
        rewards: Sequence[Sequence[float]] | Mapping[str, Sequence[Sequence[float]]],
        groups: Sequence[Hashable],
        *,
        anchors: Sequence[Sequence[Any]] | None = None,
        anchor_texts: Sequence[Sequence[str | None]] | None = None,
        format_valid: Sequence[Sequence[bool]] | None = None,
        understood: Sequence[Sequence[bool]] | None = None,
        tokens: Sequence[Sequence[int]] | None = None,
        truncated: Sequence[bool] | None = None,
        inner: Sequence[Sequence[bool]] | None = None,
        columns: Mapping[str, Sequence[Sequence[float]]] | None = None,
        token_columns: Mapping[str, Sequence[Sequence[Sequence[float]]]] | None = None,
    ) -> Self:
        """A batch from one list per episode. Left out: one token a turn, both flags true, no episode truncated.

        >>> batch = TurnBatch.from_episodes([[0, 0, 1], [0, 0]], groups=["task a", "task a"])
        >>> batch.episode_K.tolist(), batch.turn_K.tolist()
        ([0, 0, 0, 1, 1], [0, 1, 2, 0, 1])

        Args:
            rewards: E lists of a reward per turn, or such lists by the name of the part.
            groups: E names of groups.
            anchors: E lists of one entry per turn, compared for equality.
            anchor_texts: likewise; by these texts similar situations are recognised. Default: the anchors.
            format_valid: E lists of one flag per turn: could an action be read?
            understood: likewise: did the environment know what to do with it?
            tokens: E lists of one number per turn: tokens of the reply.
            truncated: E flags.
            inner: E lists of one flag per turn: is it an inner turn?
            columns: E lists of a number per turn, by name.
            token_columns: E lists of a list per turn of a number per reply token, by name.

        Raises:
            ValueError: a list has more or fewer entries than there are episodes or turns.
        """
        parts = rewards if isinstance(rewards, Mapping) else {"outcome": rewards}
        lengths_E = _lengths(next(iter(parts.values()), ()))
        _refuse_misfits(lengths_E, {"groups": groups, "truncated": truncated})
        turns = {"anchors": anchors, "anchor_texts": anchor_texts, "tokens": tokens, "format_valid": format_valid}
        turns |= {"understood": understood, "inner": inner} | {
            f"rewards {part!r}": values for part, values in parts.items()
        }
        _refuse_misfits(lengths_E, turns | dict(columns or {}) | dict(token_columns or {}), by_turn=True)
        K = sum(lengths_E)
        keys = None if anchors is None else tuple(chain.from_iterable(anchors))
        texts = keys if anchor_texts is None else tuple(chain.from_iterable(anchor_texts))
        group_E = ids_of(groups)
        return cls(
            group_K=np.repeat(group_E, lengths_E),
            episode_K=np.repeat(np.arange(len(lengths_E)), lengths_E),
            turn_K=np.concatenate([np.arange(n) for n in lengths_E]) if K else np.zeros(0, np.int64),
            parts={name: np.array([*chain.from_iterable(part)], np.float64) for name, part in parts.items()},
            format_valid_K=_flags(format_valid, K),
            understood_K=_flags(understood, K),
            tokens_K=np.ones(K, np.int64) if tokens is None else np.array([*chain.from_iterable(tokens)], np.int64),
            truncated_E=np.zeros(len(lengths_E), bool) if truncated is None else np.array(truncated, bool),
            anchor_K=None if keys is None else ids_of(keys),
            anchor_text=texts,
            columns={name: _flat(column) for name, column in (columns or {}).items()},
            token_columns={n: _flat(chain.from_iterable(column)) for n, column in (token_columns or {}).items()},
            group_names=dict(zip(group_E.tolist(), map(str, groups), strict=True)),
            inner_K=np.zeros(K, bool) if inner is None else np.array([*chain.from_iterable(inner)], bool),
        )

    def column(self, name: str) -> FloatK:
        """A column (K); raises ValueError if the batch lacks it."""
        if name not in self.columns:
            raise ValueError(f"the batch has no column {name!r}; it has {', '.join(sorted(self.columns)) or 'none'}")
        return self.columns[name]

    def token_column(self, name: str) -> FloatT:
        """A column over reply tokens (T); raises ValueError if the batch lacks it."""
        if name not in self.token_columns:
            names = ", ".join(sorted(self.token_columns)) or "none"
            raise ValueError(f"the batch has no column {name!r} over reply tokens; it has {names}")
        return self.token_columns[name]

    @cached_property
    def turn_of_T(self) -> IntK:
        """For each reply token (T) the row of its turn, 0 to K-1.

        >>> TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0], tokens=[[2, 0], [1]]).turn_of_T
        array([0, 0, 2])
        """
        return np.repeat(np.arange(len(self.tokens_K)), self.tokens_K)

    @cached_property
    def reward_K(self) -> FloatK:
        """Sum of the turn's named parts."""
        return sum(self.parts.values(), start=np.zeros(len(self.turn_K)))

    @cached_property
    def scorable_K(self) -> BoolK:
        """False at every turn of an episode with a NaN reward."""
        return ~np.isnan(self.episode_return_E())[self.episode_K]

    def episode_return_E(self) -> FloatK:
        """Undiscounted sum of the episode's rewards; NaN if it is unscorable.

        >>> TurnBatch.from_episodes([[0, 2, 1], [0, float("nan")]], groups=[0, 0]).episode_return_E()
        array([ 3., nan])
        """
        return np.bincount(self.episode_K, self.reward_K, len(self.truncated_E)).astype(np.float64, copy=False)

    def score_K(self) -> FloatK:
        """Return of the turn's episode minus the turn's own penalty; NaN if unscorable.

        >>> TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0]).score_K()
        array([1., 1., 0.])
        """
        return self.episode_return_E()[self.episode_K] - self.penalty_K

    def turn_return_K(self, gamma: float) -> FloatK:
        """Sum over later turns j of gamma^(j-k) r_j, minus the turn's own penalty; NaN if unscorable.

        >>> TurnBatch.from_episodes([[0, 0, 1]], groups=[0]).turn_return_K(gamma=0.5)
        array([0.25, 0.5 , 1.  ])
        """
        grid_EI = np.zeros((len(self.truncated_E), int(self.turn_K.max()) + 1))
        grid_EI[self.episode_K, self.turn_K] = self.reward_K
        for t in range(grid_EI.shape[1] - 2, -1, -1):
            grid_EI[:, t] += gamma * grid_EI[:, t + 1]
        # A NaN in an early turn does not reach the later ones by discounting, yet they are unscorable too.
        return np.where(self.scorable_K, grid_EI[self.episode_K, self.turn_K], np.nan) - self.penalty_K


def ids_of(things: Iterable[Any]) -> IntK:
    """Numbers by first appearance: equal things get equal numbers. Arrays, dicts and lists go by their content.

    >>> ids_of(["shut", "open", "shut", {"room": 1}, {"room": 1}])
    array([0, 1, 0, 2, 2])
    """
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(_hashable(thing), len(numbers)) for thing in things], np.int64)


def _hashable(thing: Any) -> Hashable:
    try:
        hash(thing)
    except TypeError:
        return ("content", digest(thing))
    return thing


def _flags(lists: Sequence[Sequence[bool]] | None, K: int) -> BoolK:
    """The entries of all lists, or K times True."""
    return np.ones(K, bool) if lists is None else np.array([*chain.from_iterable(lists)], bool)


def _flat(lists: Iterable[Iterable[float]]) -> NDArray[np.float64]:
    return np.array([*chain.from_iterable(lists)], np.float64)


def _column(
    name: str, values: ArrayLike, length: int, dtype: type[np.generic], entry: str = "entry of turn_K"
) -> NDArray[Any]:
    """A read-only copy as a vector of ``length`` values of ``dtype``."""
    array = np.asarray(values)
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, not ({length},): one value per {entry}")
    if np.issubdtype(dtype, np.integer) and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} holds {array.dtype}, not integers")
    column = array.astype(dtype)
    column.setflags(write=False)
    return column


def _check_values(batch: TurnBatch) -> None:
    if not len(batch.turn_K):
        raise ValueError("a batch needs at least one turn")
    if not batch.parts:
        raise ValueError("parts is empty: name at least one reward")
    for name, part_K in batch.parts.items():
        if np.isinf(part_K).any():
            raise ValueError(f"parts[{name!r}] is infinite at turn {int(np.isinf(part_K).argmax())}; unscorable is NaN")
    if not (np.isfinite(batch.penalty_K) & (batch.penalty_K >= 0)).all():
        raise ValueError("penalty_K must be finite and at least 0: it is subtracted")
    if (batch.tokens_K < 0).any():
        raise ValueError("tokens_K counts tokens: it cannot be negative")
    if batch.anchor_text is not None and len(batch.anchor_text) != len(batch.turn_K):
        raise ValueError(f"anchor_text has {len(batch.anchor_text)} entries for {len(batch.turn_K)} turns")


def _check_episodes(batch: TurnBatch) -> None:
    episode_K, E = batch.episode_K, len(batch.truncated_E)
    if episode_K.min() < 0 or episode_K.max() >= E:
        raise ValueError(
            f"episode_K holds {int(episode_K.min())} to {int(episode_K.max())}; truncated_E has {E} entries"
        )
    turns_E = np.bincount(episode_K, minlength=E)
    if not turns_E.all():
        raise ValueError(f"episode {int((turns_E == 0).argmax())} has no turn: leave it out of the batch")
    order_K = np.lexsort((batch.turn_K, episode_K))
    start_E = np.cumsum(turns_E) - turns_E
    wrong_K = batch.turn_K[order_K] != np.arange(len(order_K)) - start_E[episode_K[order_K]]
    if wrong_K.any():
        episode = int(episode_K[order_K][wrong_K.argmax()])
        raise ValueError(
            f"turn_K of episode {episode} is {sorted(batch.turn_K[episode_K == episode].tolist())}, "
            f"not 0 to {turns_E[episode] - 1}: number the turns in time order, each once"
        )
    group_E = batch.group_K[order_K[start_E]]
    split_K = group_E[episode_K] != batch.group_K
    if split_K.any():
        raise ValueError(f"episode {int(episode_K[split_K.argmax()])} is in more than one group")


def _lengths(rewards: Sequence[Sequence[float]]) -> list[int]:
    if not all(hasattr(episode, "__len__") for episode in rewards):
        raise ValueError("rewards holds numbers: give a list for each episode, with a reward for each turn")
    return [len(episode) for episode in rewards]


def _refuse_misfits(
    lengths_E: Sequence[int], columns: Mapping[str, Sequence[Any] | None], *, by_turn: bool = False
) -> None:
    """Raise ValueError where a list does not have an entry for each episode, or for each turn of each.

    Args:
        lengths_E: turns of each episode.
        columns: lists by name; None is left out.
    """
    for name, values in columns.items():
        if values is None:
            continue
        if len(values) != len(lengths_E):
            raise ValueError(f"{name} has {len(values)} entries for {len(lengths_E)} episodes: give one for each")
        for episode, turns in enumerate(lengths_E if by_turn else ()):
            if (count := len(values[episode])) != turns:
                raise ValueError(f"{name}: episode {episode} has {count} entries for {turns} turns: give one for each")
