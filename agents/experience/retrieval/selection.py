"""Selection of entries: lessons always, and of entries about single tasks the ones that resemble the task at hand."""

from collections.abc import Sequence

from manyturn.agents.experience.retrieval.ranking import Ranking
from manyturn.agents.experience.store import Experience, ExperienceEntry, numbered

_LESSONS = "Lessons from earlier attempts:"
_CASES = "Earlier attempts at tasks like this one:"


class Selector:
    """Chooses what of an experience a policy is shown.

    Entries about a task are shown at the task itself, the newest first; what room is left goes to the entries whose
    first observation resembles that of the task most.

    Args:
        ranking: measures the resemblance.
    """

    def __init__(self, experience: Experience, ranking: Ranking):
        self._experience = experience
        self._lessons = [entry for entry in experience.entries if not entry.about]
        self._cases = {entry.id: entry for entry in experience.entries if entry.about}
        self._search = ranking.over({name: entry.about for name, entry in self._cases.items()})

    @property
    def reads_observation(self) -> bool:
        """True if the first observation has a say in what is chosen."""
        return bool(self._cases)

    @property
    def lessons(self) -> list[ExperienceEntry]:
        """The entries that are always shown."""
        return list(self._lessons)

    async def chosen(self, task: str, observation: str) -> list[ExperienceEntry]:
        """The entries for an episode.

        Args:
            task: id of the task.
            observation: the first one.

        Raises:
            EngineError: no embedding of the observation can be had.
        """
        most = self._experience.shown
        own = [entry for entry in self._cases.values() if entry.task and entry.task == task][::-1][:most]
        ids = {entry.id for entry in own}
        # More than are wanted, since the task's own entries are among the most similar ones.
        ranked = await self._search(observation, most + len(own)) if self._cases and len(own) < most else []
        similar = [self._cases[name] for name in ranked if name not in ids]
        return [*self._lessons, *own, *similar[: most - len(own)]]


def prompt_of(entries: Sequence[ExperienceEntry]) -> str:
    """The text that entries add to a policy's instructions; empty without entries."""
    lessons = [entry.text for entry in entries if not entry.about]
    cases = [entry.text for entry in entries if entry.about]
    parts = [f"{_LESSONS}\n{numbered(lessons)}"] if lessons else []
    parts += [f"{_CASES}\n\n" + "\n\n".join(cases)] if cases else []
    return "\n\n".join(parts)
