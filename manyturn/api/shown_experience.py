"""The experience that a policy is shown: its file, and how entries are found for a task."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, Ranking, retrieval_of
from manyturn.agents.experience.store import Experience, read_experience
from manyturn.api.named_policy import Candidate, option_in
from manyturn.terminal.overrides import OverrideError

_SECTION = "retrieval"


class ShownExperience(NamedTuple):
    """An experience with the ranking that finds its entries.

    Attributes:
        source: its file or folder.
    """

    source: Path
    experience: Experience
    ranking: Ranking

    @classmethod
    def read(cls, source: Path | None, options: Mapping[str, Any]) -> tuple[Self | None, dict[str, Any]]:
        """The experience of a place, None without one; and the options that are not its own.

        Raises:
            ValueError: there is no experience there, an option does not exist, or would have no effect.
        """
        experience = None if source is None else read_experience(source)
        if _SECTION in options and not (experience and any(entry.about for entry in experience.entries)):
            why = "the experience has no entries about single tasks" if experience else "there is no experience"
            raise OverrideError(f"--{option_in(options, _SECTION)} has no effect: {why}; leave it out")
        rest = {name: given for name, given in options.items() if name != _SECTION}
        if source is None or experience is None:
            return None, rest
        ranking = RETRIEVALS.apply(retrieval_of(experience.retrieval, options.get(_SECTION)))
        return cls(source, experience, ranking), rest

    def given_to(self, candidate: Candidate, out: Path | None) -> Candidate:
        """A policy that is shown it, and stores in a folder what it asks for."""
        self.ranking.begin(out, self.source)
        return candidate.shown(self.experience, self.ranking)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Close its files in the end, and print what was spent."""
        with closing(self.ranking):
            yield
        if remark := self.ranking.remark:
            print(f"note: {remark}", file=sys.stderr)
