"""A lesson with a simulated pupil."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, split_of
from manyturn.envs.talk.talk_env import TalkEnv
from manyturn.envs.talk.tutor import pupil as rules
from manyturn.envs.talk.tutor.pupil import Pupil, Tracer
from manyturn.envs.talk.tutor.pupil_user import PupilVoice
from manyturn.envs.users.phrases import UNSEEN_SPLIT
from manyturn.envs.users.user_env import Maker, NoOptions

SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "arithmetic": ("adding", "subtracting", "multiplying", "dividing", "fractions"),
    "algebra": ("terms", "brackets", "equations", "powers", "roots"),
    "geometry": ("angles", "triangles", "circles", "areas", "volumes"),
    "chemistry": ("atoms", "molecules", "formulas", "reactions", "acids"),
    "music": ("notes", "rests", "scales", "intervals", "chords"),
    "grammar": ("nouns", "verbs", "clauses", "commas", "tenses"),
    "cooking": ("washing", "chopping", "boiling", "frying", "baking"),
    "coding": ("variables", "conditions", "loops", "functions", "recursion"),
    "chess": ("pawns", "forks", "pins", "openings", "endgames"),
    "maps": ("scales", "contours", "grids", "bearings", "projections"),
}
_TASKS = {"train": 50_000, "validation": 5_000, "test": 5_000, UNSEEN_SPLIT: 5_000}
_COMMAND = re.compile(r"(?:^|[\n:.!?;,]\s*)(?:(explain|exercise) ([a-z]+)|(hint|test))[.!?\s]*$")
_LAST = 300  # characters in which the command is looked for


@dataclass(frozen=True)
class LessonLevel:
    """Level: the number of skills and of turns."""

    skills: int
    turns: int


LEVELS = {"easy": LessonLevel(3, 16), "medium": LessonLevel(4, 20), "hard": LessonLevel(5, 24)}


class Tutor(TalkEnv):
    """Find out what a pupil does not know, and teach it in the right order.

    Task:
        A pupil who knows some of several skills, at least two of them not. Each skill needs the one before it.
    Observation:
        What the pupil says, and whether an exercise was right. ``progress`` is the gain so far, and ``info["belief"]``
        what Bayesian knowledge tracing concludes from the answers.
    Actions:
        ``exercise SKILL``, ``explain SKILL``, ``hint`` or ``test``, at the end of what is said. Other words do not
        matter: this is about deciding what to teach, not about explaining well.
    Reward:
        The gain: the share of the unknown skills that the pupil knows at the test. ``turns`` adds the part ``gain``,
        its change.
    End:
        A test ends the lesson, at the latest when no turn is left. Success is that the pupil knows all.
    Splits:
        train, validation and test: combinations of subject and knowledge occur in no other split. In ``test_unseen``,
        which has those of test, the pupil uses sentences that occur nowhere else.
    Expert:
        Knows what the pupil knows: lets it fail in the first skill that it lacks, and explains.
    Floors:
        On 400 test tasks each the expert succeeds in 99.8 % at least, random admissible commands in 4 to 6 % with a
        gain of 0.14, silence in none.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: easy (3 skills, 16 turns), medium (4, 20) or hard (5, 24).
        user, rewards, max_turns: see ``TalkEnv``.
    """

    instructions = (
        "Teach a pupil. Each skill needs the one before it. An exercise shows whether the pupil knows a skill; "
        "an explanation helps most right after a failed exercise. End each message with a command: exercise SKILL, "
        "explain SKILL, hint (after a failed exercise), test (ends the lesson)."
    )
    splits = (*SPLITS, UNSEEN_SPLIT)
    turn_part = "gain"
    levels = LEVELS
    level: LessonLevel

    def tasks(self, split: str) -> Sequence[Task]:
        prefix, count = f"{split}/{self.difficulty}/", self.level.skills

        def make(number: int) -> Task:
            draws = Draws("tutor", prefix, number)
            while True:
                params = _draw(draws, count)
                if split_of(digest("lesson", params)) == split.removesuffix("_unseen"):
                    params["pace"] = draws.between(75, 100) / 100
                    params["words"] = "unseen" if split == UNSEEN_SPLIT else "seen"
                    return Task(f"{prefix}{number}", split, params, self.difficulty, (params["subject"],))

        return GeneratedTasks(make, _TASKS[split], prefix)

    def makers(self) -> Mapping[str, Maker]:
        return {"rule": Maker(NoOptions, lambda _: PupilVoice())}

    def brief(self, task: Task) -> str:
        return (
            f"You are a pupil learning {task.params['subject']}: {', '.join(task.params['skills'])}. After a "
            "message, brackets say what happened: comment on it in one sentence. Begin with a greeting."
        )

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._skills: list[str] = list(task.params["skills"])
        self._tracer = Tracer(len(self._skills))
        self._pupil = Pupil(task.params["known"], task.params["pace"], rng)
        self._unknown = self._pupil.mastery.count(False)
        greeting = self.meet(task)
        return f"{greeting}\nSkills, in order: {', '.join(self._skills)}."

    def reply(self, action: str) -> Turn:
        match = _COMMAND.search(action[-_LAST:].lower())
        verb, noun = (match[1] or match[3], match[2]) if match else ("", "")
        if match is None or (noun and noun not in self._skills) or (verb == "hint" and self._pupil.failed is None):
            mend = "End your message with: exercise SKILL, explain SKILL, hint (after a failed exercise) or test."
            is_last = self.turn + 1 >= self.max_turns
            return replace(self._test(mend), understood=False) if is_last else self.invalid(mend)
        if verb == "test":
            return self._test("The lesson is over.")
        shown, cue = self._teach(verb, noun)
        heard = self.user.hear(action, cue)
        text = f"{heard.utterance}\n{shown}".strip()
        last = heard.done or self.turn + 1 >= self.max_turns
        return self._test(text) if last else self.go_on(text)

    def _teach(self, verb: str, noun: str) -> tuple[str, Mapping[str, Any]]:
        """Visible part of the exercise, and what the pupil notices."""
        if verb == "explain":
            skill = self._skills.index(noun)
            chance = rules.EXPLAINED_AFTER_FAILURE if self._pupil.failed == skill else rules.EXPLAINED
            self._pupil.explain(skill)
            self._tracer.taught(skill, chance)
            return "", {"event": "explained", "skill": noun}
        if verb == "hint":
            assert self._pupil.failed is not None
            skill = self._pupil.failed
            right = self._pupil.hint()
            self._tracer.taught(skill, rules.HINTED)
        else:
            skill = self._skills.index(noun)
            right = self._pupil.exercise(skill)
        self._tracer.see(skill, right)
        if verb == "exercise":
            self._tracer.taught(skill, rules.EXERCISED)
        event = "right" if right else "wrong"
        return f"Exercise in {self._skills[skill]}: {event}.", {"event": event, "skill": self._skills[skill]}

    def _test(self, text: str) -> Turn:
        gain = self.progress()
        text = f"{text}\nTest: {sum(self._pupil.mastery)} of {len(self._skills)} skills."
        return (self.succeed if gain == 1 else self.fail)(text, outcome=gain)

    def admissible(self) -> list[str]:
        able = [f"{verb} {skill}" for verb in ("exercise", "explain") for skill in self._skills]
        return [*able, *(["hint"] if self._pupil.failed is not None else []), "test"]

    def anchor(self) -> Hashable:
        return (self.task.id, tuple(round(belief, 6) for belief in self._tracer.belief), self._pupil.failed)

    def progress(self) -> float:
        return (self._unknown - self._pupil.mastery.count(False)) / self._unknown

    def notes(self) -> Mapping[str, Any]:
        return {**super().notes(), "belief": list(self._tracer.belief)}

    def expert(self) -> str:
        """Knows what the pupil knows: lets it fail in the first skill that it lacks, and explains."""
        if all(self._pupil.mastery):
            return "test"
        skill = self._pupil.mastery.index(False)
        return f"{'explain' if self._pupil.failed == skill else 'exercise'} {self._skills[skill]}"

    def state(self) -> Any:
        return [self._pupil.save(), self._tracer.belief]

    def set_state(self, state: Any) -> None:
        pupil, self._tracer.belief = state
        self._pupil.load(pupil)


def _draw(draws: Draws, count: int) -> dict[str, Any]:
    """Some skills of a subject in order, two of them at least unknown."""
    subject = draws.pick(list(SUBJECTS))
    skills = list(SUBJECTS[subject])
    while len(skills) > count:
        skills.pop(draws.below(len(skills)))
    while True:
        mastered = [bool(draws.below(2)) for _ in range(count)]
        if mastered.count(False) >= 2:
            return {"subject": subject, "skills": skills, "known": mastered}
