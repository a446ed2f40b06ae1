"""Turn-level rewards as Gymnasium wrappers: each adds or changes named parts of a turn's reward.

A wrapper knows whether it preserves the optimal policy (``preserves_optimal_policy``) and its docstring says why.
Parts always sum to the reward. Recipes name wrappers: ``wrap(env, [{"name": "invalid_penalty", "coef": 0.1}])``.
"""

import abc
import difflib
import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium

from manyturn.envs.contract.options import unknown
from manyturn.envs.contract.turn import OUTCOME


class WrapperMismatch(ValueError):
    """The wrapper does not fit this environment or has no effect on it: a fault of the recipe, not of the episode."""


class TurnReward(gymnasium.Wrapper[str, str, str, str], abc.ABC):
    """Base of the wrappers: rewrites ``info["reward_parts"]`` and makes the reward their sum.

    Attributes:
        preserves_optimal_policy: whether a policy that is optimal with the wrapper is optimal without it.
        part: the name of the part that the wrapper adds, if it adds one.
    """

    preserves_optimal_policy: ClassVar[bool]
    part: ClassVar[str | None] = None

    @abc.abstractmethod
    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        """The parts of this turn, given those from inside."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        text, _, terminated, truncated, info = self.env.step(action)
        if "reward_parts" not in info:
            raise WrapperMismatch(
                f"{self.class_name()} needs info['reward_parts'], which {self.unwrapped} does not give: "
                "wrap it in manyturn.envs.hosting.foreign.Foreign first"
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

    def snapshot(self) -> bytes:
        """The environment's snapshot."""
        return self.env.get_wrapper_attr("snapshot")()

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot."""
        self.env.get_wrapper_attr("restore")(data)


def _positive(wrapper: str, **options: float) -> None:
    for name, value in options.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{wrapper}: {name} = {value} has no meaning or no effect; give a number above 0")


class InvalidPenalty(TurnReward):
    """Subtract ``coef`` from each turn whose action meant nothing (``info["valid"]`` is False).

    It does not preserve the optimal policy where an invalid action is worth a turn: because it passes time, or
    because its answer tells something. Where an invalid action never helps, the optimum stays.

    Args:
        coef: reward taken away, above 0.
    """

    preserves_optimal_policy = False
    part = "invalid"

    def __init__(self, env: gymnasium.Env, coef: float = 0.1):
        _positive("invalid_penalty", coef=coef)
        super().__init__(env)
        self.coef = coef

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        return parts if info["valid"] else self.add(parts, -self.coef)


class TurnCost(TurnReward):
    """Subtract ``cost`` from every turn, so that shorter episodes are better.

    It does not preserve the optimal policy: of two ways to the goal it prefers the shorter, and a goal that costs
    more turns than it is worth is given up.

    Args:
        cost: reward taken away each turn, above 0.
    """

    preserves_optimal_policy = False
    part = "turn"

    def __init__(self, env: gymnasium.Env, cost: float = 0.01):
        _positive("turn_cost", cost=cost)
        super().__init__(env)
        self.cost = cost

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        return self.add(parts, -self.cost)


class ProgressReward(TurnReward):
    """Potential-based shaping (Ng, Harada and Russell 1999): add ``scale * (gamma * P(s') - P(s))`` to every turn.

    A cut from outside the environment (agent.max_context, rollout.max_turns) is not seen here, so that what was paid
    until then stays paid: keep those limits out of reach.

    The potential P is ``info["progress"]``, and 0 once the episode has ended. It preserves the optimal policy of a
    learner that discounts turns by the same ``gamma``: summed over an episode the discounted parts give
    ``-scale * P(s_0)``, whatever the policy does. An episode cut by ``max_turns`` counts as ended (Grzes 2017),
    since the estimators of group comparison do not bootstrap; a learner that does would need P(s') there.

    Args:
        gamma: the learner's discount by turn, in (0, 1].
        scale: factor of the potential, above 0.
    """

    preserves_optimal_policy = True
    part = "progress"

    def __init__(self, env: gymnasium.Env, gamma: float = 1.0, scale: float = 1.0):
        _positive("progress_reward", gamma=gamma, scale=scale)
        if gamma > 1:
            raise ValueError(f"progress_reward: gamma = {gamma} is above 1")
        super().__init__(env)
        self.gamma, self.scale = gamma, scale
        self._potential = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        text, info = self.env.reset(seed=seed, options=options)
        self._potential = self._progress(info.get("progress"))
        return text, info

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        before, self._potential = self._potential, 0.0 if ended else self._progress(info.get("progress"))
        return self.add(parts, self.scale * (self.gamma * self._potential - before))

    def restore(self, data: bytes) -> None:
        super().restore(data)
        self._potential = self._progress(self.unwrapped.progress())  # type: ignore[attr-defined]

    def _progress(self, value: float | None) -> float:
        if value is None:
            raise WrapperMismatch(
                f"{self.unwrapped} reports no progress, so progress_reward has no effect: "
                "override progress() in the environment, or leave the wrapper out"
            )
        return float(value)


class PartWeights(TurnReward):
    """Multiply named parts by weights; a part without a weight stays as it is, a weight of 0 removes a part.

    It does not preserve the optimal policy: the weights are a new statement of what is wanted.

    A name that no part has is an error: at once where the environment lists its ``part_names``; else at the end of
    an episode, when the name looks like a misspelt one, or when no weight has had an effect in 50 episodes.

    Args:
        weights: part -> factor.
    """

    preserves_optimal_policy = False
    PATIENCE: ClassVar[int] = 50

    def __init__(self, env: gymnasium.Env, weights: Mapping[str, float]):
        if all(w == 1 for w in weights.values()):
            raise ValueError("part_weights: no weight differs from 1, so the wrapper has no effect")
        bad = [name for name, w in weights.items() if not math.isfinite(w)]
        if bad:
            raise ValueError(f"part_weights: the weight of {bad[0]!r} is {weights[bad[0]]}")
        super().__init__(env)
        self.weights = dict(weights)
        self._seen: set[str] = {OUTCOME, *_parts_of_wrappers(env)}
        self._episodes = 0
        listed = getattr(self.unwrapped, "part_names", None)
        if listed is not None:
            self._seen |= set(listed)
            unknown = sorted(set(weights) - self._seen)
            if unknown:
                raise self._mismatch(unknown)
        self._listed = listed is not None

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        self._seen.update(parts)
        if ended and not self._listed:
            self._doubt()
        return {name: value * self.weights.get(name, 1.0) for name, value in parts.items()}

    def _doubt(self) -> None:
        self._episodes += 1
        unseen = [name for name in self.weights if name not in self._seen]
        others = self._seen - set(self.weights)
        misspelt = [name for name in unseen if difflib.get_close_matches(name, others, n=1, cutoff=0.75)]
        if misspelt:
            raise self._mismatch(misspelt)
        if len(unseen) == len(self.weights) and self._episodes >= self.PATIENCE:
            raise self._mismatch(unseen)

    def _mismatch(self, unknown: Sequence[str]) -> WrapperMismatch:
        return WrapperMismatch(
            f"part_weights names {', '.join(map(repr, unknown))}, but the reward parts seen are "
            f"{', '.join(sorted(self._seen))}; parts that are rare are listed in the environment's part_names"
        )


def _parts_of_wrappers(env: gymnasium.Env) -> Iterable[str]:
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TurnReward) and env.part is not None:
            yield env.part
        env = env.env


WRAPPERS: dict[str, type[TurnReward]] = {
    "invalid_penalty": InvalidPenalty,
    "turn_cost": TurnCost,
    "progress_reward": ProgressReward,
    "part_weights": PartWeights,
}


def wrap(env: gymnasium.Env, wrappers: Iterable[Mapping[str, Any]]) -> gymnasium.Env:
    """Put wrappers around an environment, the first one innermost.

    Args:
        env: an environment whose ``info`` has ``reward_parts``.
        wrappers: each a name of ``WRAPPERS`` under ``name``, and the options of its constructor.
    """
    for config in wrappers:
        options = dict(config)
        name = options.pop("name", None)
        if name not in WRAPPERS:
            raise ValueError(unknown("wrapper", name, WRAPPERS))
        allowed = {k: p for k, p in inspect.signature(WRAPPERS[name]).parameters.items() if k != "env"}
        for option in options:
            if option not in allowed:
                raise ValueError(unknown(f"{name} option", option, allowed))
        for option, parameter in allowed.items():
            if option not in options and parameter.default is inspect.Parameter.empty:
                raise ValueError(f"{name} needs the option {option!r}")
        env = WRAPPERS[name](env, **options)
    return env
