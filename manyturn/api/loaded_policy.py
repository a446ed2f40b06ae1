"""A policy that is loaded once, to play turn by turn in a loop of the caller's and to be evaluated several times."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import gymnasium

from manyturn.agents.evaluation.evaluate import STAGE
from manyturn.agents.play.episode import Act, Player
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.api.named_policy import SECTIONS, Candidate, find_policy
from manyturn.api.shown_experience import ShownExperience
from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.contract.env.text_env import Unsupported
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.handle.gymnasium_adapter import offered
from manyturn.terminal.event_loop import result_of
from manyturn.terminal.overrides import OverrideError


def load_policy(word: str, experience: str | os.PathLike[str] | None = None, **options: Any) -> "LoadedPolicy":
    """Load a policy, to play with it by hand or to evaluate it several times.

    >>> import manyturn
    >>> env = manyturn.make("manyturn/Maze-v0")
    >>> observation, info = env.reset(seed=0)
    >>> with load_policy("expert") as policy, policy.episode(env, info) as playing:
    ...     playing.act(observation, info) in info["admissible"]
    True

    Args:
        word: what ``manyturn evaluate`` takes: a run's folder, a checkpoint, a model, ``"openai:MODEL"``, ``"expert"``,
            ``"FILE.py:POLICY"``.
        experience: file, or folder of an improvement, of what the policy is shown; see ``improve``.
        options: of the policy by section, such as ``sampling={"temperature": 0.0}``.

    Raises:
        ValueError: there is no such policy, or an option does not exist or has no effect on it.
    """
    for name in options:
        if name not in SECTIONS:
            raise OverrideError(unknown("option of load_policy", name, SECTIONS))
    shown, rest = ShownExperience.read(None if experience is None else Path(experience), options)
    candidate = find_policy(word, rest)
    return LoadedPolicy(word, candidate if shown is None else shown.given_to(candidate, None))


class LoadedPolicy:
    """A policy with its weights; ``with`` or ``close()`` gives back what its engine holds.

    ``mt.evaluate`` takes it in place of a word. It plays one episode by hand at a time, since an engine waits for every
    episode that is open.

    Attributes:
        word: what it was loaded by.
        name: what it is called in results.
        candidate: it, with what is known of the run that it comes from.
    """

    def __init__(self, word: str, candidate: Candidate):
        self.word, self.candidate = word, candidate
        self.name = candidate.policy.name
        self._closed = False
        self._playing: HandPlayedEpisode | None = None

    def __repr__(self) -> str:
        return f"<LoadedPolicy {self.name}>"

    def episode(
        self, env: gymnasium.Env, info: Mapping[str, Any], seed: int = 0, repeat: int = 0
    ) -> "HandPlayedEpisode":
        """Begin an episode, and end the one before. The replies are those of an evaluation with this seed.

        Args:
            env: what is played; the policy reads its instructions, and the expert asks it.
            info: that of ``env.reset``.
            seed: that of the evaluation: it decides what is drawn.
            repeat: which attempt at the task, from 0: each draws something else.
        """
        self.rest()
        key = EpisodeKey(seed, STAGE, str(info.get("task", "")), repeat)
        self._playing = HandPlayedEpisode(self.candidate.policy.player(key, offered(env, "instructions", "")), env)
        return self._playing

    def rest(self) -> None:
        """End the episode that is played, if any. Raises ValueError once the policy is closed."""
        if self._closed:
            raise ValueError(f"{self.word} is closed: load it again")
        if self._playing is not None:
            self._playing.leave()

    def close(self) -> None:
        """Give back what the engine holds. Closed already, it does nothing."""
        if not self._closed:
            self.rest()
            self._closed = True
            for engine in self.candidate.engines:
                result_of(engine.shutdown())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HandPlayedEpisode:
    """A policy within one episode, whose environment the caller steps; ``with`` or ``leave()`` ends it.

    Attributes:
        last_act: what it did at the turn before: its reply, the action, and the tokens that were counted.
    """

    def __init__(self, player: Player, env: gymnasium.Env):
        self._player, self._own = player, _OwnSeat(env)
        self.last_act: Act | None = None
        self._over = False

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Action for what ``env.reset`` or ``env.step`` gave; empty where the reply was cut: no part of it acts.

        Raises:
            ValueError: the episode is over, or the policy has begun another.
            ContextFull: the conversation has outgrown what the policy can read; an evaluation truncates the episode.
            EngineError: the engine or the endpoint gave no reply.
            PolicyError: the policy's own code raised.
        """
        if self._over:
            raise ValueError("this episode is over, or its policy has begun another: begin one with policy.episode()")
        admissible = info.get("admissible")
        step = Answer(
            observation,
            admissible=None if admissible is None else list(admissible),
            role=info["role"] if len(self._own.roles) > 1 else self._own.roles[0],
        )
        seat: Any = self._own  # the caller resets and steps it, and no policy does
        self.last_act = result_of(self._player.act(step, seat))
        return "" if self.last_act.cut is not None else self.last_act.action

    def leave(self) -> None:
        """The episode is over, whether or not the environment says so."""
        if not self._over:
            self._over = True
            self._player.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


class _OwnSeat:
    """The caller's environment, as far as a policy asks for it."""

    def __init__(self, env: gymnasium.Env):
        self._env = env
        self.name = type(env.unwrapped).__name__
        self.roles: Sequence[str] = offered(env, "roles") or (ONE_ROLE,)

    async def expert(self) -> str:
        if (ask := offered(self._env, "expert")) is None:
            raise Unsupported(f"{self.name} has no expert: give it a method expert()")
        return ask()

    async def snapshot(self) -> str:
        raise Unsupported(f"{self.name} is the caller's own, where nothing is tried out: evaluate with --search")

    async def restore(self, snapshot: str) -> Answer:
        raise Unsupported(f"{self.name} is the caller's own, and its turns stand: evaluate with --search")
