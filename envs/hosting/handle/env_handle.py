"""One interface to any environment of strings: ours, or a ``gymnasium.Env`` that knows nothing of this project."""

import asyncio
import json
import math
import traceback
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from manyturn.envs.contract.env.error_location import place_of, place_of_method
from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.contract.env.space_containment import refuse_excluded
from manyturn.envs.contract.env.text_env import TextEnv, Unsupported
from manyturn.envs.contract.env.text_space import TextSpace
from manyturn.envs.contract.env.turn import MOST_REWARD, ContractError, shown, too_large, wrong_return
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup, OutsideLost, make
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.tasks.task import GROWN, SPLITS, Direction, GeneratedTasks, ListsTasks, Task
from manyturn.envs.contract.wrappers.reward_wrapper import WrapperMismatch, plain_wrappers, wrap
from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.gymnasium_adapter import GymnasiumAdapter, offered
from manyturn.envs.hosting.handle.info_key_check import step_refusal

_SEEDS_PER_SPLIT = 2**20
T = TypeVar("T")


class EnvError(RuntimeError):
    """The environment raised. It is never a reward.

    Attributes:
        cause: the error and its place in the environment's code, without the task; empty where that is not known.
        method: ``"reset"``, ``"step"``, ``"expert"``, ``"snapshot"`` or ``"restore"``, in which it was raised; empty
            where that is not known.
    """

    cause = method = ""


class PlaceLost(EnvError):
    """Loss of a resource outside the environment's code: a fault of the machinery. Try the task again."""


def what_and_where(error: BaseException, env: object = None, method: str = "") -> str:
    """An error and its place in the environment's code, as messages end.

    Args:
        env, method: the environment that was asked, if the place may be that method of it where there is no better.

    >>> what_and_where(KeyError("key"))
    ": KeyError: 'key'"
    """
    if isinstance(error, OutsideLost):  # no line of code is at fault
        return f": {error}"
    contract = isinstance(error, ContractError)
    place = None
    if not (contract and error.placed):
        place = place_of(error) or (place_of_method(env, method) if env is not None else None)
    # Not str(error) of an error of the environment, which may raise too.
    text = str(error) if contract else traceback.format_exception_only(error)[-1].strip()
    return f"{f' ({place})' if place else ''}: {text}"


def not_made(name: str, error: BaseException) -> EnvError:
    """The error for an environment that raised when it was made."""
    kind = PlaceLost if isinstance(error, OutsideLost) else EnvError
    return kind(f"{name} raised when it was made{what_and_where(error)}")


class Answer(NamedTuple):
    """Answer to a reset or an action, as plain values that can cross a process boundary.

    Attributes:
        observation: the text to read.
        reward: the turn's reward, 0.0 after reset.
        format_valid: False if the environment could read no action, where actions have a syntax.
        understood: False if the action meant nothing to the environment.
        parts: named rewards that sum to ``reward``.
        anchor: hash of the situation, the same in every process.
        anchor_text: the situation as text, if there is one, to recognise similar ones by.
        success: whether the goal was reached; None while the episode goes on or where it is not known.
        answer: after reset, the action that gives the true answer, for the trainer and never for the policy; None
            where the environment names none.
        measures: at the end, further figures of the episode by name.
        role: who reads the observation and acts next, in environments with several roles.
    """

    observation: str
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    format_valid: bool = True
    understood: bool = True
    parts: Mapping[str, float] = MappingProxyType({})
    anchor: str = ""
    admissible: list[str] | None = None
    success: bool | None = None
    progress: float | None = None
    answer: str | None = None
    measures: Mapping[str, float] = MappingProxyType({})
    role: str = ONE_ROLE
    anchor_text: str | None = None

    @property
    def ended(self) -> bool:
        return self.terminated or self.truncated


@dataclass(slots=True)
class EpisodePast:
    """An episode so far: its beginning, its actions, and the last answer."""

    task: Task
    seed: int
    actions: list[str]
    last: Answer


