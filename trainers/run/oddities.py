"""Figures of a run that contradict each other for whoever reads one of them alone."""

from collections.abc import Iterator, Mapping
from typing import Any

from manyturn.trainers.recipe.config import RunConfig

_ALL = 0.999
_MANY = 0.5  # share of cut replies from which they are worth a line


def oddities(line: Mapping[str, Any], config: RunConfig) -> Iterator[str]:
    """What to say of a line of metrics; the same texts each time.

    Args:
        line: with ``success``, ``invalid`` and ``cut``, as far as they are known.
    """
    success, invalid, cut = (line.get(name) or 0.0 for name in ("success", "invalid", "cut"))
    if success and invalid >= _ALL:
        yield (
            "episodes succeed although every reply counts as invalid: their success does not show that the policy "
            f"keeps to the format {config.agent.format.name}, or respond() returns invalid() for what it carries out"
        )
    if cut >= _MANY:
        yield (
            f"half of the replies or more are cut at sampling.max_tokens = {config.sampling.max_tokens}: what they "
            "would have ended with is lost; a higher one leaves room"
        )
