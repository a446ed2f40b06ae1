"""Training-free GRPO: attempts at one task are contrasted in words, and a list of lessons is edited by what they show.

Source: Cai et al. 2025, "Training-Free Group Relative Policy Optimization", arXiv 2510.08191, section 3: a group of
attempts, a summary of each, the semantic advantage of the group (a lesson in words) where rewards differ, and one
edit of the list for all groups of the round by the operations add, modify and delete (keep is the absence of one).

Differences: the prompt has no ground truth, since tasks of many turns have none that could be shown; one edit for all
groups stands in place of an edit for each group before a joint one.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from manyturn.agents.experience.attempts import Attempts
from manyturn.agents.experience.method import METHODS, Method, Round, Write, WritingConfig
from manyturn.agents.experience.store import ExperienceEntry

_SUMMARY = """An agent attempted a task. This is what it saw and did:

{transcript}

Summarise the attempt step by step: what the agent did, why, and which step decided its end. At most ten lines."""
_CONTRAST = """An agent attempted one task several times. These are the attempts, and how each ended:

{attempts}

Lessons that the agent has read already:
{lessons}

Compare the attempts that succeeded with those that failed. Write at most {most} general lessons that would have made \
the failed ones succeed, and that hold for other tasks of this kind too. Begin each with "LESSON: " on a line of its \
own, and write nothing else."""
_EDIT = """This is the list of lessons of an agent:

{lessons}

These are new lessons, each from a comparison of its attempts at one task:

{new}

Say how the list is to be changed, so that it stays short, general and free of repetition. Write one change a line, \
and nothing else:
ADD: a lesson that is new
MODIFY NUMBER: better words for the lesson with this number
DELETE NUMBER
The list may have at most {most} lessons. Write NONE if nothing is to be changed."""
_LESSON = re.compile(r"^\W*LESSON\W*[:.]\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_CHANGE = re.compile(r"^\W*(ADD|MODIFY|DELETE)\s*\[?(\d*)\]?\W*?(?:[:.]\s*(.*))?$", re.IGNORECASE | re.MULTILINE)


class TrainingFreeGrpoConfig(WritingConfig):
    name: Literal["training_free_grpo"] = "training_free_grpo"
    attempts: int = Field(default=5, ge=2)
    """Attempts at each task in a round, the group; the paper has 5."""
    summarise: bool = True
    """Let the writer summarise each attempt before attempts are contrasted; else it reads transcripts."""
    lessons: int = Field(default=2, ge=1)
    """Most new lessons of a group."""
    most: int = Field(default=20, ge=1)
    """Most lessons of the list; what is added beyond is left out."""


@METHODS.register(TrainingFreeGrpoConfig)
class TrainingFreeGrpo(Method):
    """Distil lessons from groups with winners and losers, and edit the list of lessons."""

    by_task = False

    def __init__(self, config: TrainingFreeGrpoConfig):
        self.config = config

    async def learn(self, played: Round, write: Write) -> Sequence[ExperienceEntry]:
        mixed = [of for of in played.tasks if of.is_mixed]
        lessons = _listed(played.experience.entries)
        texts = await self._texts(mixed, write)
        answers = await write([(of.task, self._contrast(of, texts, lessons)) for of in mixed])
        new = [(text.strip(), of) for of, answer in zip(mixed, answers, strict=True) for text in self._lessons(answer)]
        if not new:
            return played.experience.entries
        listed = "\n".join(f"- {text}" for text, _ in new)
        [changes] = await write([("edit", _EDIT.format(lessons=lessons, new=listed, most=self.config.most))])
        return self._edited(played, changes, [of for _, of in new])

    async def _texts(self, mixed: Sequence[Attempts], write: Write) -> dict[tuple[str, int], str]:
        """Task and member of each attempt -> its summary, or its transcript."""
        longest = self.config.transcript
        texts = {(of.task, one.member): one.transcript(longest) for of in mixed for one in of.attempts}
        if not self.config.summarise:
            return texts
        prompts = [(f"{task}/{n}/summary", _SUMMARY.format(transcript=text)) for (task, n), text in texts.items()]
        summaries = await write(prompts)
        return {place: summary or texts[place] for place, summary in zip(texts, summaries, strict=True)}

    def _contrast(self, of: Attempts, texts: Mapping[tuple[str, int], str], lessons: str) -> str:
        """The prompt for a comparison of attempts at one task."""
        attempts = "\n\n".join(
            f"Attempt {number} ({attempt.outcome}):\n{texts[of.task, attempt.member]}"
            for number, attempt in enumerate(of.attempts, 1)
        )
        return _CONTRAST.format(attempts=attempts, lessons=lessons, most=self.config.lessons)

    def _lessons(self, answer: str) -> list[str]:
        return _LESSON.findall(answer)[: self.config.lessons]

    def _edited(self, played: Round, answer: str, of: Sequence[Attempts]) -> list[ExperienceEntry]:
        """The list after the writer's changes; those that name no lesson, or add beyond the limit, do nothing."""
        entries: list[ExperienceEntry | None] = list(played.experience.entries)
        count = len(entries)
        for serial, (kind, number, text) in enumerate(_CHANGE.findall(answer), 1):
            place = int(number) - 1 if number else -1
            old = entries[place] if 0 <= place < count else None
            if kind.upper() == "DELETE" and old is not None:
                entries[place] = None
            elif kind.upper() == "MODIFY" and old is not None and text.strip():
                changed = played.entry(serial, text.strip(), *of)
                origin = tuple(sorted({*changed.contents, *old.contents}))
                entries[place] = ExperienceEntry(changed.id, changed.text, contents=origin, round=changed.round)
            elif kind.upper() == "ADD" and text.strip() and sum(one is not None for one in entries) < self.config.most:
                entries.append(played.entry(serial, text.strip(), *of))
        return [entry for entry in entries if entry is not None]


def _listed(entries: Sequence[ExperienceEntry]) -> str:
    """Lessons with the numbers by which changes name them."""
    return "\n".join(f"{number}. {entry.text}" for number, entry in enumerate(entries, 1)) or "(none yet)"