class EnvHandle:
    """Holds one environment and speaks for it in ``Answer`` values.

    An environment without ``tasks`` gets one task for each seed, the splits being disjoint ranges of seeds. A plain one
    that lists them has ``splits``, ``tasks(split)`` and ``find(id)``, and takes a Task as the option ``task`` of reset.

    Args:
        name: id or ``FILE.py:Class``.
        kwargs: passed to the constructor.
        wrappers: turn-level rewards, as ``manyturn.envs.contract.wrappers.reward_wrapper.wrap`` takes them.

    Attributes:
        foreign: what makes an environment that is no ``TextEnv`` speak like one; None around a ``TextEnv``.
        inner: the environment within the wrappers.
        wrappers: the turn-level rewards around it, as plain values.
        past: the episode so far; None before the first reset, and after an error.
    """

    def __init__(self, name: str, kwargs: Mapping[str, Any] | None = None, wrappers: Sequence[Any] = ()):
        self.name = name
        env: gymnasium.Env = make(name, **(kwargs or {}))
        for side in ("observation_space", "action_space"):
            space = getattr(env, side, None)
            if space is None and isinstance(env.unwrapped, TextEnv):
                raise ContractError(f"{name}: its __init__() does not call super().__init__(): add that call first")
            if not isinstance(space, TextSpace | spaces.Text):
                raise ContractError(
                    f"{name}: {side} is {space}, but an agent reads and writes text: use manyturn.TextSpace(), and a "
                    "wrapper that puts numbers into words (docs/gymnasium-environments.md, 'Numbers as text')"
                )
        bare = env.unwrapped
        self._text_env = bare if isinstance(bare, TextEnv) else None
        self.foreign = None if self._text_env else GymnasiumAdapter(env)
        self.inner: gymnasium.Env = self.foreign or env
        self.wrappers = tuple(plain_wrappers(wrappers))
        self.env = wrap(self.inner, wrappers)
        self._task, self._turn = "", 0
        self.past: EpisodePast | None = None

    @property
    def instructions(self) -> str:
        """The instructions, given to the agent once."""
        return offered(self.env, "instructions", "")

    @property
    def has_expert(self) -> bool:
        if self._text_env:
            return type(self._text_env).expert is not TextEnv.expert
        return callable(offered(self.env, "expert"))

    @property
    def has_answer(self) -> bool:
        """True if resets can give the true answer."""
        return self._text_env is not None and type(self._text_env).answer is not TextEnv.answer

    @property
    def has_admissible(self) -> bool:
        """True if turns can list their admissible commands; unknown for environments that are not ours."""
        return self._text_env is None or type(self._text_env).admissible is not TextEnv.admissible

    @property
    def has_progress(self) -> bool:
        """True if turns can report their progress; unknown for environments that are not ours."""
        return self._text_env is None or type(self._text_env).progress is not TextEnv.progress

    @property
    def has_anchor_text(self) -> bool:
        """True if situations have a text; unknown for environments that are not ours."""
        if self._text_env is None:
            return True
        kind = type(self._text_env)
        return kind.anchor is TextEnv.anchor or kind.anchor_text is not TextEnv.anchor_text

    @property
    def has_vary(self) -> bool:
        """True if tasks can be varied."""
        return self._text_env is not None and type(self._text_env).vary is not TextEnv.vary

    @property
    def lists_tasks(self) -> bool:
        """True if the environment lists its tasks itself."""
        return self._text_env is not None or isinstance(self.env.unwrapped, ListsTasks)

    @property
    def splits(self) -> tuple[str, ...]:
        bare = self.env.unwrapped
        return bare.splits if isinstance(bare, ListsTasks) else SPLITS

    @property
    def user(self) -> str | None:
        """Partner that the agent talks to; None if there is none."""
        return getattr(getattr(self.env.unwrapped, "user", None), "name", None)

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles that act; one, unless the environment names several."""
        return tuple(offered(self.env, "roles") or (ONE_ROLE,))

    @property
    def side_by_side(self) -> int | None:
        """Most episodes that one process can hold open together; None without a limit."""
        return getattr(self.env.unwrapped, "side_by_side", None)

    @property
    def waits_outside(self) -> bool:
        """True if each episode may be played in a thread of its own."""
        return bool(getattr(self.env.unwrapped, "waits_outside", False))

    @property
    def max_turns(self) -> int | None:
        """The turn at which an episode is truncated; None without a limit."""
        return offered(self.env, "max_turns")

    @property
    def part_names(self) -> tuple[str, ...]:
        """Reward parts that the environment and its wrappers list, whether or not a turn earns them."""
        names = list(getattr(self.env.unwrapped, "part_names", None) or ())
        layer = self.env
        while isinstance(layer, gymnasium.Wrapper):
            if (name := getattr(layer, "part", None)) is not None:
                names.append(name)
            layer = layer.env
        return tuple(names)

    @property
    def lists_parts(self) -> bool:
        """True if ``part_names`` names every part that a turn can earn besides the outcome."""
        return getattr(self.env.unwrapped, "part_names", None) is not None

    def facts(self) -> EnvFacts:
        """Facts about the environment, as they are now."""
        return EnvFacts(
            name=self.name,
            instructions=self.instructions,
            splits=self.splits,
            roles=self.roles,
            user=self.user,
            max_turns=self.max_turns,
            part_names=self.part_names,
            lists_parts=self.lists_parts,
            has_expert=self.has_expert,
            has_answer=self.has_answer,
            has_admissible=self.has_admissible,
            has_progress=self.has_progress,
            has_anchor_text=self.has_anchor_text,
            tasks=self.tasks,
            vary=self.vary if self.has_vary else None,
            split_rule=None if self._text_env is None else self._text_env.split_rule,
        )

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split."""
        if self._text_env and split in self._text_env.absent:
            raise NeedsSetup(f"the split {split} of {self.name} is absent: {self._text_env.absent[split]}")
        if split not in self.splits:
            raise ValueError(f"{self.name} has no split {split!r}; it has {', '.join(self.splits)}")
        if self._text_env:
            return _listed(self._text_env, split)
        if isinstance(bare := self.env.unwrapped, ListsTasks):
            return bare.tasks(split)
        first = SPLITS.index(split) * _SEEDS_PER_SPLIT
        return GeneratedTasks(
            lambda i: Task(f"{split}/{i}", split, {"seed": first + i}), _SEEDS_PER_SPLIT, prefix=f"{split}/"
        )

    def vary(self, task: Task, direction: Direction, rng: np.random.Generator) -> Task | None:
        """A harder or an easier training task, under an id made of its content; None where there is none.

        Raises:
            ContractError: the environment gave no task, or one with params that are no plain values.
        """
        if self._text_env is None:
            raise Unsupported(f"{self.name} does not vary its tasks")
        varied: Any = self._text_env.vary(task, direction, rng)
        if varied is None:
            return None
        if not isinstance(varied, Task):
            raise wrong_return(self._text_env, "vary", varied, "a Task, or None where there is none")
        try:
            params = json.loads(json.dumps(dict(varied.params)))  # as a checkpoint and a worker have it
        except TypeError as error:
            raise ContractError(f"{self.name}: vary() gave params that are no plain values: {error}") from None
        return replace(varied, id=f"{GROWN}{varied.content}", params=params)

    def reset(self, task: Task, seed: int) -> Answer:
        """Begin ``task``; the seed decides what is random inside the episode. Raises EnvError."""

        def begin() -> Answer:
            if self._text_env:
                named = task if task.id.startswith(GROWN) else task.id
                text, info = self.env.reset(seed=seed, options={"task": named})
                answer: Any = self._text_env.answer()
                if not isinstance(answer, str | None):
                    raise wrong_return(self._text_env, "answer", answer, "the true action as text, or None without one")
                return self._answer((text, 0.0, False, False, info), answer)
            if self.lists_tasks:
                text, info = self.env.reset(seed=seed, options={"task": task})
            else:
                text, info = self.env.reset(seed=task.params["seed"])
            return self._answer((text, 0.0, False, False, info))

        self._task, self._turn, self.past = task.id, 0, None
        answer = self.guarded("reset", begin)
        self.past = EpisodePast(task, seed, [], answer)
        return answer

    def step(self, action: str) -> Answer:
        """Take one action. Raises EnvError."""
        self._turn += 1
        past, self.past = self.past, None
        answer = self.guarded("step", lambda: self._answer(self.env.step(action)))
        if past is not None:
            past.actions.append(action)
            past.last, self.past = answer, past
        return answer

    def situation(self, like: Answer) -> Answer:
        """The situation of a ``TextEnv`` as it is now; what is no part of it is as in another answer."""
        bare, admissible, role = self.env.unwrapped, None, like.role
        assert isinstance(bare, TextEnv), "only these say it without a turn"
        if (commands := bare.admissible()) is not None:
            admissible = list(commands)
        if len(self.roles) > 1 and not like.ended:
            role = bare.role()
        anchor = digest(bare.anchor())
        return like._replace(observation=bare.observation, anchor=anchor, admissible=admissible, role=role)

    def stands_at(self, task: Task, seed: int, actions: Sequence[str], last: Answer) -> None:
        """The environment was taken to this place of an episode."""
        self._task, self._turn, self.past = task.id, len(actions), EpisodePast(task, seed, list(actions), last)

    def expert(self) -> str:
        """The expert's next action. Raises Unsupported without an expert, EnvError if it raised."""
        if not self.has_expert:
            raise Unsupported(f"{self.name} has no expert: give it a method expert(), or start from a trained model")

        def ask() -> str:
            action = offered(self.env, "expert")()
            # Passed on, it would count as an invalid turn of a policy that is none.
            refuse_excluded(self.env.action_space, "action", action, "the expert's ")
            return action

        return self.guarded("expert", ask)

    def close(self) -> None:
        self.env.close()

    def guarded(self, where: str, call: Callable[[], T]) -> T:
        """Turn what the environment raises into EnvError, but not a fault of the recipe or of the caller."""
        beat()
        try:
            return call()
        except (WrapperMismatch, ResetNeeded):
            raise
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            # Nothing here awaits, so a CancelledError is the environment's own.
            raise self._lost(where, error) from error

    def _lost(self, where: str, error: BaseException) -> EnvError:
        """The error with its place: turn and task of the episode, file and line of the environment."""
        # Of arguments that it does not take no line of its own is to be seen.
        methods = {"reset": "begin", "step": "respond"} if self._text_env else {}
        blamed = self.foreign is not None or isinstance(error, TypeError)
        message = what_and_where(error, self.env if blamed else None, methods.get(where, where))
        turn = {"step": f" {self._turn}", "expert": f" for step {self._turn + 1}"}.get(where, "")
        raised = "" if isinstance(error, ContractError) else " raised"
        kind = PlaceLost if isinstance(error, OutsideLost) else EnvError
        lost = kind(f"{self.name}{raised} in {where}{turn} of {self._task}{message}")
        lost.cause, lost.method = message, where
        return lost

    def _answer(self, step: tuple[str, Any, bool, bool, Mapping[str, Any]], true_answer: str | None = None) -> Answer:
        text, reward, terminated, truncated, info = step
        if not isinstance(text, str):
            raise TypeError(f"an observation is text, not {type(text).__name__}")
        reward = _number(self.env, reward, "the reward")
        if math.isinf(reward):
            raise ValueError(f"the reward is {reward}; use NaN for a reward that is not known")
        if abs(reward) > MOST_REWARD:
            raise ValueError(f"the reward is {too_large(reward)}")
        anchor: Hashable = info.get("anchor", text)
        anchor_text = info.get("anchor_text", anchor)
        admissible = info.get("admissible")
        success, progress = info.get("success"), info.get("progress")
        return Answer(
            observation=text,
            reward=reward,
            terminated=bool(terminated),
            truncated=bool(truncated),
            format_valid=bool(info.get("format_valid", True)),
            understood=bool(info.get("understood", True)),
            parts=_numbers(self.env, info, "reward_parts"),
            anchor=digest(anchor),
            admissible=None if admissible is None else list(admissible),
            success=None if success is None else bool(success),
            progress=None if progress is None else float(progress),
            answer=true_answer,
            measures=_numbers(self.env, info, "measures"),
            role=self._next_role(info, bool(terminated or truncated)),
            anchor_text=anchor_text if isinstance(anchor_text, str) else None,
        )

    def _next_role(self, info: Mapping[str, Any], ended: bool) -> str:
        if len(self.roles) == 1 or ended:
            return self.roles[0]  # info["role"] may mean something else in an environment with one role
        if (role := info.get("role")) not in self.roles:
            raise ValueError(f"info['role'] is {role!r}, but the roles are {', '.join(self.roles)}")
        return role


