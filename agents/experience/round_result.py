"""The figures of one round of an improvement, as its file holds them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyturn.agents.tokens.usage import NOTHING, Spent
from manyturn.envs.contract.atomic_files import replace_text

FILE = "round.json"
PHASES = ("attempts", "writing", "retrieval", "validation")


@dataclass(frozen=True)
class RoundResult:
    """One round; round 0 measures the policy before any.

    Attributes:
        round: its number.
        experience: hash, version and counts of the experience that it ended with, see ``Experience.facts``.
        attempts: success with its interval and errors of its attempts, made with the experience of the round before;
            None where none was made. ``remarks`` has lines on replies that meant nothing, here and in validation.
        solved: ids of the tasks of the pool that an attempt has solved by now.
        validation: decoding -> success with its interval on the held-out panel, return and errors.
        unchanged_since: the round that measured the same experience; None if this one did.
        unwritten: texts that a limit of the writer left out.
        spent: phase, of ``PHASES`` -> prompt tokens, reply tokens and cost of the round.
    """

    round: int
    experience: Mapping[str, Any]
    attempts: Mapping[str, Any] | None
    solved: tuple[str, ...]
    validation: Mapping[str, Mapping[str, Any]]
    unchanged_since: int | None
    unwritten: int
    spent: Mapping[str, Spent]

    @property
    def total(self) -> Spent:
        """Spending of all phases."""
        return NOTHING.plus(*self.spent.values())

    def plain(self) -> dict[str, Any]:
        """The round as JSON values."""
        spent = {phase: usage._asdict() for phase, usage in self.spent.items()}
        return {**vars(self), "solved": list(self.solved), "spent": spent}

    def save(self, folder: Path) -> None:
        """Write it; its file is the last of a round, so that a round that has it is finished."""
        replace_text(folder / FILE, json.dumps(self.plain(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> "RoundResult | None":
        """The result of a finished round; None where the round is not finished."""
        try:
            plain = json.loads((folder / FILE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        spent = {phase: Spent(**usage) for phase, usage in plain["spent"].items()}
        return cls(**{**plain, "solved": tuple(plain["solved"]), "spent": spent})
