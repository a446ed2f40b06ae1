"""A policy written in Python: a function of observation and info, or a class of which each episode gets an object."""

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manyturn.agents.play.episode import Act
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.env.error_location import place_of
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import load_file
from manyturn.envs.contract.registration.sibling_modules import source_files
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat

_WAITING = 16  # episodes of an ``async`` policy that wait for it at the same time, unless it says otherwise


class PolicyError(ValueError):
    """The policy's code raised, or did not answer with text. It is no error of the environment, and ends everything."""


class PythonPolicy:
    """Plays by calling Python::

        def policy(observation: str, info: dict) -> str:
            return info["admissible"][0]

    The function may be ``async``. In place of it there may be a class: an object of it is made for each episode,
    without arguments, and its method ``act`` is called like the function, so that ``self`` is the episode's memory. Or
    an object with such a method, which all episodes share.

    ``info`` holds ``instructions``, ``task`` (its id), ``turn`` (from 0), ``repeat`` (which attempt at the task, from
    0), ``role``, ``admissible`` (a list of commands, or None) and ``seed``, a number for randomness that is the same
    when the evaluation is repeated. An attribute ``concurrency`` of the function or class says how many episodes may be
    open together; by default 16 if it is ``async``, else one for each process that hosts environments. ``write``, a
    method or an attribute, takes a prompt and such an ``info`` and returns a text; ``manyturn improve`` calls it.

    Args:
        policy: the function, class or object.
        word: what it is called in messages.
        code: hash of its code, by which an interrupted evaluation knows it again.

    Raises:
        PolicyError: it is none of these.
    """

    def __init__(self, policy: Any, word: str, code: str = ""):
        self.policy, self.word, self.code = policy, word, code
        self.name = f"{word}, code {code}" if code else word
        act = getattr(policy, "act", None)
        self._answers: Callable[..., Any] = act if callable(act) else policy
        is_class = isinstance(policy, type)
        if not callable(self._answers) or (is_class and not callable(act)):
            raise PolicyError(
                f"{word} is {'a class without a method act' if is_class else type(policy).__name__}, no policy: write "
                "a function (observation, info) -> str, or a class with a method act(self, observation, info)"
            )
        self._check_takes_two()
        self.blocks = not inspect.iscoroutinefunction(self._answers)
        self.concurrency = getattr(policy, "concurrency", None if self.blocks else _WAITING)
        if self.concurrency is not None and (type(self.concurrency) is not int or self.concurrency < 1):
            raise PolicyError(f"{word}.concurrency counts open episodes, so it is 1 or more, not {self.concurrency!r}")

    def _check_takes_two(self) -> None:
        bound = ["self"] if isinstance(self.policy, type) else []
        try:
            inspect.signature(self._answers).bind(*bound, "observation", {})
        except TypeError as error:
            raise PolicyError(
                f"{self.word} is called with an observation and info, which it does not take ({error}): write "
                f"def {getattr(self._answers, '__name__', 'policy')}({', '.join([*bound, 'observation', 'info'])})"
            ) from None
        except ValueError:
            return  # written in C, without a signature

    def player(self, key: EpisodeKey, instructions: str) -> "PythonPlayer":
        try:
            instance = self.policy() if isinstance(self.policy, type) else self.policy
        except Exception as error:
            raise self.error(f"making it for task {key.task!r}", error) from error
        act = getattr(instance, "act", None)
        return PythonPlayer(self, act if callable(act) else instance, key, instructions)

    def writer(self, longest: int) -> "PythonPolicy":
        """Its ``write`` as a policy. Raises PolicyError where it has none."""
        if not callable(write := getattr(self.policy, "write", None)):
            raise PolicyError(
                f"{self.word} writes no texts, which this method asks for: add --writer, such as openai:MODEL, or give "
                "it a method write(prompt, info) -> str"
            )
        if isinstance(self.policy, type):
            write = self.policy().write
        return PythonPolicy(write, f"{self.word}.write", self.code)

    def error(self, doing: str, error: Exception) -> PolicyError:
        """An error of the policy's code, with the line of its own that raised."""
        place = place_of(error) or _start(self._answers)
        message = traceback.format_exception_only(error)[-1].strip()
        return PolicyError(f"{place}: the policy {self.word} raised {message} when {doing}: fix the policy")


class PythonPlayer:
    """The policy within one episode."""

    def __init__(self, policy: PythonPolicy, answers: Callable[..., Any], key: EpisodeKey, instructions: str):
        self._policy, self._answers, self._key, self._turn = policy, answers, key, 0
        self._instructions = instructions
        self.ledger: Ledger | None = None

    async def act(self, step: Answer, seat: Seat) -> Act:
        moment = f"turn {self._turn} of task {self._key.task!r}"
        info = {
            "instructions": self._instructions,
            "task": self._key.task,
            "turn": self._turn,
            "repeat": self._key.member,
            "role": step.role,
            "admissible": None if step.admissible is None else list(step.admissible),
            "seed": self._key.noise_seed(self._turn),
        }
        try:
            action = self._answers(step.observation, info)
            if inspect.isawaitable(action):
                action = await action
        except Exception as error:
            raise self._policy.error(f"asked for {moment}", error) from error
        if not isinstance(action, str):
            raise PolicyError(
                f"{_start(self._answers)}: the policy {self._policy.word} answered {moment} with {action!r:.60}, which "
                "is no text: return the action as a str"
            )
        self._turn += 1
        return Act(action, action)

    def leave(self) -> None:
        """Nothing is kept."""


def policy_in_file(word: str) -> PythonPolicy:
    """The policy of FILE.py:POLICY, known again by the text of the file and of those next to it that it imports.

    Raises:
        ValueError: there is no such file, or nothing of that name in it.
        PolicyError: it is no policy.
    """
    file, _, name = word.rpartition(":")
    path = Path(file).resolve()
    module = load_file(path)
    if (function := getattr(module, name, None)) is None:
        public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        near = near_names(name, public, n=1) or public
        raise ValueError(f"{file} has no {name!r}: " + (f"did you mean {near[0]}?" if near else "it defines nothing"))
    text = "".join(source.read_text(encoding="utf-8") for source in source_files(path))
    return PythonPolicy(function, word, digest(text)[:8])


def code_of(policy: Any) -> str:
    """A hash of a policy's source text; empty where there is none to read."""
    try:
        return digest(
            inspect.getsource(policy if inspect.isroutine(policy) or isinstance(policy, type) else type(policy))
        )[:8]
    except (OSError, TypeError):
        return ""


def _start(answers: Callable[..., Any]) -> str:
    """File and line where the code of a function begins."""
    code = getattr(inspect.unwrap(answers), "__code__", None)
    return "in Python" if code is None else f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
