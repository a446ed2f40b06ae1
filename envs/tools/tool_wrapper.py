"""Base of the wrappers that stand between an agent and its tools."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.wrappers.reward_wrapper import (
    TurnReward,
    WrapperMismatch,
    joined_snapshot,
    parted_snapshot,
)
from manyturn.envs.tools.calls import BadCall, CallRequest, read_calls

_OF_A_SITUATION = ("admissible", "progress", "task", "split", "role")  # entries of info that are plain values


class ToolWrapper(TurnReward):
    """Change what tools answer, or answer in their place.

    A turn that the wrapper answers itself does not reach the environment, and counts towards the limit of turns. It is
    an observation without a reward, never an error of the environment.

    Attributes:
        first: the first observation of the episode.
        turn: turns that were taken, those of this wrapper included.
        own: plain values of the episode that decide what the wrapper does next; part of anchors and snapshots.

    Raises:
        WrapperMismatch: the environment has no tools, or no limit of turns.
    """

    preserves_optimal_policy = False

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        if not self.inner("tools", ()):
            raise WrapperMismatch(f"{self.unwrapped} has no tools, so {self.class_name()} has no effect: leave it out")
        if self.inner("max_turns", None) is None:
            raise WrapperMismatch(f"{self.unwrapped} has no limit of turns: set its max_turns for {self.class_name()}")
        self.first, self.own = "", dict[str, Any]()
        self._turn = self._extra = 0
        self._situation = dict[str, Any]()

    # ---- a wrapper overrides these ------------------------------------------------------------------------------

    def begin(self, info: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
        """Own values at the beginning of an episode."""
        return {}

    def instead(self, calls: Sequence[CallRequest], turn: int) -> str | None:
        """The answer to an action that tools shall not see; None lets it through."""
        return None

    def answered(self, text: str, calls: Sequence[CallRequest], info: dict[str, Any]) -> str:
        """Text that the agent reads in place of the tools' answer; entries of ``info`` may be changed."""
        return text

    def figures(self, success: bool) -> dict[str, float]:
        """Measures of an episode that has ended."""
        return {}

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        return parts

    def withheld(self) -> None:
        """Take note that this wrapper or one outside of it has answered an action itself."""
        if (inner := self.inner("withheld", None)) is not None:
            inner()

    @property
    def turn(self) -> int:
        return self._turn

    # ---- machinery ----------------------------------------------------------------------------------------------

    def expert(self) -> str:
        """The action of the environment's expert."""
        return self.inner("expert", None)()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        text, info = self.env.reset(seed=seed, options=options)
        self.first, self._extra = text, 0
        self.own = self.begin(info, seed)
        return text, self._described(text, text, info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        calls = calls_of(action)
        turn = self._turn
        if (answer := self.instead(calls, turn) if calls else None) is not None:
            self._extra += 1
            self.withheld()
            quiet = {"turn": turn + 1 - self._extra, "format_valid": True, "understood": True, "reward_parts": {}}
            text, given, reward, terminated, truncated = answer, "", 0.0, False, False
            info = {**self._situation, **quiet}
        else:
            text, _, terminated, truncated, info = self.env.step(action)
            given, info = text, dict(info)
            if calls and not (terminated or truncated):
                text = self.answered(text, calls, info)
            self.noticed(calls)
            parts = self.reward_parts(dict(info["reward_parts"]), terminated or truncated, info)
            reward, info["reward_parts"] = float(sum(parts.values())), parts
        info = self._described(text, given, info)
        if not terminated and not truncated and info["turn"] >= self.inner("max_turns", 0):
            truncated, info["success"] = True, False
        if terminated or truncated:
            figures = self.figures(bool(info["success"]))
            info["measures"] = {**info.get("measures", {}), **figures}
        return text, reward, terminated, truncated, info

    def noticed(self, calls: Sequence[CallRequest]) -> None:
        """Take note of calls that tools have seen."""

    def _described(self, text: str, given: str, info: dict[str, Any]) -> dict[str, Any]:
        """``info`` of a turn of this wrapper, whose text is not what the environment has given."""
        info = {**info, "turn": info["turn"] + self._extra}
        plain = digest(info["anchor"])
        self._turn = info["turn"]
        self._situation = {name: info[name] for name in _OF_A_SITUATION if name in info} | {"anchor": plain}
        changed = "" if text == given else text
        info["anchor"] = digest(plain, self.own, changed)
        if "anchor_text" in info or changed:
            info["anchor_text"] = text
        return info

    def snapshot(self) -> bytes:
        return joined_snapshot([self.first, self.own, self._turn, self._extra, self._situation], super().snapshot())

    def restore(self, data: bytes) -> None:
        (self.first, self.own, self._turn, self._extra, self._situation), inner = parted_snapshot(data)
        super().restore(inner)


def calls_of(action: str) -> list[CallRequest]:
    """Calls that an action asks for; none if it cannot be read."""
    try:
        return read_calls(action)
    except BadCall:
        return []


def with_note(text: str, name: str, note: str) -> str:
    """A tool's answer with a note: a further field of a JSON object, or a further line.

    >>> with_note('{"id": "W7"}', "note", "Hello"), with_note("done", "note", "Hello")
    ('{"id": "W7", "note": "Hello"}', 'done\\nHello')
    """
    record = record_of(text)
    return f"{text}\n{note}" if record is None else json.dumps({**record, name: note}, ensure_ascii=False)


def record_of(text: str) -> dict[str, Any] | None:
    """The JSON object that a tool has answered; None if it answered anything else."""
    try:
        value = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
