"""Sotopia as an environment."""

import json
import os
import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.benchmarks.sotopia.files import tasks_of
from manyturn.envs.benchmarks.sotopia.judgement import JudgedPartner
from manyturn.envs.benchmarks.sotopia.scene import known_to, known_to_all, name
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.endpoint.llm_client import ModelOptions
from manyturn.envs.users.llm_judge import Judge, JudgeOptions
from manyturn.envs.users.llm_user import ModelUser
from manyturn.envs.users.protocol import User
from manyturn.envs.users.user_env import Maker, UserEnv

REACHED = 9  # goal score from which the authors' scale calls a goal finished
_STALE = 3  # acts of doing nothing, one after the other, that end an encounter

_PARTNER = (
    "You play a character in an encounter of two people. Stay in the role, pursue your goal, and be natural: do one "
    "thing at a time, and do not repeat yourself. Each turn, write one of these and nothing else: speak: WORDS to say "
    "something; non-verbal: GESTURE for a look or a gesture; action: DEED to do something; none to do nothing; or "
    "{stop} to leave.\n\n{brief}"
)

NONE, SPEAK, GESTURE, ACTION, LEAVE = "none", "speak", "non-verbal communication", "action", "leave"
LONGEST = 2000  # characters of an act that anybody notices

_ACT = re.compile(r"(speak|non-verbal(?: communication)?|action)\s*:\s*(.*)", re.DOTALL | re.IGNORECASE)
_BARE = re.compile(r"(none|leave)\b\W*", re.IGNORECASE)

ACT_RULES = (
    "speak: WORDS to say something; non-verbal: GESTURE for a look or a gesture; action: DEED to do something; none to "
    "do nothing; or leave to end the encounter"
)


class Act(NamedTuple):
    """One thing that a character does."""

    kind: str
    content: str = ""

    def as_heard(self, who: str) -> str:
        """The act as everybody sees it.

        >>> Act("speak", "Hello!").as_heard("Ada Stone")
        'Ada Stone said: "Hello!"'
        """
        match self.kind:
            case "none":
                return f"{who} did nothing"
            case "leave":
                return f"{who} left"
            case "speak":
                return f'{who} said: "{self.content}"'
        return f"{who} [{self.kind}] {self.content}"


