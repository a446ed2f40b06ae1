"""The telephone company's tools."""

from collections.abc import Callable
from typing import Any, Literal

from manyturn.envs.desk.base_tools import DeskTools
from manyturn.envs.desk.database import Record
from manyturn.envs.tools.tool import ToolError


class TelecomTools(DeskTools):
    """Lines, the plans that they are on, and bills."""

    def reads(self) -> list[Callable[..., Any]]:
        return [self.get_line, self.get_bill, self.list_plans]

    def writes(self) -> list[Callable[..., Any]]:
        lines = [self.set_plan, self.suspend_line, self.resume_line, self.set_roaming, self.add_data, self.replace_sim]
        return [*lines, self.pay_bill, self.waive_late_fee]

    def get_line(self, line_id: str) -> Record:
        """Show a line: device, status, plan, roaming, data left, and months left of its contract.

        Args:
            line_id: such as N12.
        """
        return self._show("lines", line_id)

    def get_bill(self, bill_id: str) -> Record:
        """Show a bill: month, amount, status, and the late fee on it.

        Args:
            bill_id: such as X12.
        """
        return self._show("bills", bill_id)

    def list_plans(self) -> Record:
        """List all plans: plan id, name, monthly price, data, and whether roaming is possible."""
        return self.store.tables.records["plans"]

    def set_plan(self, line_id: str, plan_id: str) -> Record:
        """Change the plan of a line.

        Args:
            line_id: such as N12.
            plan_id: such as L2.
        """
        self.store.find("plans", plan_id)
        return self._set("lines", "line_id", line_id, plan_id=plan_id)

    def suspend_line(self, line_id: str) -> Record:
        """Suspend a line until it is resumed.

        Args:
            line_id: such as N12.
        """
        suspensions = self.store.find("lines", line_id)["suspensions"] + 1
        self.store.change("lines", line_id, status="suspended", suspensions=suspensions)
        return {"line_id": line_id, "status": "suspended"}

    def resume_line(self, line_id: str) -> Record:
        """Resume a line.

        Args:
            line_id: such as N12.
        """
        return self._set("lines", "line_id", line_id, status="active")

    def set_roaming(self, line_id: str, on: bool) -> Record:
        """Turn roaming of a line on or off.

        Args:
            line_id: such as N12.
            on: true or false.
        """
        return self._set("lines", "line_id", line_id, roaming=on)

    def add_data(self, line_id: str, gb: int) -> Record:
        """Add data to a line for this month.

        Args:
            line_id: such as N12.
            gb: gigabytes, from 1 to 50.
        """
        if not 1 <= gb <= 50:
            raise ToolError("gb must be from 1 to 50")
        added = self.store.find("lines", line_id)["added_gb"] + gb
        return self._set("lines", "line_id", line_id, added_gb=added)

    def replace_sim(self, line_id: str, sim: Literal["card", "esim"]) -> Record:
        """Replace the SIM of a line with another type.

        Args:
            line_id: such as N12.
            sim: the new type.
        """
        return self._set("lines", "line_id", line_id, sim=sim)

    def pay_bill(self, bill_id: str) -> Record:
        """Take the payment of a bill.

        Args:
            bill_id: such as X12.
        """
        return self._set("bills", "bill_id", bill_id, status="paid")

    def waive_late_fee(self, bill_id: str) -> Record:
        """Waive the late fee of a bill, and note it in the customer's record.

        Args:
            bill_id: such as X12.
        """
        bill = self.store.find("bills", bill_id)
        self.store.change("bills", bill_id, late_fee=0)
        self.store.change("users", bill["user_id"], fee_waived=True)
        return {"bill_id": bill_id, "late_fee": 0}
