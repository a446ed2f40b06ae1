"""A line of ``manyturn doctor``."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Diagnosis:
    """One line.

    Attributes:
        status: ok; note for what limits but does not prevent; problem for what is needed and missing.
        subject: what was looked at.
        text: what was found, and the fix if there is something to fix.
    """

    status: Literal["ok", "note", "problem"]
    subject: str
    text: str
