"""tau2-bench as an environment."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.envs.task import Task
from manyturn.envs.tau.service_env import ServiceEnv
from manyturn.envs.tau.solo import Nobody, SoloOptions
from manyturn.envs.tau.v2.service import COUNTS, load
from manyturn.envs.tools.calls import is_call
from manyturn.envs.tools.toolset import Answered
from manyturn.envs.turn import Turn
from manyturn.envs.users.user_env import Maker

MOST_ERRORS = 10  # failing calls that end an episode
DONE = "done"


class Tau2Bench(ServiceEnv):
    """tau2-bench (Barres, Dong, Ray, Si and Narasimhan 2025), played natively from its official files.

    ``telecom`` is solo mode: a ticket, the desk's 13 tools and the customer's 30, no customer and no judge; the tool
    ``done`` ends it. In ``retail`` and ``airline`` the customer ends it. The reward is the official product of the
    task's parts, without those that only a language model could judge: ``info["not_judged"]`` names them (40 of the
    114 retail tasks have such a part). Ten failing calls end an episode without reward, as does the turn limit.

    An agent that does nothing succeeds in 4 of 40 retail test and 7 of 74 train tasks (10 %), 7 of 20 airline test and
    16 of 30 train tasks (46 %), and in no telecom task: report this floor beside every score.

    Args:
        split: ``train`` or ``test``; telecom has ``small`` too.
        data: a checkout of sierra-research/tau2-bench at a2c0247.
        domain: ``telecom``, ``retail`` or ``airline``.
        user: who plays the customer, see ``UserEnv``; default: nobody in telecom, else by rules (``customer.py``),
            with whom scores are not those of the paper, whose customer is a language model.
        max_turns: default 100, the official limit of 200 messages.
        pinned: refuse files that are not those of the release.
    """

    max_turns = 100

    def __init__(
        self,
        split: str = "test",
        data: str | Path | None = None,
        domain: str = "telecom",
        user: str | Mapping[str, Any] | None = None,
        max_turns: int | None = None,
        pinned: bool = True,
    ):
        if domain not in COUNTS:
            raise ValueError(f"no domain {domain!r}: choose {', '.join(COUNTS)}")
        self._solo = domain == "telecom"
        if self._solo and user not in (None, "solo"):
            raise ValueError("telecom is played in solo mode, without a user: leave out user")
        if self._solo:
            self.rules = (
                'Each turn, call tools by answering with nothing but {"name": TOOL, "arguments": {...}}, or a list of '
                "several. You cannot talk to the customer. When the ticket is solved, call done."
            )
        super().__init__(load(data, domain, pinned), split, user, max_turns, most_calls=16)

    def makers(self) -> Mapping[str, Maker]:
        return {"solo": Maker(SoloOptions, lambda options: Nobody())} if self._solo else super().makers()

    def schemas(self) -> Sequence[Any]:
        return [*self.service.schemas, *([_DONE] if self._solo else [])]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        opening = super().begin(task, rng)
        return f"<ticket>\n{task.params['ticket']}\n</ticket>" if self._solo else opening

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return "Done." if self._solo and name == DONE else super()._call(name, arguments)

    def leaves(self, answered: Answered) -> bool:
        return self._solo and any(call.name == DONE for call in answered.calls)

    def respond(self, action: str) -> Turn:
        if self._solo and not is_call(action):
            return self.invalid("Error: there is nobody to talk to; call a tool")
        turn = super().respond(action)
        if self._errors >= MOST_ERRORS and not turn.terminated:
            return self.fail(f"{turn.text}\nToo many errors.")
        return turn

    def notes(self) -> Mapping[str, Any]:
        return {**super().notes(), "not_judged": list(self.task.params["not_judged"])}

    def expert(self) -> str:
        action = super().expert()
        return action if is_call(action) or not self._solo else _DONE_CALL


_DONE = {
    "type": "function",
    "function": {
        "name": DONE,
        "description": "End your work when the ticket is solved.",
        "parameters": {"type": "object", "properties": {}, "required": []},
    },
}
_DONE_CALL = '{"name": "done", "arguments": {}}'
