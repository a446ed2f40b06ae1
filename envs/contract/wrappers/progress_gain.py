"""Progress beyond the best so far, paid for good."""

import struct
from collections.abc import Mapping
from typing import Any, Literal

import gymnasium
from pydantic import Field

from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, TurnReward

_BEST = struct.Struct("<d")


class ProgressGainConfig(Named):
    name: Literal["progress_gain"] = "progress_gain"
    scale: float = Field(default=1.0, gt=0)
    """Reward for the full way, from no progress to 1."""


@WRAPPERS.register(ProgressGainConfig)
class ProgressGain(TurnReward):
    """Pay a turn for progress that the episode did not have before: ``scale * max(0, P(s') - best)``.

    P is ``info["progress"]``, and ``best`` the highest of the episode so far, its start included. Nothing is taken
    back: an episode earns ``scale * (highest P - P(s_0))`` however it ends, going back and forth earns nothing more,
    and the turns that came farther are told from the others. So it does what ``progress_reward`` cannot do where
    episodes or situations of a task are compared, which takes the same off everybody.

    It does not preserve the optimal policy: one that comes near the goal and stays there is paid for it. Keep ``scale``
    below what the goal itself earns.
    """

    preserves_optimal_policy = False
    part = "progress_gain"

    def __init__(self, env: gymnasium.Env, config: ProgressGainConfig):
        super().__init__(env)
        self.scale, self._best = config.scale, 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        text, info = self.env.reset(seed=seed, options=options)
        self._best = self.progress(info.get("progress"))
        return text, info

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        gain = max(0.0, self.progress(info.get("progress")) - self._best)
        self._best += gain
        return self.add(parts, self.scale * gain)

    def snapshot(self) -> bytes:
        return _BEST.pack(self._best) + super().snapshot()

    def restore(self, data: bytes) -> None:
        super().restore(data[_BEST.size :])
        (self._best,) = _BEST.unpack(data[: _BEST.size])
