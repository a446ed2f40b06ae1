"""The short way to write a text environment that is a true ``gymnasium.Env``."""

import abc
import base64
import json
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.contract.env.text_space import TextSpace
from manyturn.envs.contract.env.turn import OUTCOME, Turn, checked_actions, checked_measures, checked_turn, wrong_return
from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.contract.tasks.task import GROWN, SPLITS, Direction, Task, split_of

_TURNS = "self.go_on(text, ...), self.invalid(...), self.unreadable(...), self.succeed(...) or self.fail(...)"


class Unsupported(RuntimeError):
    """The environment does not offer this optional ability."""


class TextEnv(gymnasium.Env[str, str], abc.ABC):
    """An agent reads text and answers with text until the episode ends.

    Override ``tasks``, ``begin`` and ``respond``; everything else is optional or machinery. A task's content depends
    on the task alone; what is random inside an episode comes from ``self.rng``, which ``begin`` receives too.

    Args:
        split: the split that ``reset`` draws from when no task is named.
        max_turns: the turn at which an unfinished episode is truncated; default: the ``turns`` of the level, where it
            has such, or the class's ``max_turns``.
        difficulty: one of ``levels``; default: the first, if there is any.

    Attributes:
        instructions: given to the agent once.
        splits: the splits that there are.
        levels: difficulty -> its settings, an object of the environment's own.
        difficulty: the name of the level that this instance has; None without levels.
        level: the settings of that difficulty; None without levels.
        part_names: names of the reward parts besides ``outcome``; None if they are not listed. A list lets misspelt
            names in a recipe be found before the first episode.
        absent: splits that this machine cannot give -> what has to be done to have them.
        roles: names of those who act, where an episode has several; ``role()`` then says who acts next. A reward part
            named ``ROLE.PART`` is that role's, whoever's turn earned it; any other belongs to all.
        side_by_side: how many episodes of one process can be open together, where each holds something scarce such as
            a container; None without a limit. More wait for a seat.
        waits_outside: True if a turn mostly waits for a container or an endpoint, and episodes share nothing in the
            process that is not safe for threads. A worker then answers each episode in a thread of its own, so a slow
            turn holds up no other.
        harmless: arguments of the constructor that data may give, such as a panel's file or a driver elsewhere. They
            name no file, program, image, place or key of the machine, and their values are plain. ``"user:agenda"``
            allows only that word, or a table of this ``kind`` with numbers. All others come from whoever starts the
            process.
    """

    instructions: str = ""
    max_turns: int = 20
    splits: tuple[str, ...] = SPLITS
    levels: Mapping[str, Any] = MappingProxyType({})
    difficulty: str | None = None
    level: Any = None
    part_names: tuple[str, ...] | None = None
    absent: Mapping[str, str] = MappingProxyType({})
    roles: tuple[str, ...] = (ONE_ROLE,)
    side_by_side: int | None = None
    waits_outside: bool = False
    harmless: tuple[str, ...] = ("split", "difficulty", "max_turns")
    metadata: dict[str, Any] = {"render_modes": []}  # observations are what there is to see
    task: Task  # of the episode; there is none before the first reset
    rng: np.random.Generator  # likewise

    # ---- override these -------------------------------------------------------------------------------------

    @abc.abstractmethod
    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split, always the same ones in the same order; an instance asks once for each split."""

    @abc.abstractmethod
    def begin(self, task: Task, rng: np.random.Generator) -> str:
        """Set the state for ``task`` and return the first observation."""

    @abc.abstractmethod
    def respond(self, action: str) -> Turn:
        """Take one action; return ``go_on``, ``invalid``, ``unreadable``, ``succeed`` or ``fail``."""

    # ---- optional -------------------------------------------------------------------------------------------

    def admissible(self) -> list[str] | None:
        """Commands that would do something now, or None if they cannot be listed."""
        return None

    def anchor(self) -> Hashable:
        """The key by which turns of a group are recognised as the same situation."""
        return (self.task.id, self.observation)

    def anchor_text(self) -> str | None:
        """The situation as text, by which turns are recognised as similar; None where only equal anchors count.

        By default the observation, as in ``anchor``; a class that overrides ``anchor`` says here what text there is.
        """
        return self.observation if type(self).anchor is TextEnv.anchor else None

    def progress(self) -> float | None:
        """Share of the goal that is reached, in [0, 1], or None if unknown."""
        return None

    def expert(self) -> str:
        """The next action of an expert."""
        raise Unsupported(f"{type(self).__name__} has no expert: override expert()")

    def role(self) -> str:
        """Role that reads the observation and acts next, one of ``roles``; it is ``info["role"]``.

        It is asked after ``begin`` and after each turn, and only where there are several roles.
        """
        raise Unsupported(
            f"{type(self).__name__} has the roles {', '.join(self.roles)}: override role(), which says who acts next"
        )

    def notes(self) -> Mapping[str, Any]:
        """Extra entries of ``info`` besides the stable keys, as plain values; for people who look at episodes."""
        return {}

    def measures(self) -> Mapping[str, float]:
        """Further figures of an episode that has ended, such as ``{"submitted": 1.0}``; evaluations report means.

        One has a meaning to all: ``tampered`` above 0 says that the result was forged, and the episode ends as such.
        """
        return {}

    def answer(self) -> str | None:
        """The action that gives the true answer, if there is one such; known as soon as the episode has begun.

        It reaches the trainer alone, which may ask how likely the policy is to say it. No observation before the end
        may contain it.
        """
        return None

    def vary(self, task: Task, direction: Direction, rng: np.random.Generator) -> Task | None:
        """A harder or an easier task than this one, for training only; None where there is none.

        A curriculum that lets tasks grow asks for it. The task must belong to the split train by its content, as
        ``split_rule`` says; the id that it is given here does not count. Nothing of the episode may change.

        Args:
            direction: ``"harder"`` or ``"easier"``.
            rng: the only randomness.
        """
        raise Unsupported(f"{type(self).__name__} does not vary its tasks: override vary()")

    def split_rule(self, task: Task) -> str:
        """The split that a task belongs to by its content, whatever the task says; by default ``manyturn.split_of``.

        Override it next to ``vary`` where splits are made by another rule, such as a structure that only tests have.
        """
        return split_of(task.content)

    def save(self) -> bytes | None:
        """The state inside the episode; None means that ``restore`` replays the actions instead."""
        return None

    def load(self, data: bytes) -> None:
        """Inverse of ``save``. ``begin`` has been called with the same task before."""
        raise Unsupported(f"{type(self).__name__}.save() is overridden, so load() must be too")

    # ---- legal turns ----------------------------------------------------------------------------------------

    def go_on(self, text: str, **parts: float) -> Turn:
        """The episode continues.

        Args:
            text: the next observation.
            parts: rewards of this turn by name: ``self.go_on("The door opens.", door=0.1)``. Their sum is its reward.
        """
        return checked_turn(Turn(text, _not_outcome(parts)))

    def invalid(self, text: str, **parts: float) -> Turn:
        """The action was read and meant nothing here; the episode continues. Arguments as for ``go_on``."""
        return checked_turn(Turn(text, _not_outcome(parts), understood=False))

    def unreadable(self, text: str, **parts: float) -> Turn:
        """No action could be read, where actions have a syntax such as a call's; the episode continues.

        Unlike ``invalid`` it says that the format is broken. Arguments as for ``go_on``.
        """
        return checked_turn(Turn(text, _not_outcome(parts), understood=False, format_valid=False))

    def succeed(self, text: str, outcome: float = 1.0, **parts: float) -> Turn:
        """The goal is reached and the episode ends.

        Args:
            text: the last observation.
            outcome: the reward of the episode's end, a part by that name.
            parts: further rewards of this turn by name.
        """
        return checked_turn(Turn(text, {OUTCOME: outcome, **parts}, terminated=True, success=True))

    def fail(self, text: str, outcome: float = 0.0, **parts: float) -> Turn:
        """The goal can no longer be reached and the episode ends. Arguments as for ``succeed``."""
        return checked_turn(Turn(text, {OUTCOME: outcome, **parts}, terminated=True, success=False))

    # ---- machinery ------------------------------------------------------------------------------------------

    def __init__(self, split: str = "train", max_turns: int | None = None, difficulty: str | None = None):
        if split not in self.splits:
            raise ValueError(f"no split {split!r}: {type(self).__name__} has {', '.join(self.splits)}")
        difficulty = next(iter(self.levels), None) if difficulty is None else difficulty
        if difficulty is not None:
            self.difficulty, self.level = difficulty, self.level_of(difficulty)
            max_turns = getattr(self.level, "turns", None) if max_turns is None else max_turns
        if max_turns is not None:
            if max_turns < 1:
                raise ValueError(f"max_turns must be at least 1, not {max_turns}")
            self.max_turns = max_turns
        self.split = split
        self.observation_space = TextSpace()
        self.action_space = TextSpace()
        self.observation = ""
        self.turn = 0
        self._live = False
        self._actions: list[str] = []
        self._seed = 0
        self._rng_start: Any = None  # until the first reset
        self.__lists: dict[str, Sequence[Task]] = {}  # a name that no subclass can take

    def level_of(self, difficulty: str) -> Any:
        """The settings of a difficulty. Raises ValueError that names the choices."""
        if difficulty not in self.levels:
            names = ", ".join(self.levels) or "none"
            raise ValueError(f"no difficulty {difficulty!r}: {type(self).__name__} has {names}")
        return self.levels[difficulty]

    def find(self, task_id: str) -> Task:
        """The task with this id."""
        for split in self.splits:
            tasks = self._tasks_of(split)
            finder = getattr(tasks, "find", None)
            task = finder(task_id) if finder else next((t for t in tasks if t.id == task_id), None)
            if task is not None:
                return task
        raise KeyError(
            f"{type(self).__name__} has no task {task_id!r}; env.tasks(split)[0].id shows what an id looks like"
        )

    def _tasks_of(self, split: str) -> Sequence[Task]:
        """The tasks of a split, asked for once: a long list would take longer than an episode's first turn."""
        if split not in self.__lists:
            self.__lists[split] = self.tasks(split)
        return self.__lists[split]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode: of the task ``options["task"]``, or of one that the seed draws from the split."""
        unknown = set(options or ()) - {"task"}
        if unknown:
            raise ValueError(f"unknown reset options {sorted(unknown)}; the only one is 'task'")
        super().reset(seed=seed)
        seed = seed if seed is not None else int(self.np_random.integers(2**63))
        named = (options or {}).get("task")
        if named is None:
            tasks = self._tasks_of(self.split)
            named = tasks[int(generator("draw", seed).integers(len(tasks)))]
        self._start(named if isinstance(named, Task) else self.find(named), seed)
        info: dict[str, Any] = {
            "task": self.task.id,
            "split": self.task.split,
            "turn": 0,
            "format_valid": True,
            "understood": True,
            "reward_parts": {},
        }
        self._describe(info)
        return self.observation, info

    def _start(self, task: Task, seed: int) -> None:
        if self._rng_start is None or self._seed != seed:
            self.rng = generator("episode", seed)
            self._rng_start = self.rng.bit_generator.state
        else:  # the same numbers again, ten times faster than a new generator
            self.rng.bit_generator.state = self._rng_start
        self.task, self._seed = task, seed
        self.turn = 0
        self._live = True
        self._actions = []
        self.observation = self.begin(task, self.rng)
        if not isinstance(self.observation, str):
            raise wrong_return(self, "begin", self.observation, "the first observation alone, a str")

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One turn. Reaching ``max_turns`` truncates; ``terminated`` and ``truncated`` are never both true."""
        if not self._live:
            raise ResetNeeded("the episode has ended or not begun: call reset()")
        if not isinstance(action, str):
            raise TypeError(f"an action is text, not {type(action).__name__}")
        turn = self.respond(action)
        if not isinstance(turn, Turn):
            raise wrong_return(self, "respond", turn, _TURNS)
        text, parts = checked_turn(turn).text, turn.parts
        self.turn += 1
        self._actions.append(action)
        self.observation = text
        truncated = not turn.terminated and self.turn >= self.max_turns
        info = {
            "task": self.task.id,
            "split": self.task.split,
            "turn": self.turn,
            "format_valid": turn.format_valid,
            "understood": turn.understood,
            "reward_parts": parts,
        }
        if turn.terminated or truncated:
            self._live = False
            info["success"] = bool(turn.success)
            if (measures := self.measures()) != {}:
                info["measures"] = checked_measures(self, measures)
        self._describe(info)
        return text, float(sum(parts.values())), turn.terminated, truncated, info

    def _describe(self, info: dict[str, Any]) -> None:
        info["anchor"] = self.anchor()
        if (text := self.anchor_text()) is not None:
            info["anchor_text"] = text
        admissible = self.admissible()
        if admissible is not None:
            info["admissible"] = checked_actions(self, admissible)
        progress = self.progress()
        if progress is not None:
            if isinstance(progress, str) or not hasattr(progress, "__float__"):
                raise wrong_return(self, "progress", progress, "a share from 0 to 1, or None where it is not known")
            info["progress"] = progress
        if len(self.roles) > 1:
            info["role"] = self.role()
        if notes := self.notes():
            if not isinstance(notes, Mapping):
                raise wrong_return(self, "notes", notes, "a dict of further entries of info")
            info.update(notes)

    def render(self) -> str:
        return self.observation

    def snapshot(self) -> bytes:
        """Everything needed to continue from here, in another process too."""
        if self._rng_start is None:
            raise ResetNeeded("nothing to snapshot before reset()")
        state = self.save()
        head: dict[str, Any] = {"task": self.task.id, "seed": self._seed}
        if self.task.id.startswith(GROWN):  # which no list of tasks has
            head["params"] = self.task.params
        if state is None:
            head |= {"actions": self._actions, "check": digest(self.observation)}
        else:
            if not isinstance(state, bytes | bytearray):
                raise wrong_return(self, "save", state, "bytes, such as json.dumps(...).encode(), or None to replay")
            head |= {"turn": self.turn, "live": self._live, "text": self.observation}
            head |= {"state": base64.b64encode(state).decode()}
            rng = self.rng.bit_generator.state
            if rng != self._rng_start:
                head["rng"] = rng
        return json.dumps(head).encode()

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot of the same environment."""
        head = json.loads(data)
        same = self._rng_start is not None and self.task.id == head["task"]
        grown = Task(head["task"], "train", head["params"]) if "params" in head else None
        self._start(self.task if same else grown or self.find(head["task"]), head["seed"])
        if "actions" in head:
            for action in head["actions"]:
                self.step(action)
            if digest(self.observation) != head["check"]:
                name = type(self).__name__
                raise RuntimeError(
                    f"{name} replays to another text: its turns depend on more than task, seed and actions"
                )
            return
        self.load(base64.b64decode(head["state"]))
        self.turn, self._live, self.observation = head["turn"], head["live"], head["text"]
        self.rng.bit_generator.state = head.get("rng", self._rng_start)


def _not_outcome(parts: Mapping[str, float]) -> Mapping[str, float]:
    if OUTCOME in parts:
        raise ValueError("'outcome' is the reward of the episode's end: return succeed(...) or fail(...)")
    return parts
