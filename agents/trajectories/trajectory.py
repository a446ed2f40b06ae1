"""A trajectory: an episode with all that is known of it, as plain values, whoever played it.

Its plain form is JSON in the strict sense. A number that is not finite is ``{"not_finite": "nan"}`` there, which
nothing else can be, for where a row holds figures by name they are numbers.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manyturn.agents.records.tables import Row
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.trajectories.ledger_turns import ledger_from_plain, ledger_to_plain

VERSION = 1
_MARK = "not_finite"


class TrajectoryError(ValueError):
    """A file holds no trajectories that can be read, or a format cannot hold these; the text says what would do."""


@dataclass(frozen=True)
class Trajectory:
    """One episode.

    Attributes:
        episode: its row of ``records.EPISODES``.
        turns: its K rows of ``records.TURNS``, with further columns such as credit.
        ledger: its tokens, where they were kept.
        about: what it was played in and by: env, args, wrappers, env_identity, policy, agent, sampling, system (the
            text that the agent was given first) and others.
    """

    episode: Row
    turns: list[Row]
    ledger: Ledger | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


def to_plain(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory as JSON values, nothing lost."""
    return {
        "version": VERSION,
        "about": dict(trajectory.about),
        "episode": pack(trajectory.episode),
        "turns": [pack(row) for row in trajectory.turns],
        "ledger": None if trajectory.ledger is None else ledger_to_plain(trajectory.ledger),
    }


def from_plain(plain: Mapping[str, Any]) -> Trajectory:
    """Inverse of ``to_plain``. Raises TrajectoryError where it is not of this version."""
    if plain.get("version") != VERSION:
        raise TrajectoryError(
            f"a trajectory of version {plain.get('version')!r}, not {VERSION}: read it with the manyturn that wrote it"
        )
    ledger = plain["ledger"]
    return Trajectory(
        unpack(plain["episode"]),
        [unpack(row) for row in plain["turns"]],
        None if ledger is None else ledger_from_plain(ledger),
        plain["about"],
    )


def canonical(value: Any) -> str:
    """Plain values as the one text that they have, by which two of them are compared."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def pack(value: Any) -> Any:
    """Rows or figures with numbers that JSON can hold.

    >>> pack({"reward": float("nan"), "parts": {"step": 0.5}})
    {'reward': {'not_finite': 'nan'}, 'parts': {'step': 0.5}}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else {_MARK: repr(value)}
    if isinstance(value, Mapping):
        return {key: pack(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [pack(part) for part in value]
    return value


def unpack(value: Any) -> Any:
    """Inverse of ``pack``."""
    if isinstance(value, Mapping):
        if len(value) == 1 and isinstance(number := value.get(_MARK), str):
            return float(number)
        return {key: unpack(part) for key, part in value.items()}
    if isinstance(value, list):
        return [unpack(part) for part in value]
    return value
