"""Turn-level rewards as Gymnasium wrappers: each adds or changes named parts of a turn's reward.

Parts always sum to the reward. Recipes name wrappers: ``wrap(env, [{"name": "turn_cost", "cost": 0.01}])``. Each
is a file in ``wrappers/``; a plugin brings its own like this::

    class EarlyConfig(Named):
        name: Literal["early"] = "early"
        bonus: float = Field(default=0.5, gt=0)

    @WRAPPERS.register(EarlyConfig)
    class Early(TurnReward):
        preserves_optimal_policy = False
        part = "early"

        def __init__(self, env: gymnasium.Env, config: EarlyConfig):
            super().__init__(env)
            self.bonus = config.bonus

        def reward_parts(self, parts, ended, info):
            return self.add(parts, self.bonus) if ended and info["turn"] < 5 else parts
"""

import abc
import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import gymnasium
from pydantic import ValidationError

from manyturn.envs.contract.options.options import ConfigError, one_line
from manyturn.envs.contract.options.registry import Named, Registry


class WrapperMismatch(ValueError):
    """The wrapper does not fit this environment or has no effect on it: a fault of the recipe, not of the episode."""


class TurnReward(gymnasium.Wrapper[str, str, str, str], abc.ABC):
    """Base of the wrappers: rewrites ``info["reward_parts"]`` and makes the reward their sum.

    Attributes:
        preserves_optimal_policy: True if a policy that is optimal with the wrapper is optimal without it; the
            docstring says why.
        part: the name of the part that the wrapper adds, if it adds one.
    """

    preserves_optimal_policy: ClassVar[bool]
    part: str | None = None

    @abc.abstractmethod
    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        """The parts of this turn, given those from inside."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        text, _, terminated, truncated, info = self.env.step(action)
        if "reward_parts" not in info:
            raise WrapperMismatch(
                f"{self.class_name()} needs info['reward_parts'], which {self.unwrapped} does not give: "
                "wrap it in manyturn.envs.hosting.handle.gymnasium_adapter.GymnasiumAdapter first"
            )
        parts = self.reward_parts(dict(info["reward_parts"]), terminated or truncated, info)
        return text, float(sum(parts.values())), terminated, truncated, {**info, "reward_parts": parts}

    def add(self, parts: dict[str, float], value: float) -> dict[str, float]:
        """The parts and the wrapper's own; raises if something else has taken its name."""
        assert self.part is not None
        if self.part in parts:
            raise WrapperMismatch(
                f"there is a reward part {self.part!r} already: leave {self.class_name()} out, it would count it twice"
            )
        return {**parts, self.part: value}

    def inner(self, name: str, default: Any = None) -> Any:
        """An attribute of the wrapped environment."""
        return self.env.get_wrapper_attr(name) if self.env.has_wrapper_attr(name) else default

    def progress(self, value: float | None) -> float:
        """The progress that the environment reports. Raises WrapperMismatch where it reports none."""
        if value is None:
            raise WrapperMismatch(
                f"{self.unwrapped} reports no progress, so {self.class_name()} has no effect: "
                "override progress() in the environment, or leave the wrapper out"
            )
        return float(value)

    def snapshot(self) -> bytes:
        """The environment's snapshot."""
        return self.env.get_wrapper_attr("snapshot")()

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot."""
        self.env.get_wrapper_attr("restore")(data)


_LENGTH = 4  # bytes of the number before a snapshot


def joined_snapshot(own: Any, inner: bytes) -> bytes:
    """A snapshot of a wrapper's own plain values and of what it wraps."""
    head = json.dumps(own).encode()
    return len(head).to_bytes(_LENGTH, "big") + head + inner


def parted_snapshot(data: bytes) -> tuple[Any, bytes]:
    """Inverse of ``joined_snapshot``."""
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "big")
    return json.loads(data[_LENGTH:end]), data[end:]


WRAPPERS: Registry[gymnasium.Env] = Registry(
    "wrapper", "manyturn.envs.contract.wrappers", "manyturn.envs.tools.wrappers"
)


def wrap(env: gymnasium.Env, wrappers: Iterable[Any]) -> gymnasium.Env:
    """Put wrappers around an environment, the first one innermost.

    Args:
        env: an environment whose ``info`` has ``reward_parts``.
        wrappers: each a name of ``WRAPPERS``, a table with a name and options, or the options.

    Raises:
        ValueError: there is no such wrapper, or one of its options is wrong or has no effect.
        WrapperMismatch: the wrapper has no effect on this environment.
    """
    for config in map(_parsed, wrappers):
        env = WRAPPERS.apply(config, env)
    return env


def plain_wrappers(wrappers: Iterable[Any]) -> list[dict[str, Any]]:
    """The same wrappers as plain JSON values, all their options given; errors as for ``wrap``."""
    return [config.model_dump(mode="json") for config in map(_parsed, wrappers)]


def _parsed(wrapper: Any) -> Named:
    try:
        return WRAPPERS.parse(wrapper)
    except ValidationError as error:
        name = wrapper["name"] if isinstance(wrapper, Mapping) else str(wrapper)
        raise ConfigError(one_line(error, name)) from None