def _number(env: object, value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise step_refusal(env, f"{name} {shown(value)}: give a number") from None


def _numbers(env: object, info: Mapping[str, Any], key: str) -> dict[str, float]:
    """An entry of ``info`` that holds numbers by name. Raises ContractError."""
    values = info.get(key, {})
    if not isinstance(values, Mapping):
        raise step_refusal(env, f"info[{key!r}] = {shown(values)}: give a dict of numbers by name")
    return {name: _number(env, value, f"info[{key!r}][{name!r}] =") for name, value in values.items()}


def _listed(env: TextEnv, split: str) -> Sequence[Task]:
    """Check that ``tasks(split)`` returns a list of tasks, and return it. Raises ContractError."""
    try:
        tasks = env.tasks(split)
    except KeyError as error:
        if error.args != (split,):
            raise
        raise ContractError(
            f"tasks({split!r}) raised KeyError: give that split, or name those that there are in the class attribute "
            "splits, such as splits = ('train', 'test')"
        ) from error
    if not isinstance(tasks, Sequence) or isinstance(tasks, str):
        raise wrong_return(env, "tasks", tasks, "a list of mt.Task, always the same ones in the same order")
    if isinstance(tasks, list | tuple) and (strange := [task for task in tasks if not isinstance(task, Task)]):
        raise wrong_return(env, "tasks", strange[0], "mt.Task objects alone", "a list with ")
    return tasks
