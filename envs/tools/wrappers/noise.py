"""Noise in what tools answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium
from numpy.random import Generator
from pydantic import Field

from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS
from manyturn.envs.tools.calls import CallRequest
from manyturn.envs.tools.tool_wrapper import ToolWrapper, record_of, with_note

NoiseKind = Literal["failure", "loss", "distraction"]
_DISTRACTIONS = (
    "Related: how to reset a router",
    "Related: opening hours change on public holidays",
    "Advertisement: ask for our new yearly plan",
    "Related: a customer with a similar name lives in Oslo",
    "Log: cache refreshed, 0 warnings",
    "Related: the form for complaints has moved",
)


class NoiseConfig(Named):
    name: Literal["noise"] = "noise"
    rate: float = Field(default=0.2, gt=0, le=1)
    """Probability that an answer is disturbed."""
    kinds: tuple[NoiseKind, ...] = Field(default=("failure", "loss", "distraction"), min_length=1)
    """Kinds of noise, drawn evenly: `failure` does not run the call and says so, `loss` leaves out a field,
    `distraction` adds something irrelevant."""


@WRAPPERS.register(NoiseConfig)
class ToolNoise(ToolWrapper):
    """Disturb answers of tools: failures that pass, lost fields, irrelevant additions, as in NoisyBench (2601.07226).

    Noise is chance: it derives from the episode's seed and the turn. A failed call was not run, and can be made again.
    A lost field or an addition changes what the agent reads, and nothing else. The measure ``disturbed`` counts them.

    It does not preserve the optimal policy: where tools fail, it can be best to look twice.
    """

    def __init__(self, env: gymnasium.Env, config: NoiseConfig):
        super().__init__(env)
        self._config = config

    def begin(self, info: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
        return {"disturbed": 0, "key": [info["task"], seed or 0]}

    def instead(self, calls: Sequence[CallRequest], turn: int) -> str | None:
        kind, _ = self._drawn(turn)
        if kind != "failure":
            return None
        self.own["disturbed"] += 1
        return f"Error: {calls[0].name[:80]} did not answer in time. Try again."

    def answered(self, text: str, calls: Sequence[CallRequest], info: dict[str, Any]) -> str:
        kind, rng = self._drawn(self.turn)
        if kind is None:
            return text
        record = record_of(text) if kind == "loss" else None
        if kind == "loss" and (record is None or len(record) < 2):
            return text
        self.own["disturbed"] += 1
        if record is not None:
            lost = sorted(record)[int(rng.integers(len(record)))]
            return json.dumps({name: value for name, value in record.items() if name != lost}, ensure_ascii=False)
        return with_note(text, "related", _DISTRACTIONS[int(rng.integers(len(_DISTRACTIONS)))])

    def figures(self, success: bool) -> dict[str, float]:
        return {"disturbed": float(self.own["disturbed"])}

    def _drawn(self, turn: int) -> tuple[NoiseKind | None, Generator]:
        rng = generator("noise", *self.own["key"], turn)
        if rng.random() >= self._config.rate:
            return None, rng
        return self._config.kinds[int(rng.integers(len(self._config.kinds)))], rng
