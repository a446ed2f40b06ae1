"""Selection of entries: lessons always, and of entries about single tasks the ones that resemble the task at hand."""

from collections.abc import Sequence

from manyturn.agents.experience.store import Experience, ExperienceEntry, numbered
from manyturn.envs.shop.search.bm25_index import Index

K1, B = 1.5, 0.75
_LESSONS = "Lessons from earlier attempts:"
_CASES = "Earlier attempts at tasks like this one:"


class Selector:
    """Chooses what of an experience a policy is shown.

    Entries about a task are shown at the task itself, the newest first; what room is left goes to the entries whose
    task resembles it most, by BM25 over the words of first observations.
    """

    def __init__(self, experience: Experience):
        self._experience = experience
        self._lessons = [entry for entry in experience.entries if not entry.about]
        self._cases = {entry.id: entry for entry in experience.entries if entry.about}
        self._index = Index({name: entry.about for name, entry in self._cases.items()}, k1=K1, b=B)

    @property
    def reads_observation(self) -> bool:
        """True if the first observation has a say in what is chosen."""
        return bool(self._cases)

    def chosen(self, task: str, observation: str) -> list[ExperienceEntry]:
        """The entries for an episode.

        Args:
            task: id of the task.
            observation: the first one.
        """
        most = self._experience.shown
        own = [entry for entry in self._cases.values() if entry.task and entry.task == task][::-1][:most]
        ids = {entry.id for entry in own}
        # More than are wanted, since the task's own entries are among the most similar ones.
        ranked = [name for name, _ in self._index.search(observation, most + len(own))] if self._cases else []
        similar = [self._cases[name] for name in ranked if name not in ids]
        return [*self._lessons, *own, *similar[: most - len(own)]]


def prompt_of(entries: Sequence[ExperienceEntry]) -> str:
    """The text that entries add to a policy's instructions; empty without entries."""
    lessons = [entry.text for entry in entries if not entry.about]
    cases = [entry.text for entry in entries if entry.about]
    parts = [f"{_LESSONS}\n{numbered(lessons)}"] if lessons else []
    parts += [f"{_CASES}\n\n" + "\n\n".join(cases)] if cases else []
    return "\n\n".join(parts)
