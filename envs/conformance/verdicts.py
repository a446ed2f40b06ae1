"""Verdicts of a check other than passing: it returns its observation, or raises one of these."""

from collections.abc import Mapping

Result = tuple[str, Mapping[str, float]]
"""One line of what was seen, and figures by name."""


class Fault(AssertionError):
    """The environment breaks the contract; the text says how to fix it."""

    def __init__(self, text: str, figures: Mapping[str, float] | None = None):
        super().__init__(text)
        self.figures = figures or {}


class Doubt(Exception):
    """The environment keeps the contract, but may not be what was meant; the text says why."""

    def __init__(self, text: str, figures: Mapping[str, float] | None = None):
        super().__init__(text)
        self.figures = figures or {}


class Skip(Exception):
    """The check does not apply; the text says why."""


class Implied(Exception):
    """The check cannot be judged, since another one has failed.

    Attributes:
        check: name of the other one.
    """

    def __init__(self, check: str):
        super().__init__(check)
        self.check = check
