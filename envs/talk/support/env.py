"""A talk with somebody who seeks support."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, split_of
from manyturn.envs.talk.support.cue_lexicon import CUES, DISMISS, NEEDS, TOPICS, sentence
from manyturn.envs.talk.support.feelings import BEST, WORST, Feelings
from manyturn.envs.talk.support.help_seeker import PLIGHTS, Confidant
from manyturn.envs.talk.talk_env import TalkEnv
from manyturn.envs.users.phrases import UNSEEN_SPLIT
from manyturn.envs.users.user_env import Maker, NoOptions

_TASKS = {"train": 50_000, "validation": 5_000, "test": 5_000, UNSEEN_SPLIT: 5_000}
_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gil", "Hana", "Ida", "Jon", "Kim", "Leo", "Mia", "Noa", "Ole")


@dataclass(frozen=True)
class SupportLevel:
    """Level: whether the first words hint at need and taboo."""

    hints: bool


LEVELS = {"easy": SupportLevel(hints=True), "hard": SupportLevel(hints=False)}


class Support(TalkEnv):
    """Lift the mood of a user with a hidden need and a topic that must not be touched.

    Task:
        A user who feels bad, needs to be listened to, to get advice, or to hear that others feel the same, and does not
        want to talk about one topic.
    Observation:
        What the user says. ``progress`` is the mood divided by 100; ``info["mood"]`` and ``info["reaction"]`` say how
        the last words were taken.
    Actions:
        Any text. Rules decide what it does (``feelings.py``), whoever plays the user: they test the mechanics of such a
        talk, not empathy. An empty text is invalid.
    Reward:
        The last mood divided by 100, as in RLVER (arXiv 2507.03112). ``turns`` adds the part ``mood``, the change of
        the mood divided by 100.
    End:
        The mood starts at 40 and changes by at most 10 a turn. At 100 it is a success; below 10, or after ten turns,
        the talk ends without one.
    Splits:
        train, validation and test share no case. ``test_unseen`` has the cases of test, said in sentences that occur
        nowhere else.
    Expert:
        Knows the need: says each time the next unused sentence of that kind, about what troubles the user.
    Floors:
        On 400 test tasks of either level the expert's outcome is 1, that of random admissible sentences 0.22, that of
        silence 0.20. Neither of the two ever succeeds.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: easy (the first words hint at need and taboo) or hard (only reactions do).
        user, rewards, max_turns: see ``TalkEnv``.
    """

    instructions = (
        "The user needs your support. Find out what helps: listening, advice, or hearing that others feel the "
        "same. Say one thing at a time, about the problem. There may be a topic that the user does not want to "
        "talk about."
    )
    max_turns = 10
    splits = (*SPLITS, UNSEEN_SPLIT)
    turn_part = "mood"
    levels = LEVELS
    level: SupportLevel

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"

        def make(number: int) -> Task:
            draws = Draws("support", prefix, number)
            while True:
                params = _draw(draws, self.level, split)
                case = [params[name] for name in ("matter", "plight", "taboo", "need")]
                if split_of(digest("case", case)) == split.removesuffix("_unseen"):
                    return Task(f"{prefix}{number}", split, params, self.difficulty, (params["need"],))

        return GeneratedTasks(make, _TASKS[split], prefix)

    def makers(self) -> Mapping[str, Maker]:
        return {"rule": Maker(NoOptions, lambda _: Confidant())}

    def brief(self, task: Task) -> str:
        params = task.params
        return (
            f"You are {params['name']} and feel bad: {PLIGHTS[params['matter']][params['plight']]} It would help "
            f"if the assistant would {params['need']}, but you do not say so. You do not want to talk about "
            f"{params['taboo']}. After a message, brackets say how it made you feel: reply to match."
        )

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._feelings = Feelings(task.params["need"], task.params["matter"], task.params["taboo"])
        self._reaction = ""
        self._utterance = self.meet(task)
        return self._utterance

    def reply(self, action: str) -> Turn:
        feelings = self._feelings
        self._reaction, change = feelings.hear(action, self._utterance)
        ends = "best" if feelings.mood >= BEST else "worst" if feelings.mood < WORST else ""
        heard = self.user.hear(
            action, {"reaction": self._reaction, "change": change, "mood": feelings.mood, "ends": ends}
        )
        self._utterance = heard.utterance
        if ends == "best":
            return self.succeed(self._utterance)
        if ends or heard.done or self.turn + 1 >= self.max_turns:
            return self.fail(self._utterance, outcome=feelings.mood / BEST)
        return self.go_on(self._utterance) if action.strip() else self.invalid(self._utterance)

    def admissible(self) -> list[str]:
        """For each kind of support its next unused sentence, about each topic; and a dismissal."""
        fresh = {kind: [cue for cue in CUES[kind] if cue not in self._feelings.used] for kind in CUES}
        return [
            sentence(kind, (fresh[kind] or CUES[kind])[0], topic)
            for kind in (*NEEDS, DISMISS)
            for topic in (TOPICS if kind != DISMISS else (self._feelings.matter,))
        ]

    def anchor(self) -> Hashable:
        return (self.task.id, self._feelings.mood, tuple(sorted(self._feelings.used)), self._reaction)

    def progress(self) -> float:
        return self._feelings.mood / BEST

    def notes(self) -> Mapping[str, Any]:
        return {**super().notes(), "mood": self._feelings.mood, "reaction": self._reaction}

    def expert(self) -> str:
        need = self._feelings.need
        fresh = [cue for cue in CUES[need] if cue not in self._feelings.used]
        return sentence(need, (fresh or CUES[need])[0], self._feelings.matter)

    def state(self) -> Any:
        return [self._feelings.save(), self._reaction, self._utterance]

    def set_state(self, state: Any) -> None:
        feelings, self._reaction, self._utterance = state
        self._feelings.load(feelings)


def _draw(draws: Draws, level: SupportLevel, split: str) -> dict[str, Any]:
    matter, taboo = draws.pick(list(TOPICS)), draws.pick(list(TOPICS))
    while taboo == matter:
        taboo = draws.pick(list(TOPICS))
    return {
        "name": draws.pick(_NAMES),
        "matter": matter,
        "plight": draws.below(len(PLIGHTS[matter])),
        "taboo": taboo,
        "need": draws.pick(NEEDS),
        "hints": level.hints,
        "words": "unseen" if split == UNSEEN_SPLIT else "seen",
    }