class Sotopia(UserEnv):
    """Meet another character, and reach a goal of your own that it does not know.

    Task:
        A scenario for two characters, each with a private goal. The agent plays one, a language model the other.
    Observation:
        The scene, then what the other does. What a character knows of the other depends on their relationship, as in
        the paper: the name; what is public of an acquaintance; the personality too of a friend. It never knows goal or
        secret.
    Actions:
        ``speak: WORDS``, ``non-verbal: GESTURE``, ``action: DEED``, ``none`` or ``leave``.
    Reward:
        The goal score divided by 10, from a judge that is a language model too. It scores the agent's character on the
        seven dimensions of the paper; the original scores both together. All scores and their mean, ``overall``, are
        measures. Prompts are our own, so scores are not comparable with published ones, nor across partners or judges.
    End:
        After 20 turns of both, when a character leaves, or after three turns in which no one did anything. Success is a
        goal score of at least 9, which the authors' scale calls a finished goal. A partner or judge that does not
        answer as it should makes the episode an error, without a score.
    Splits:
        sotopia-pi's where its ``used_env.json`` is among the files, else by scenario.
    Expert:
        None.
    Floors:
        Not measured here: no language model has played partner or judge in this project. Run ``manyturn evaluate random
        --env manyturn/Sotopia-v0`` with your own models in ``--env.args``.

    The last turn asks both models: a worker's time for a turn must exceed the sum of their timeouts.

    Args:
        split: train, validation or test.
        data: folder of Sotopia's profiles; default: MANYTURN_SOTOPIA.
        user: the partner: ``{"kind": "model", "model": NAME, "base_url": URL}``; or a recording.
        judge: the judge: ``{"model": NAME, "base_url": URL}``, see ``JudgeOptions``; default: the partner's model.
        max_turns: turns of the agent; default 10, half of the 20.
    """

    instructions = (
        "You play a character who meets another person. Stay in the role and pursue your goal; do not give away what "
        f"you want to keep to yourself. Each turn, write one of these: {ACT_RULES}."
    )
    max_turns = 10
    part_names = ()

    def __init__(
        self,
        split: str = "train",
        data: str | Path | None = None,
        user: str | Mapping[str, Any] | None = None,
        judge: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
    ):
        self._tasks = tasks_of(data or os.environ.get("MANYTURN_SOTOPIA") or None)
        if user is None:
            raise NeedsSetup(
                'the other character is a language model: give user={"kind": "model", "model": NAME, "base_url": URL}'
            )
        if judge is not None and not (isinstance(user, Mapping) and user.get("kind") == "model"):
            raise ValueError("a recording holds the judge's scores: leave out judge")
        self._judge = None if judge is None else JudgeOptions(**judge)
        super().__init__(split, user, max_turns)

    def makers(self) -> Mapping[str, Maker]:
        return {"model": Maker(ModelOptions, self._cast)}

    def _cast(self, options: ModelOptions) -> User:
        given = options.model_dump(include={"model", "base_url", "temperature", "seed", "timeout", "attempts", "wait"})
        judge = Judge(self._judge or JudgeOptions(**given))
        return JudgedPartner(ModelUser(self.brief, options, _PARTNER, greeting=None), judge)

    def brief(self, task: Task) -> str:
        return known_to(task.params, 1 - task.params["role"])

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    # ---- the episode ----------------------------------------------------------------------------------------

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._role: int = task.params["role"]
        self._acts: list[tuple[int, Act]] = []
        self._scores: Mapping[str, int] = {}
        self.meet(task)
        opening = known_to(task.params, self._role)
        if self._role == 0:
            return f"{opening}\n\nThe encounter begins, with you."
        return f"{opening}\n\nThe encounter begins.\n{self._answered('The encounter begins, with you.')}"

    def respond(self, action: str) -> Turn:
        act = act_of(action)
        seen = self._take(self._role, act)
        last = self.turn + 1 >= self.max_turns
        if self._ends() or (last and self._role == 1):
            return self._judged("You leave." if act.kind == LEAVE else "The encounter is over.")
        answer = self._answered(seen)
        if last or self._ends():
            return self._judged(f"{answer}\nThe encounter is over.")
        return self.invalid(answer) if act.kind == NONE and action.strip().lower() != NONE else self.go_on(answer)

    def _take(self, role: int, act: Act) -> str:
        """Add an act; what the other sees of it."""
        self._acts.append((role, act))
        return act.as_heard(name(self.task.params, role))

    def _answered(self, seen: str) -> str:
        """The partner's answer to what it sees, as the agent sees it."""
        heard = self.user.hear(seen)
        done = [] if heard.done and not heard.utterance else [act_of(heard.utterance)]
        if heard.done and Act(LEAVE) not in done:
            done.append(Act(LEAVE))
        return "\n".join(self._take(1 - self._role, act) for act in done)

    def _ends(self) -> bool:
        """Somebody has left, or nobody has done anything for a while."""
        recent = [act.kind for _, act in self._acts[-_STALE:]]
        return LEAVE in recent[-1:] or recent == [NONE] * _STALE

    def _judged(self, text: str) -> Turn:
        params = self.task.params
        acts = [{"who": name(params, role), "kind": act.kind, "content": act.content} for role, act in self._acts]
        cue = {"record": json.dumps(acts, ensure_ascii=False), "about": name(params, self._role)}
        self._scores = dict(self.user.hear(known_to_all(params), cue).info)
        goal = self._scores["goal"]
        return (self.succeed if goal >= REACHED else self.fail)(text, outcome=goal / 10)

    # ---- what trainers see ----------------------------------------------------------------------------------

    def measures(self) -> Mapping[str, float]:
        scores = {dimension: float(score) for dimension, score in self._scores.items()}
        return {**scores, "overall": sum(scores.values()) / len(scores)} if scores else {}

    def anchor(self) -> Hashable:
        return self.task.id, digest(self._acts)

    def state(self) -> Any:
        return {"acts": [[role, *act] for role, act in self._acts], "scores": dict(self._scores)}

    def set_state(self, state: Any) -> None:
        self._acts = [(role, Act(kind, content)) for role, kind, content in state["acts"]]
        self._scores = state["scores"]


def act_of(text: str) -> Act:
    """The act that a text is. What names no kind is speech; an empty text does nothing.

    >>> act_of("Action: opens the door"), act_of("Hello!"), act_of("leave")
    (Act(kind='action', content='opens the door'), Act(kind='speak', content='Hello!'), Act(kind='leave', content=''))
    """
    text = " ".join(text[:LONGEST].split())
    if match := _BARE.fullmatch(text):
        return Act(match[1].lower())
    if match := _ACT.fullmatch(text):
        kind = {"s": SPEAK, "n": GESTURE, "a": ACTION}[match[1][0].lower()]
        return Act(kind, match[2]) if match[2] else Act(NONE)
    return Act(SPEAK, text) if text else Act(NONE)
