"""ToolRL's reward of a turn: how near its tool calls come to those that the environment's expert would make now.

    R = scale · (6 · S / S_max - 3), or -3 · scale if the calls cannot be read
    S         = J(names) + Σ_g max_p [J(keys of g, keys of p) + Σ_k 1[g_k = p_k]]
    S_max     = 1 + Σ_g (1 + keys of g)

J is |A ∩ B| / |A ∪ B|; g runs over the expert's calls, p over the turn's calls of that name not matched before. Where
the expert would not call a tool, the turn gets nothing.

Source: Qian et al. 2025, arXiv 2504.13958, section 3.3. Differences: as in the authors' code
(verl/utils/reward_score/rlla.py), calls are matched greedily in the reference's order, where the paper takes the best
assignment, and J counts repeated names. The reference is the expert in the state that the turn found, where the paper
has one reply of a data set. The paper's reward of the reply's form (0 or 1) is left out: an environment sees no tags,
and ``invalid_penalty`` charges for what cannot be read.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import gymnasium
from pydantic import Field

from manyturn.envs.contract.registry import Named
from manyturn.envs.contract.turn_reward import WRAPPERS, TurnReward, WrapperMismatch
from manyturn.envs.tools.calls import BadCall, is_call, read_calls

Call = tuple[str, Mapping[str, Any]]
WORST, BEST = -3.0, 3.0


class ToolRLConfig(Named):
    name: Literal["toolrl"] = "toolrl"
    scale: float = Field(default=0.1, gt=0)
    """Factor of a reward that lies in [-3, 3]."""


@WRAPPERS.register(ToolRLConfig)
class ToolRL(TurnReward):
    """Pay each turn for the tool calls that it has in common with the expert's.

    It does not preserve the optimal policy: calls as good as the expert's are paid less, and more turns that agree with
    it earn more. It needs an environment with tools whose expert calls them.
    """

    preserves_optimal_policy = False
    part = "toolrl"

    def __init__(self, env: gymnasium.Env, config: ToolRLConfig):
        super().__init__(env)
        self.scale = config.scale
        self._wanted: list[Call] = []
        self._made: list[Call] | None = None
        if not getattr(self.unwrapped, "tools", ()) or not hasattr(self.unwrapped, "expert"):
            raise WrapperMismatch(
                f"{self.unwrapped} has no tools, or no expert to compare calls with: leave out the wrapper toolrl"
            )

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._wanted = _calls(self.unwrapped.expert()) or []  # type: ignore[attr-defined]
        self._made = _calls(action)
        return super().step(action)

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        if not self._wanted:
            return parts
        return self.add(parts, self.scale * (WORST if self._made is None else correctness(self._made, self._wanted)))


def _calls(action: str) -> list[Call] | None:
    """The calls of an action, none for text; None if they cannot be read."""
    if not is_call(action):
        return []
    try:
        return [(call.name, call.arguments) for call in read_calls(action)]
    except BadCall:
        return None


def correctness(made: Iterable[Call], expected: Iterable[Call]) -> float:
    """Score of the calls against the expected ones, in [-3, 3]; each is (name, arguments).

    >>> correctness([("look", {"at": 1})], [("look", {"at": 1})])
    3.0
    """
    made, expected = list(made), list(expected)
    if made == expected:
        return BEST
    score, most, left = _overlap([name for name, _ in expected], [name for name, _ in made]), 1.0, dict(enumerate(made))
    for name, arguments in expected:
        most += 1 + len(arguments)
        near = {i: _nearness(arguments, given) for i, (other, given) in left.items() if other == name}
        best = max(near, key=near.__getitem__, default=None)  # the first of equals
        if best is not None and near[best] > 0:
            score += near[best]
            del left[best]
    return (BEST - WORST) * score / most + WORST


def _overlap(one: list[str], two: list[str]) -> float:
    if one == two:
        return 1.0
    both = (Counter(one) & Counter(two)).total()
    return both / (len(one) + len(two) - both)


def _nearness(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> float:
    right = sum(1.0 for key, value in wanted.items() if key in given and given[key] == value)
    return _overlap(list(wanted), list(given)) + right
