"""The base of UserRL's gyms with a user."""

import abc
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from manyturn.envs.benchmarks.userrl.actions import FINISH, LONGEST, read
from manyturn.envs.benchmarks.userrl.files import Record, Source, tasks_of
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.llm_judge import Judge, JudgeOptions
from manyturn.envs.users.protocol import NOTHING, Heard, User
from manyturn.envs.users.user_env import Maker, UserEnv

MOST_TURNS = 16  # in which its authors train and evaluate


class GymUser(User):
    """The model that is the user of a gym, and the judge of what the agent says. Override ``hear``.

    Args:
        judge: the model.

    Attributes:
        task: what the dialogue is about.
        said: the exchanges so far: what the agent said, and what it was answered.
    """

    def __init__(self, judge: Judge):
        self.judge, self.name = judge, judge.name

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.task = task
        self.exchanges: list[list[str]] = []
        return ""

    @abc.abstractmethod
    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        """Answer and judge. ``cue["choice"]`` says what kind of action the text is; see ``Gym.cue``."""

    def recalled(self, text: str, most: int) -> str:
        """The agent's text below the last exchanges, as JSON, so that no speaker's words pass for another's."""
        exchanges = [{"assistant": other, "you": own} for other, own in self.exchanges[-most:]]
        return json.dumps({"so far": exchanges, "now": text}, ensure_ascii=False)

    def save(self) -> Any:
        return self.exchanges

    def load(self, state: Any) -> None:
        self.exchanges = state


class Gym(UserEnv):
    """Base of the gyms with a user, who is a language model and also the judge, as in the original.

    An action is ``[action] TEXT``, ``[answer] TEXT`` or ``[finish]``, which gives up; anything else is invalid. As in
    the original a turn pays at once, in most gyms what its score exceeds the best so far; here the part is called
    ``gain``, and the gain of the turn that reaches the goal is the outcome. Where the user cannot judge, the original
    pays nothing and goes on; here it is an error. What the user is told is not in the original's words, so that scores
    are not comparable with published ones.

    Args:
        split: test is the official one; validation is a tenth of the official train split.
        data: a checkout of SalesforceAIResearch/UserRL.
        user: ``{"kind": "model", "model": NAME, "base_url": URL}``, see ``JudgeOptions``; or a recording.
        max_turns: default 16, in which its authors train and evaluate.
    """

    max_turns = MOST_TURNS
    part_names = ("gain",)
    source: ClassVar[Source]
    choices: ClassVar[tuple[str, ...]]
    player: ClassVar[Callable[[Judge], GymUser]]

    # ---- for the classes below ------------------------------------------------------------------------------

    @staticmethod
    @abc.abstractmethod
    def problem(record: Record) -> Mapping[str, Any]:
        """The problem of a record; raises KeyError, TypeError or ValueError for a strange one."""

    @abc.abstractmethod
    def opening(self, task: Task) -> str:
        """The problem in the words that the agent reads."""

    @abc.abstractmethod
    def judged(self, heard: Heard) -> Turn:
        """The turn that an answer of the user makes; ``earn`` helps."""

    def cue(self) -> Mapping[str, Any]:
        """The cue of the user: what it has to know of the episode besides the exchanges."""
        return {}

    def earn(self, text: str, score: float, gain: float, won: bool) -> Turn:
        """A turn that pays ``gain``; ``score`` is what the goal is reached to, in [0, 1]."""
        self._best = max(self._best, score)
        if won:
            return self.succeed(text, outcome=gain)
        return self.go_on(text, gain=gain) if gain else self.go_on(text)

    # ---- the episode ----------------------------------------------------------------------------------------

    def __init__(
        self,
        split: str = "train",
        data: str | Path | None = None,
        user: str | Mapping[str, Any] | None = None,
        max_turns: int | None = None,
    ):
        self._tasks = tasks_of(data, self.source, type(self).problem)
        if user is None:
            raise NeedsSetup(
                'the user of this gym is a language model: give user={"kind": "model", "model": NAME, "base_url": URL}'
            )
        super().__init__(split, user, max_turns)

    def makers(self) -> Mapping[str, Maker]:
        return {"model": Maker(JudgeOptions, lambda options: type(self).player(Judge(options)))}

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._best = 0.0
        self.meet(task)
        return self.opening(task)

    def respond(self, action: str) -> Turn:
        choice, content = read(action)
        if choice == FINISH:
            return self.fail("You have given up.")
        if choice not in self.choices or not content:
            forms = " or ".join(f"[{name}] TEXT" for name in self.choices)
            return self.unreadable(f"That is no action here: write {forms}, at most {LONGEST:,} characters.")
        return self.judged(self.user.hear(content, {"choice": choice, **self.cue()}))

    # ---- what trainers see ----------------------------------------------------------------------------------

    def progress(self) -> float:
        return self._best

    def anchor(self) -> Hashable:
        return self.task.id, digest(self.state()), self.observation

    def measures(self) -> Mapping[str, float]:
        return {"score": self.progress()}

    def state(self) -> Any:
        return {"best": self._best}

    def set_state(self, state: Any) -> None:
        self._best = state["best"]


def texts(record: Record, *names: str) -> list[str]:
    """Fields of a record that must be texts. Raises ValueError."""
    texts = [record[name] for name in names]
    if not all(isinstance(one, str) and one.strip() for one in texts):
        raise ValueError(f"{', '.join(names)} must be texts")
    return texts
