"""A ``gymnasium.Env`` of strings that knows nothing of this project, made to speak like a ``TextEnv``."""

from typing import Any

import gymnasium

from manyturn.envs.contract.turn import OUTCOME


class Foreign(gymnasium.Wrapper[str, str, str, str]):
    """Adds the stable keys of ``info`` and lets no action reach the environment that its action space excludes.

    Such an action is answered with the last observation, ``valid`` False and reward 0, and counts as a turn. An
    episode that reaches the step limit of the environment's registration, or its own ``max_turns``, is truncated.
    """

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        limit = getattr(env.unwrapped, "max_turns", None) or (env.spec.max_episode_steps if env.spec else None)
        self.max_turns: int | None = limit
        self._last: tuple[str, dict[str, Any]] = ("", {})
        self._turn = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        text, info = self.env.reset(seed=seed, options=options)
        self._turn = 0
        return self._described(text, info, {}, ended=False)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._turn += 1
        if self.action_space.contains(action):
            text, raw, terminated, truncated, info = self.env.step(action)
            reward, terminated = float(raw), bool(terminated)
        else:
            (text, info), reward, terminated, truncated = self._last, 0.0, False, False
            info = {**info, "valid": False, "reward_parts": {}}
        # Gymnasium allows both together; here an episode that ended by its own rules was not cut short.
        truncated = not terminated and bool(truncated or (self.max_turns and self._turn >= self.max_turns))
        ended = terminated or truncated
        parts = info.get("reward_parts")
        if parts is None:
            parts = {OUTCOME if ended else "step": reward} if reward else {}
        text, info = self._described(text, info, dict(parts), ended)
        return text, reward, terminated, truncated, info

    def _described(
        self, text: str, info: dict[str, Any], parts: dict[str, float], ended: bool
    ) -> tuple[str, dict[str, Any]]:
        known = {"turn": self._turn, "valid": True, "anchor": text}
        described = {**known, **info, "reward_parts": parts}
        success = described.pop("success", described.pop("is_success", None))
        if ended and success is not None:
            described["success"] = bool(success)
        # A refused action is answered from here, so what belonged to one turn alone must not linger.
        self._last = (text, {k: v for k, v in info.items() if k not in ("valid", "reward_parts", "turn")})
        return text, described
