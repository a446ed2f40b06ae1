"""An agent at a service desk: it talks with a customer and calls tools."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.benchmarks.tau.agent_tools import tool
from manyturn.envs.benchmarks.tau.domain import AgentCall, Deeds, Service, all_said
from manyturn.envs.benchmarks.tau.rule_customer import Customer, CustomerOptions
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.calls import call_text, is_call
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Answered, Call, Toolset
from manyturn.envs.users.llm_user import GREETING
from manyturn.envs.users.protocol import Heard, UserError
from manyturn.envs.users.tool_use import spoken
from manyturn.envs.users.user_env import Maker, UserEnv

TRANSFER = "transfer_to_human_agents"


class ServiceEnv(UserEnv):
    """Base of the environments of tau-bench and tau2-bench.

    An action is a tool call, ``{"name": ..., "arguments": {...}}``, or else text for the customer. A customer that has
    tools of its own may call them before it answers, which the agent does not see. The outcome is paid
    when the customer leaves: the product of the parts that ``info["parts"]`` names then, each 0 or 1. Anchor: task,
    records that were changed, and the observation.

    Args:
        service: the domain.
        split: of its tasks.
        user: who plays the customer, see ``UserEnv``; default: by rules.
        max_turns: default of the class.
        most_calls: tool calls that one action may make.
    """

    part_names = ()
    harmless = (*UserEnv.harmless, "domain", "user:agenda", "user:solo", "pinned")
    rules = (
        "Each turn, either write to the customer, or call a tool by answering with nothing but "
        '{"name": TOOL, "arguments": {...}}. The customer does not see calls and their results.'
    )

    def __init__(
        self,
        service: Service,
        split: str,
        user: str | Mapping[str, Any] | None = None,
        max_turns: int | None = None,
        most_calls: int = 1,
    ):
        self.service = service
        self.splits = tuple(service.tasks)  # those of the domain
        super().__init__(split, user, max_turns)
        # a model is told what the official one is told, and nothing of gold
        self._by_rules = self.user.name.removeprefix("replay of ").startswith("agenda")
        self._hands = Toolset((tool(schema, self._user_call) for schema in self.user_schemas()), most_calls=1)
        self._toolset = Toolset((tool(schema, self._call) for schema in self.schemas()), most_calls)
        self.tools = self._toolset.schemas
        self.instructions = with_tools(f"{self.policy().strip()}\n\n{self.rules}", self.tools)

    # ---- for the classes below ------------------------------------------------------------------------------

    def schemas(self) -> Sequence[Any]:
        """The tools that the agent has."""
        return self.service.schemas

    def user_schemas(self) -> Sequence[Any]:
        """The tools that the customer has."""
        return self.service.user_schemas

    def policy(self) -> str:
        """The agent's policy."""
        return self.service.policy

    def leaves(self, answered: Answered) -> bool:
        """True if calls that were just answered end the episode."""
        return False

    def makers(self) -> Mapping[str, Maker]:
        writes = self.service.writes
        return {"agenda": Maker(CustomerOptions, lambda options: Customer(options, writes))}

    def brief(self, task: Task) -> str:
        scenario = task.params["scenario"]
        if isinstance(scenario, str):
            return scenario
        return "\n\n".join(f"{name.replace('_', ' ')}: {text}" for name, text in scenario.items() if text)

    # ---- the episode ----------------------------------------------------------------------------------------

    def tasks(self, split: str) -> Sequence[Task]:
        return self.service.tasks[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._desk = self.service.open(task)
        self._texts: list[str] = []
        self._calls: list[AgentCall] = []
        self._done: list[int] = []
        self._errors = self._rounds = 0
        self._parts: Mapping[str, float] = {}
        return self.user.begin(task, rng) or self._greeted()

    def _greeted(self) -> str:
        """The opening of a customer that waits to be greeted, because it may use its tools first."""
        if not self._hands.schemas:
            return ""
        heard = self._listen(GREETING)
        if heard.done:
            raise UserError(f"the user {self.user.name} left before the agent could say anything")
        return heard.utterance

    def respond(self, action: str) -> Turn:
        return self._answered(self._toolset.answer(action)) if is_call(action) else self._heard(action)

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return self._desk.call(name, arguments)

    def _user_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return self._desk.call(name, arguments, "user")

    def _answered(self, answered: Answered) -> Turn:
        self._count(answered.calls)
        if not answered.valid:
            return answered.turn(self)
        return self.finish(answered.text) if self.leaves(answered) else self.go_on(answered.text)

    def _count(self, calls: Sequence[Call]) -> None:
        for call in calls:
            self._calls.append(AgentCall(call.name, call.arguments))
            self._errors += not call.done
            self._note(call.name, call.arguments)

    def _note(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Tick off the first gold call that this one is."""
        for place, gold in enumerate(self.task.params["gold"]):
            if place not in self._done and (gold["name"], gold["arguments"]) == (name, arguments):
                self._done.append(place)
                return

    def _heard(self, text: str) -> Turn:
        self._texts.append(text)
        heard = self._listen(text)
        return self.finish(heard.utterance) if heard.done else self.go_on(heard.utterance)

    def _listen(self, text: str) -> Heard:
        """The customer's answer to a text, after whatever it does with its tools."""
        heard = self.user.hear(text, self._cue()) if self._by_rules else self.user.hear(text)
        heard, rounds = spoken(self.user, heard, self._hands)
        self._rounds += len(rounds)
        for answered in (one for several in rounds for one in several):
            self._count(answered.calls)
            self._errors += not answered.calls  # it could not be read
        return heard

    def _cue(self) -> Mapping[str, Any]:
        """The customer's cue: changes of the reference solution that were made, texts that it heard, a transfer."""
        gold, texts = self.task.params["gold"], self.task.params["say"]
        return {
            "done": sum(gold[place]["name"] in self.service.writes for place in self._done),
            "told": sum(int(all_said([text], self._texts)) for text in texts),
            "transferred": any(call.name == TRANSFER for call in self._calls),
        }

    def finish(self, text: str) -> Turn:
        """End the episode with the outcome."""
        self._parts = self.service.parts(self._desk, self.task, Deeds(self._texts, self._calls))
        return self.succeed(text) if all(self._parts.values()) else self.fail(text)

    # ---- what trainers see ----------------------------------------------------------------------------------

    def notes(self) -> Mapping[str, Any]:
        return {**super().notes(), "parts": dict(self._parts), "errors": self._errors}

    def anchor(self) -> Hashable:
        return self.task.id, digest(self._desk.save()), self.observation

    def expert(self) -> str:
        """The reference solution's calls, then what it must say; with a patient customer by rules."""
        for place, gold in enumerate(self.task.params["gold"]):
            if place not in self._done and not (gold["name"] == TRANSFER and self._untold()):
                return self.solve(gold)
        return " ".join(self._untold()) or "Everything is done. Goodbye."

    def solve(self, gold: Mapping[str, Any]) -> str:
        """The action that does one call of the reference solution."""
        return call_text(gold["name"], **gold["arguments"])

    def _untold(self) -> list[str]:
        return [text for text in self.task.params["say"] if not all_said([text], self._texts)]

    # ---- state ----------------------------------------------------------------------------------------------

    def state(self) -> Any:
        calls = [[name, dict(arguments)] for name, arguments in self._calls]
        own = [self._texts, calls, self._done, self._errors, self._rounds, dict(self._parts)]
        return {"desk": self._desk.save(), "own": own}

    def set_state(self, state: Any) -> None:
        self._desk.load(state["desk"])
        self._texts, calls, self._done, self._errors, self._rounds, self._parts = state["own"]
        self._calls = [AgentCall(name, arguments) for name, arguments in calls]
