"""Words of the pupil about what happens to it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.phrases import UNSEEN_SPLIT, Phrases
from manyturn.envs.users.protocol import NOTHING, Heard, User

_PHRASES = Phrases(
    {
        "hello": (
            "Hello, I want to learn {subject}.",
            "Hi, can you teach me {subject}?",
            "I need help with {subject}.",
        ),
        "explained": ("All right.", "I think I follow you.", "Let me think about {skill}.", "Thanks."),
        "right": ("There, done.", "That was {skill}, was it not?", "I have it.", "Look, finished."),
        "wrong": ("I am stuck.", "Is that {skill}?", "I was not sure.", "Hm, this is hard."),
    },
    {
        "hello": ("My test in {subject} is coming up.", "They say you know {subject}."),
        "explained": ("Mhm.", "So that is what {skill} means."),
        "right": ("Easy.", "Ready, here you are."),
        "wrong": ("My head is empty.", "I give up on this one."),
    },
)


class PupilVoice(User):
    """Speaks for the pupil; what has happened comes as the cue: ``event`` and ``skill``."""

    name = "rule"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._rng, self._unseen = rng, task.split == UNSEEN_SPLIT
        return _PHRASES.say("hello", rng, self._unseen, subject=task.params["subject"])

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        sentence = _PHRASES.say(cue["event"], self._rng, self._unseen, skill=cue["skill"])
        return Heard(sentence[0].upper() + sentence[1:])

    def save(self) -> Any:
        return None

    def load(self, state: Any) -> None:
        """Nothing is remembered."""
