"""tau2-bench as an environment."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.envs.benchmarks.tau.rule_customer import CustomerOptions
from manyturn.envs.benchmarks.tau.service_env import ServiceEnv
from manyturn.envs.benchmarks.tau.v2.domains import COUNTS, load
from manyturn.envs.benchmarks.tau.v2.model_customer import model_customer, scenario
from manyturn.envs.benchmarks.tau.v2.telecom.phone_customer import PhoneCustomer
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.calls import is_call
from manyturn.envs.tools.toolset import Answered
from manyturn.envs.users.endpoint.llm_client import ModelOptions
from manyturn.envs.users.protocol import NOTHING, Heard, User, UserError
from manyturn.envs.users.user_env import Maker

MOST_ERRORS = 10  # failing calls that end an episode
DONE = "done"


class SoloOptions(Options):
    """There is nothing to choose."""


class AbsentUser(User):
    """The user of solo mode, in which the agent holds the customer's tools: no environment calls it."""

    name = "solo"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        return ""

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        raise UserError("in solo mode there is nobody to hear")

    def save(self) -> Any:
        return None

    def load(self, state: Any) -> None:
        pass


class Tau2Bench(ServiceEnv):
    """tau2-bench (Barres, Dong, Ray, Si and Narasimhan 2025), played natively from its official files.

    Task:
        An official task. In telecom the desk has 13 tools and the customer's phone 30. Without a user the agent has
        them all and works from a ticket: solo mode. With one, the customer holds the phone.
    Observation:
        The ticket or the customer's words, and what tools return. A customer uses its own tools before it answers, as
        often as it likes; the agent learns what it says. ``info["user_rounds"]`` counts these rounds.
    Actions:
        JSON tool calls, or text for the customer. In solo mode text is invalid, and ``done`` ends the work.
    Reward:
        The official product of the task's parts, without those that only a language model could judge.
        ``info["not_judged"]`` names them; 40 of the 114 retail tasks have such a part.
    End:
        The customer leaves, or ``done`` in solo mode. Ten failing calls end an episode without reward, the customer's
        among them. So does the turn limit, where a round of the customer's calls counts like a turn.
    Splits:
        train and test; telecom has small too.
    Expert:
        Makes the reference solution's calls. It asks a customer by rules for the customer's part of it, tool by tool.
    Floors:
        Doing nothing succeeds in 4 of 40 retail test and 7 of 74 train tasks (10 %), in 7 of 20 airline test and 16 of
        30 train tasks (46 %), and in no telecom task. Report this floor next to every score.

    Args:
        split: of the domain.
        data: a checkout of sierra-research/tau2-bench at a2c0247.
        domain: ``telecom``, ``retail`` or ``airline``.
        user: who plays the customer, see ``UserEnv``; default: none in telecom, else by rules (``rule_customer.py``, in
            telecom ``v2/phone_customer.py``), with whom scores are not those of the paper, whose customer is a language
            model. A model reads the official guidelines if ``data`` is a checkout, and ``info["user"]`` says so.
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
        kind = user if isinstance(user, str) or user is None else user.get("kind")
        self._solo = domain == "telecom" and kind in (None, "solo")
        if self._solo:
            self.rules = (
                'Each turn, call tools by answering with nothing but {"name": TOOL, "arguments": {...}}, or a list of '
                "several. You cannot talk to the customer. When the ticket is solved, call done."
            )
        super().__init__(load(data, domain, pinned), split, user, max_turns, most_calls=16)

    def makers(self) -> Mapping[str, Maker]:
        tools, writes = self.service.user_schemas, self.service.writes
        own = {
            "solo": Maker(SoloOptions, lambda options: AbsentUser()),
            "agenda": Maker(CustomerOptions, lambda options: PhoneCustomer(options, tools, writes)),
        }
        model = Maker(ModelOptions, lambda made: model_customer(made, self.brief, self.service.guidelines, tools))
        return {**(own if tools else super().makers()), "model": model}

    def brief(self, task: Task) -> str:
        return scenario(task.params)

    def policy(self) -> str:
        return self.service.solo_policy if self._solo else self.service.policy

    def schemas(self) -> Sequence[Any]:
        return [*self.service.schemas, *self.service.user_schemas, _DONE] if self._solo else self.service.schemas

    def user_schemas(self) -> Sequence[Any]:
        return () if self._solo else self.service.user_schemas

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
        if self._errors >= MOST_ERRORS:
            return self.fail(f"{turn.text}\nToo many errors.")
        return self.fail(f"{turn.text}\nToo many messages.") if self._over(turn) else turn

    def _over(self, turn: Turn) -> bool:
        """True if the customer's calls have used up the remaining turns; ``step`` counts the agent's own."""
        spent = self.turn + 1 + self._rounds
        return spent > self.max_turns if turn.terminated else spent >= self.max_turns > self.turn + 1

    def notes(self) -> Mapping[str, Any]:
        rounds = {"user_rounds": self._rounds} if self._hands.schemas else {}
        return {**super().notes(), **rounds, "not_judged": list(self.task.params["not_judged"])}

    def expert(self) -> str:
        action = super().expert()
        return action if is_call(action) or not self._solo else _DONE_CALL

    def solve(self, gold: Mapping[str, Any]) -> str:
        if self._solo or gold["by"] != "user":
            return super().solve(gold)
        arguments = ", ".join(f'{name}="{value}"' for name, value in gold["arguments"].items())
        return f"Please do this on your phone: {gold['name']}({arguments})"


_DONE = {
    "type": "function",
    "function": {
        "name": DONE,
        "description": "End your work when the ticket is solved.",
        "parameters": {"type": "object", "properties": {}, "required": []},
    },
}
_DONE_CALL = '{"name": "done", "arguments": {}}'
