"""Two roles out of one: an adviser writes advice, and an actor reads it and acts."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import gymnasium

from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.wrappers.reward_wrapper import (
    WRAPPERS,
    TurnReward,
    WrapperMismatch,
    joined_snapshot,
    parted_snapshot,
)

ADVISER, ACTOR = "adviser", "actor"
_RULES = (
    "Two work together. The adviser reads each situation and writes advice in one line. The actor reads the situation "
    "with the advice, and acts. The rules of the actor:"
)
_OF_A_SITUATION = ("admissible", "progress", "task", "split", "turn")  # entries of info that are plain values


class AdviserConfig(Named):
    name: Literal["adviser"] = "adviser"
    when: Literal["turn", "start"] = "turn"
    """Give advice before each turn of the actor, or once before the first; the actor then reads it at every turn."""


@WRAPPERS.register(AdviserConfig)
class Adviser(TurnReward):
    """Give an environment of one role the roles ``adviser`` and ``actor``, for [roles] to assign.

    An actor that does not learn, such as a large model at an endpoint, is steered by a small adviser that does:
    explicit-policy optimisation (EPO, arXiv 2502.12486) with ``when = "turn"``, directional stimulus prompting (arXiv
    2302.11520) with ``when = "start"``. The adviser may write anything. Admissible commands of the environment are its
    admissible advice, and its expert advises what the environment's expert would do. Both roles earn what the
    environment pays.

    It does not preserve the optimal policy: what is best to say depends on the actor. Episodes have twice as many
    turns, or one more.
    """

    preserves_optimal_policy = False
    roles: ClassVar[tuple[str, ...]] = (ADVISER, ACTOR)

    def __init__(self, env: gymnasium.Env, config: AdviserConfig):
        super().__init__(env)
        if len(self.inner("roles", None) or (ACTOR,)) > 1:
            raise WrapperMismatch(f"{self.unwrapped} has several roles already: leave the wrapper adviser out")
        self.when = config.when
        self._role, self._advice, self._action = ADVISER, "", ""
        self._seen: tuple[str, dict[str, Any]] = ("", {})

    @property
    def instructions(self) -> str:
        """The environment's instructions, with what the roles do."""
        return f"{_RULES}\n{self.inner('instructions', '')}".rstrip()

    @property
    def max_turns(self) -> int | None:
        """The turn of both roles together at which an episode is truncated."""
        most = self.inner("max_turns", None)
        return None if most is None else 2 * most if self.when == "turn" else most + 1

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        return parts

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        text, info = self.env.reset(seed=seed, options=options)
        self._advice = self._action = ""
        return self._before_advice(text, info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._role == ADVISER:
            self._role, self._advice = ACTOR, " ".join(action.split())
            text, info = self._seen
            silent = {"reward_parts": {}, "understood": bool(self._advice)}
            text, info = self._with_advice(text, {**info, **silent})
            return text, 0.0, False, False, info
        self._action = action
        text, reward, terminated, truncated, info = super().step(action)
        if terminated or truncated:
            return text, reward, terminated, truncated, {**info, "role": self._role}
        if self.when == "start":
            text, info = self._with_advice(text, {**info, "anchor": _anchor(text, info)})
        else:
            text, info = self._before_advice(text, info)
        return text, reward, False, False, info

    def _before_advice(self, text: str, info: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The situation as the adviser reads it."""
        self._role, self._seen = ADVISER, (text, _plain(text, info))
        did = f"The actor chose: {self._action}\n\n" if self._action else ""
        return f"{did}{text}\n\nWhat do you advise?", {**info, "role": ADVISER}

    def _with_advice(self, text: str, info: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The situation, under a plain anchor, as the actor reads it, who may do otherwise after other advice."""
        anchor = digest(info["anchor"], self._advice)
        shown = f"{text}\n\nAdvice: {self._advice or 'none'}"
        return shown, {**info, "role": ACTOR, "anchor": anchor, "anchor_text": shown}

    def expert(self) -> str:
        """The action of the environment's expert, as advice or as an action."""
        return self.inner("expert", None)()

    def snapshot(self) -> bytes:
        return joined_snapshot([self._role, self._advice, self._action, *self._seen], super().snapshot())

    def restore(self, data: bytes) -> None:
        (self._role, self._advice, self._action, text, info), inner = parted_snapshot(data)
        super().restore(inner)
        self._seen = text, info


def _plain(text: str, info: dict[str, Any]) -> dict[str, Any]:
    """The entries of a situation that the actor's turn has too, as plain values."""
    return {name: info[name] for name in _OF_A_SITUATION if name in info} | {"anchor": _anchor(text, info)}


def _anchor(text: str, info: Mapping[str, Any]) -> str:
    """The anchor of a situation of the environment as a plain value."""
    return digest(info.get("anchor", text))
