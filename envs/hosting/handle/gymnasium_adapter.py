"""A ``gymnasium.Env`` of strings that knows nothing of this project, made to speak like a ``TextEnv``."""

import math
from collections.abc import Mapping
from typing import Any

import gymnasium

from manyturn.envs.contract.env.space_containment import refuse_excluded
from manyturn.envs.contract.env.turn import OUTCOME, Turn, checked_actions, checked_turn, wrong_return
from manyturn.envs.hosting.handle.info_key_check import checked_flags

SUCCESS_KEYS = ("success", "is_success")
_OF_ONE_TURN = ("format_valid", "understood", "reward_parts", "turn")


class GymnasiumAdapter(gymnasium.Wrapper[str, str, str, str]):
    """Adds the stable keys of ``info`` and lets no action reach the environment that its action space excludes.

    Such an action is answered with the last observation, ``understood`` False and reward 0, and counts as a turn. An
    episode that reaches the step limit of the environment's registration, or its own ``max_turns``, is truncated.

    Where ``info`` has no ``understood``, an action was understood if it could be read. A flag of a turn by another
    name, such as ``valid``, is refused.

    Whether the goal was reached is decided at the end: by ``info["success"]``, else by ``info["is_success"]``, else it
    was reached if the episode terminated and its rewards sum to more than the class's ``success_above``, 0 by default.

    Attributes:
        success_by: the key of ``info`` that decided last; None if the rewards did.
    """

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        limit = offered(env, "max_turns") or (env.spec.max_episode_steps if env.spec else None)
        self.max_turns: int | None = limit
        self.success_above = float(offered(env, "success_above", 0.0))
        self.success_by: str | None = None
        self._last: tuple[str, dict[str, Any]] = ("", {})
        self._turn = 0
        self._return = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        result = self.env.reset(seed=seed, options=options)
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Mapping):
            raise wrong_return(self.env, "reset", result, "the observation and info, a dict")
        self._turn, self._return = 0, 0.0
        return self._described(result[0], dict(result[1]), {}, terminated=False, ended=False)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._turn += 1
        if self.action_space.contains(action):
            text, raw, terminated, truncated, info = self._step_result(action)
            reward, terminated = float(raw), bool(terminated)
        else:
            (text, info), reward, terminated, truncated = self._last, 0.0, False, False
            info = {**info, "understood": False, "reward_parts": {}}
        # Gymnasium allows both together; here an episode that ended by its own rules was not cut short.
        truncated = not terminated and bool(truncated or (self.max_turns and self._turn >= self.max_turns))
        ended = terminated or truncated
        self._return += reward
        parts = info.get("reward_parts")
        if parts is None:
            parts = {OUTCOME if ended else "step": reward} if reward else {}
        text, info = self._described(text, info, dict(parts), terminated, ended)
        return text, reward, terminated, truncated, info

    def _step_result(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        result, expected = self.env.step(action), "observation, reward, terminated, truncated, info"
        if not isinstance(result, tuple) or len(result) != 5 or not isinstance(result[4], Mapping):
            raise wrong_return(self.env, "step", result, expected)
        text, reward, terminated, truncated, info = result
        if isinstance(reward, str) or not hasattr(reward, "__float__"):
            raise wrong_return(self.env, "step", reward, "a number", "as the reward ")
        checked_flags(self.env, info)
        return text, reward, terminated, truncated, dict(info)

    def _described(
        self, text: str, info: dict[str, Any], parts: dict[str, float], terminated: bool, ended: bool
    ) -> tuple[str, dict[str, Any]]:
        checked_turn(Turn(text, parts))
        stable = {"turn": self._turn, "understood": info.get("format_valid", True), "anchor": text}
        described = {**stable, **info, "reward_parts": parts}
        flags = {key: described.pop(key) for key in SUCCESS_KEYS if key in described}
        if ended:
            described["success"] = self._success(flags, terminated)
        elif (actions := self._admissible(info)) is not None:
            described["admissible"] = actions
        # A refused action is answered from here, so what belonged to one turn alone must not linger.
        self._last = (text, {key: value for key, value in info.items() if key not in _OF_ONE_TURN})
        return text, described

    def _success(self, info: Mapping[str, Any], terminated: bool) -> bool | None:
        self.success_by = next((key for key in SUCCESS_KEYS if info.get(key) is not None), None)
        if self.success_by is not None:
            return bool(info[self.success_by])
        return None if math.isnan(self._return) else terminated and self._return > self.success_above

    def _admissible(self, info: Mapping[str, Any]) -> list[str] | None:
        listed = info.get("admissible")
        if listed is None and callable(method := offered(self.env, "admissible")):
            listed = method()
        if listed is None:
            return None
        actions = checked_actions(self.env, listed)
        for action in actions:
            refuse_excluded(self.action_space, "action", action, "the admissible ")
        return actions


def offered(env: gymnasium.Env, name: str, default: Any = None) -> Any:
    """Attribute of an environment or of a wrapper around it; the outermost counts."""
    return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else default
