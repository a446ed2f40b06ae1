"""What a class of faults did: how many were injected, and what became of the episodes that they hit."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Tally:
    """Counts of one class of faults.

    Attributes:
        injected: faults that really happened, counted where they happen.
        survived: faults after which everything was as the class promises; equal to ``injected`` when all is well.
        lost: episodes (or turns, files) that should be there and are not.
        duplicated: those that are there twice.
        misattributed: answers, rewards or versions that went to another than their own.
        resumes, bit_exact: runs that were continued, and those whose weights and figures equal the undisturbed run's.
        orphans: processes, threads, sockets or files that were left behind.
        notes: what went wrong, one line each, and figures worth telling such as the slowest release of a hung worker.
    """

    injected: int = 0
    survived: int = 0
    lost: int = 0
    duplicated: int = 0
    misattributed: int = 0
    resumes: int = 0
    bit_exact: int = 0
    orphans: int = 0
    notes: list[str] = field(default_factory=list)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    @property
    def clean(self) -> bool:
        """Whether every fault was survived and nothing was lost, doubled, mixed up or left behind."""
        bad = self.lost + self.duplicated + self.misattributed + self.orphans
        return self.injected > 0 and self.survived == self.injected and self.bit_exact == self.resumes and not bad

    def plain(self) -> dict[str, Any]:
        return asdict(self)
