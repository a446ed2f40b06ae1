"""Policies of an audit that answer turn by turn in text, without tokens: scripted ones, and functions in Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from manyturn.agents.play.python_policy import PolicyError, PythonPolicy, code_of
from manyturn.envs.contract.registration.env_registry import is_file, load_file
from manyturn.trainers.credit_audit.common_random_numbers import Noise, picked
from manyturn.trainers.credit_audit.rewindable_env import World


class Moves(Protocol):
    """A policy that depends on nothing but the situation and its random numbers."""

    name: str

    def check(self, world: World) -> None:
        """Raises ValueError where it cannot play there."""
        ...

    def act(self, world: World, observation: str, admissible: list[str] | None, noise: Noise, turn: int) -> str:
        """The action in the situation that the world is in."""
        ...


class ScriptedMoves:
    """Expert moves, of which a share is replaced by random admissible commands.

    Args:
        noise: share of random moves: 0 is the expert, 1 a random policy.
    """

    def __init__(self, noise: float):
        if not 0 <= noise <= 1:
            raise ValueError(f"the noise of an expert is a share of random moves from 0 to 1, not {noise}")
        self.noise = noise
        self.name = "expert" if noise == 0 else "random" if noise == 1 else f"expert:{noise:g}"

    def check(self, world: World) -> None:
        if self.noise < 1:
            world.check_expert()

    def act(self, world: World, observation: str, admissible: list[str] | None, noise: Noise, turn: int) -> str:
        u, v = noise.uniform(turn)
        if u < self.noise and admissible:
            return admissible[picked(v, len(admissible))]
        if self.noise == 1:
            raise PolicyError(f"{world.handle.name} lists no commands that random could draw: name another policy")
        return world.expert()


class FunctionMoves:
    """A function of observation and info, as ``PythonPolicy`` takes it; it must not remember anything.

    Args:
        policy: checked already.
    """

    def __init__(self, policy: PythonPolicy):
        if isinstance(policy.policy, type) or not policy.blocks:
            raise PolicyError(
                f"{policy.word} remembers, or is async: an audit continues from the middle of episodes, so give a "
                "plain function (observation, info) -> str"
            )
        self._policy, self.name = policy, policy.name
        self._function: Callable[..., Any] = getattr(policy.policy, "act", None) or policy.policy

    def check(self, world: World) -> None:
        """Plays anywhere."""

    def act(self, world: World, observation: str, admissible: list[str] | None, noise: Noise, turn: int) -> str:
        info = {
            "instructions": world.handle.instructions,
            "task": noise.key.task,
            "turn": turn,
            "repeat": noise.key.member,
            "role": world.handle.roles[0],
            "admissible": None if admissible is None else list(admissible),
            "seed": noise.seed(turn),
        }
        try:
            action = self._function(observation, info)
        except Exception as error:
            raise self._policy.error(f"asked for turn {turn} of task {noise.key.task!r}", error) from error
        if not isinstance(action, str):
            raise PolicyError(f"{self._policy.word} answered with {action!r:.60}: return the action as a str")
        return action


def moves_of(policy: Any) -> Moves | None:
    """The policy that a word or a function means; None where it is one with tokens, or none at all.

    >>> moves_of("expert:0.5").name, moves_of("random").name
    ('expert:0.5', 'random')

    Args:
        policy: random, expert, expert:SHARE with that share of random moves, FILE.py:FUNCTION, or a function.
    """
    if not isinstance(policy, str):
        return FunctionMoves(PythonPolicy(policy, getattr(policy, "__name__", "policy"), code_of(policy)))
    if policy == "random":
        return ScriptedMoves(1.0)
    word, colon, share = policy.partition(":")
    if word == "expert":
        try:
            return ScriptedMoves(float(share) if colon else 0.0)
        except ValueError:
            raise ValueError(f"{policy!r} is no policy: write expert:0.5 for one with half random moves") from None
    if is_file(policy):
        file, _, name = policy.rpartition(":")
        module = load_file(Path(file).resolve())
        if not hasattr(module, name):
            raise ValueError(f"{file} has no {name!r}: name a function that it defines")
        return FunctionMoves(PythonPolicy(getattr(module, name), policy))
    return None
