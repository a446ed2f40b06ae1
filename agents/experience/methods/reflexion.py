"""Reflexion: after a failed attempt the model writes down what to do otherwise, and tries the same task again.

Source: Shinn et al. 2023, "Reflexion: Language Agents with Verbal Reinforcement Learning", arXiv 2303.11366,
algorithm 1 and section 3. An attempt at a task that was solved before is not repeated, and the memory of a task holds
its newest ``memory`` reflections, as theirs.

Differences: their evaluator by a model is left out, since an environment says whether the goal was reached. Their
reflections stay with their task; here a task that has none is shown those of the tasks that resemble it most.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from pydantic import Field

from manyturn.agents.experience.attempts import Attempt, Attempts
from manyturn.agents.experience.method import METHODS, Method, Round, Write, WritingConfig
from manyturn.agents.experience.store import ExperienceEntry

_PROMPT = """An agent tried a task and failed. This is what it saw and did:

{transcript}
{earlier}
Write a short reflection to the agent, in the second person. Name the decision that made the attempt fail, and say \
what to do in its place next time. At most four sentences, no greeting."""
_EARLIER = """
Before this attempt the agent had read these reflections, which were not enough:

{texts}
"""


class ReflexionConfig(WritingConfig):
    name: Literal["reflexion"] = "reflexion"
    memory: int = Field(default=3, ge=1)
    """Newest reflections of a task that stay; the paper has 1 to 3."""
    shown: int = Field(default=3, ge=1)
    """Reflections that the policy is shown at most: the task's own, then those of similar tasks."""


@METHODS.register(ReflexionConfig)
class Reflexion(Method):
    """Reflect on each failed attempt, and try the task again until it is solved."""

    def __init__(self, config: ReflexionConfig):
        self.config, self.shown = config, config.shown

    def due(self, tasks: Sequence[str], solved: Collection[str]) -> Sequence[str]:
        return [task for task in tasks if task not in solved]

    async def learn(self, played: Round, write: Write) -> Sequence[ExperienceEntry]:
        failed = [(of, attempt) for of in played.tasks if not of.is_solved for attempt in of.attempts]
        texts = await write(
            [(f"{of.task}/{attempt.member}", self._prompt(played, of, attempt)) for of, attempt in failed]
        )
        written = [
            played.case(number, text, of, success=False)
            for number, ((of, _), text) in enumerate(zip(failed, texts, strict=True), 1)
            if text and of.about
        ]
        return self._newest([*played.experience.entries, *written])

    def _prompt(self, played: Round, of: Attempts, attempt: Attempt) -> str:
        texts = [entry.text for entry in played.experience.entries if entry.task == of.task]
        earlier = _EARLIER.format(texts="\n\n".join(texts)) if texts else ""
        return _PROMPT.format(transcript=attempt.transcript(self.config.transcript), earlier=earlier)

    def _newest(self, entries: Sequence[ExperienceEntry]) -> list[ExperienceEntry]:
        """Without the oldest reflections of tasks that have too many; lessons that came from elsewhere stay."""
        count: dict[str, int] = {}
        newest: list[ExperienceEntry] = []
        for entry in reversed(entries):
            count[entry.task] = count.get(entry.task, 0) + 1
            if not entry.task or count[entry.task] <= self.config.memory:
                newest.append(entry)
        return newest[::-1]
