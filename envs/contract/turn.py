"""What an environment answers to one action."""

from collections.abc import Mapping
from typing import NamedTuple

OUTCOME = "outcome"


class Turn(NamedTuple):
    """One turn's answer. Made by ``TextEnv.go_on``, ``invalid``, ``succeed`` and ``fail``, which keep it legal.

    Attributes:
        text: the next observation.
        parts: named rewards; the turn's reward is their sum.
        valid: False if the action meant nothing to the environment.
        terminated: the episode ended by its own rules.
        success: whether the goal was reached; None while the episode goes on.
    """

    text: str
    parts: Mapping[str, float]
    valid: bool = True
    terminated: bool = False
    success: bool | None = None
