"""Three roles out of one: an actor attempts a task, a reflector says what went wrong, and a retry reads that.

Source: Retroformer, arXiv 2308.02151, section 4: a retrospective model writes a reflection after a failed attempt of a
frozen actor, and is rewarded with what the next attempt's return is above that of the failed one.

    gain = return of the second attempt - return of the first, a reward of the reflector's turn

Differences: theirs trains by PPO from reflections that were rated offline, here the recipe decides, in the run itself;
theirs goes on to further attempts, here there are two.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import gymnasium
from pydantic import Field

from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.wrappers.reward_wrapper import (
    WRAPPERS,
    TurnReward,
    WrapperMismatch,
    joined_snapshot,
    parted_snapshot,
)

REFLECTOR, ACTOR, RETRY = "reflector", "actor", "retry"
_RULES = (
    "An actor attempts a task. If it fails, the reflector reads the attempt and writes a reflection: what went wrong, "
    "and what to do instead. A retry, which knows nothing else of the attempt, reads the reflection and attempts the "
    "task again. The rules of the task:"
)
_LEFT_OUT = "\n[...]\n"


class ReflectorConfig(Named):
    name: Literal["reflector"] = "reflector"
    transcript: int = Field(default=4000, ge=100)
    """Longest transcript of the failed attempt, in characters; the middle of a longer one is left out."""


@WRAPPERS.register(ReflectorConfig)
class Reflector(TurnReward):
    """Give an environment of one role the roles ``actor``, ``reflector`` and ``retry``, for [roles] to assign.

    The reflector earns ``gain``, the return of the retry less that of the actor, and nothing else; the other two earn
    what the environment pays in their attempts. An episode whose first attempt succeeds ends with it, and has no
    reflection. Success is that of the last attempt; the measure ``first_success`` has that of the first.

    Commands of the failed attempt are the admissible reflections, and the environment's expert reflects with its own
    word on the first turn at which the attempt did otherwise. A retry has a memory of its own: it does not see the
    first attempt, though it plays in the same world.

    It does not preserve the optimal policy: what is best to say depends on the retry. Episodes have at most twice as
    many turns, and one more.
    """

    preserves_optimal_policy = False
    part = f"{REFLECTOR}.gain"
    roles: ClassVar[tuple[str, ...]] = (REFLECTOR, ACTOR, RETRY)

    def __init__(self, env: gymnasium.Env, config: ReflectorConfig):
        super().__init__(env)
        if len(self.inner("roles", None) or (ACTOR,)) > 1:
            raise WrapperMismatch(f"{self.unwrapped} has several roles already: leave the wrapper reflector out")
        if self.inner("max_turns", None) is None:
            raise WrapperMismatch(f"{self.unwrapped} has no limit of turns, so no second attempt: set its max_turns")
        self._longest = config.transcript
        self._seed, self._options = 0, dict[str, Any]()
        self._begin()

    def _begin(self) -> None:
        self._role, self._reflection = ACTOR, ""
        self._returns = [0.0, 0.0]
        self._seen, self._did, self._commands = list[str](), list[str](), list[str]()

    @property
    def instructions(self) -> str:
        """The environment's instructions, with what the roles do."""
        return f"{_RULES}\n{self.inner('instructions', '')}".rstrip()

    @property
    def max_turns(self) -> int:
        """The turn of all roles together at which an episode is truncated."""
        return 2 * self.inner("max_turns", 0) + 1

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        own = {f"{self._role}.{name}": value for name, value in parts.items()}
        self._returns[self._role == RETRY] += sum(parts.values())
        gain = self._returns[1] - self._returns[0]
        return self.add(own, gain) if ended and self._role == RETRY else own

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        if seed is None:  # both attempts are in one world
            seed = int(self.np_random.integers(2**31))
        self._begin()
        self._seed, self._options = seed, dict(options or {})
        text, info = self.env.reset(seed=seed, options=options)
        self._note(text, info)
        return text, {**info, "role": ACTOR}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._role == REFLECTOR:
            self._role, self._reflection = RETRY, " ".join(action.split())
            text, info = self._again()
            text, info = self._with_reflection(text, info)
            return text, 0.0, False, False, {**info, "reward_parts": {}, "understood": bool(self._reflection)}
        text, reward, terminated, truncated, info = super().step(action)
        ended = terminated or truncated
        if self._role == RETRY:
            if ended:
                info = {**info, "measures": {**info.get("measures", {}), "first_success": 0.0}}
            else:
                text, info = self._with_reflection(text, info)
            return text, reward, terminated, truncated, {**info, "role": RETRY}
        self._did.append(action)
        self._note(text, info)
        if not ended:
            return text, reward, False, False, {**info, "role": ACTOR}
        if info.get("success"):
            info = {**info, "measures": {**info.get("measures", {}), "first_success": 1.0}}
            return text, reward, terminated, truncated, {**info, "role": ACTOR}
        return self._before_reflection(reward, info)

    def _note(self, text: str, info: Mapping[str, Any]) -> None:
        """Keep what the reflector will read."""
        self._seen.append(text)
        self._commands += [word for word in info.get("admissible") or () if word not in self._commands]

    def _before_reflection(
        self, reward: float, info: Mapping[str, Any]
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The failed attempt as the reflector reads it; the actor's last reward comes with it."""
        self._role = REFLECTOR
        lines = [self._seen[0]]
        for did, seen in zip(self._did, self._seen[1:], strict=True):
            lines += [f"The actor chose: {did}", seen]
        text = "\n".join(lines)
        if len(text) > self._longest:
            half = max((self._longest - len(_LEFT_OUT)) // 2, 1)
            text = f"{text[:half]}{_LEFT_OUT}{text[-half:]}"
        text = f"{text}\n\nThe attempt failed. What should be done instead?"
        about = {name: info[name] for name in ("task", "split", "turn", "understood", "format_valid") if name in info}
        about |= {"reward_parts": info["reward_parts"], "anchor": digest(text), "anchor_text": text}
        if self._commands:
            about["admissible"] = list(self._commands)
        return text, reward, False, False, {**about, "role": REFLECTOR}

    def _with_reflection(self, text: str, info: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The situation as the retry reads it, who may do otherwise after another reflection."""
        anchor = digest(info.get("anchor", text), self._reflection)
        shown = f"{text}\n\nReflection: {self._reflection or 'none'}"
        return shown, {**info, "role": RETRY, "anchor": anchor, "anchor_text": shown}

    def _again(self) -> tuple[str, dict[str, Any]]:
        """Begin the world of the first attempt again."""
        return self.env.reset(seed=self._seed, options=self._options or None)

    def expert(self) -> str:
        """The action of the environment's expert; of the reflector, the one at the first turn that was otherwise."""
        ask = self.inner("expert", None)
        if self._role != REFLECTOR:
            return ask()
        self._again()
        words = list[str]()
        for did in self._did:
            words.append(ask())
            if words[-1] != did:
                return words[-1]
            self.env.step(did)
        return words[0]

    def snapshot(self) -> bytes:
        state = [self._role, self._reflection, self._returns, self._seen, self._did, self._commands, self._seed]
        return joined_snapshot(state, super().snapshot())

    def restore(self, data: bytes) -> None:
        own, inner = parted_snapshot(data)
        super().restore(inner)
        self._role, self._reflection, self._returns, self._seen, self._did, self._commands, self._seed = own
        if (task := getattr(self.unwrapped, "task", None)) is not None:
            self._options = {"task": task}
