"""Other weights for the parts of a reward."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import gymnasium
from pydantic import field_validator

from manyturn.envs.contract.registry import Named
from manyturn.envs.contract.turn import OUTCOME
from manyturn.envs.contract.turn_reward import WRAPPERS, TurnReward, WrapperMismatch


class PartWeightsWrapperConfig(Named):
    name: Literal["part_weights"] = "part_weights"
    weights: dict[str, float]
    """Factor of each part."""

    @field_validator("weights")
    @classmethod
    def _some_change(cls, weights: dict[str, float]) -> dict[str, float]:
        if all(weight == 1 for weight in weights.values()):
            raise ValueError("no weight differs from 1, so the wrapper has no effect")
        return weights


@WRAPPERS.register(PartWeightsWrapperConfig)
class PartWeights(TurnReward):
    """Multiply named parts by weights; a part without a weight stays as it is, a weight of 0 removes a part.

    It does not preserve the optimal policy: the weights are a new statement of what is wanted.

    A name that no part has is an error: immediately where the environment lists its ``part_names``; else at the end of
    an episode, when the name looks like a misspelt one, or when no weight has had an effect in 50 episodes.
    """

    preserves_optimal_policy = False
    PATIENCE: ClassVar[int] = 50

    def __init__(self, env: gymnasium.Env, config: PartWeightsWrapperConfig):
        super().__init__(env)
        self.weights = dict(config.weights)
        self._seen: set[str] = {OUTCOME, *_parts_of_wrappers(env)}
        self._episodes = 0
        listed = getattr(self.unwrapped, "part_names", None)
        if listed is not None:
            self._seen |= set(listed)
            unknown = sorted(set(self.weights) - self._seen)
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
