"""tau2-bench's desk of telecom: the agent's tools, the customer's phone, and what keeps the two in step."""

from collections.abc import Iterable, Mapping
from typing import Any

from manyturn.envs.benchmarks.tau.agent_tools import Desk, run
from manyturn.envs.benchmarks.tau.database import Base, Database
from manyturn.envs.benchmarks.tau.v2.telecom import agent_tools, phone


class TelecomDesk(Desk):
    """The desk and the customer's phone.

    Args:
        base, phone_base: the shared databases.
        set_up: the task's initialization, each with ``env_type``, ``func_name`` and ``arguments``.

    Raises:
        ValueError: the initialization is not one that this desk can do.
    """

    def __init__(self, base: Base, phone_base: Base, set_up: Iterable[Mapping[str, Any]] = ()):
        super().__init__(base, agent_tools.TelecomTools, agent_tools.TOOLS)
        self.phone_db = Database(phone_base)
        self.phone = phone.TelecomUserTools(self.phone_db)
        self.sync()
        for step in set_up:
            self._prepare(step)

    def _prepare(self, step: Mapping[str, Any]) -> None:
        name, kit = step["func_name"], self._kit(step["env_type"])
        if name.startswith("assert_"):
            if not self.holds(step):
                raise ValueError(f"the task's initialization expects {name}, which does not hold")
            return
        if name not in kit.SET_UP and name not in kit.WRITES:
            raise ValueError(f"the task's initialization asks for {name!r}, which nothing here does")
        getattr(kit, name)(**step["arguments"])
        self.sync()

    def _kit(self, who: str) -> Any:
        return self.phone if who == "user" else self.agent

    def holds(self, assertion: Mapping[str, Any]) -> bool:
        """True if a task's assertion is met. Raises ValueError for one that is not known."""
        name, kit = assertion["func_name"], self._kit(assertion["env_type"])
        judge = getattr(kit, name, None) if name.startswith("assert_") else None
        if judge is None:
            raise ValueError(f"the task asks for {name!r}, which nothing here judges")
        met = judge(**assertion["arguments"]) == assertion.get("assert_value", True)
        self.sync()
        return met

    def call(self, name: str, arguments: Mapping[str, Any], by: str = "assistant") -> str:
        """A tool of either side; who may call which is the environment's choice."""
        on_phone = name in phone.TOOLS
        text = run(getattr(self.phone, name), **arguments) if on_phone else super().call(name, arguments, by)
        run(self.sync)
        return text

    def sync(self) -> str:
        """Let the phone feel what the desk did, and the desk learn of payments."""
        number = self.phone.surroundings["phone_number"]
        if number is None:
            return ""
        line = self.agent.line_of_number(number)
        plan = self.agent.plan(line["plan_id"])
        self.phone.surround(
            line_active=line["status"] == "Active",
            roaming_allowed=bool(line["roaming_enabled"]),
            mobile_data_usage_exceeded=line["data_used_gb"] >= plan["data_limit_gb"] + line["data_refueling_gb"],
        )
        request = self.phone.surroundings["payment_request"]
        if request is not None and request["paid"]:
            self.agent.set_bill_to_paid(request["bill_id"])
            self.phone.surround(payment_request=None)
            request = None
        if request is None:
            waiting = self.agent.bills_of(self.agent.customer_of_number(number), "Awaiting Payment")
            if waiting:
                self.phone.ask_payment(waiting[0]["bill_id"], waiting[0]["total_due"])
        return ""

    def same(self, other: Desk) -> bool:
        return super().same(other) and isinstance(other, TelecomDesk) and self.phone_db.same(other.phone_db)

    def save(self) -> Any:
        return [self.db.save(), self.phone_db.save()]

    def load(self, state: Any) -> None:
        self.db.load(state[0])
        self.phone_db.load(state[1])
