"""tau2-bench's telecom desk: 13 tools of the agent, and what sets tasks up and judges them.

Rules, messages and quirks are the original's (src/tau2/domains/telecom/tools.py, MIT), with one exception: a new draft
bill has the id ``B00000001`` and so on, where the original draws one at random. Today is 2025-02-25.
"""

import json
from typing import Any

from manyturn.envs.benchmarks.tau.agent_tools import AgentTools
from manyturn.envs.benchmarks.tau.database import Record
from manyturn.envs.benchmarks.tau.v2.telecom.records import Bill, LineItem, plain

TODAY = "2025-02-25"
END_OF_CYCLE = "2025-02-28"
LAST_MONTH = "2025-01-01", "2025-01-31", "2025-01-15"  # its first and last day, and the day when its bill is due
NEXT_MONTH = "2025-03-01", "2025-03-31", "2025-03-15"


class TelecomTools(AgentTools):
    """The agent's tools; ``WRITES`` change the database, ``SET_UP`` and methods ``assert_...`` are for tasks alone."""

    WRITES = frozenset(
        "suspend_line resume_line send_payment_request enable_roaming disable_roaming refuel_data".split()
    )
    SET_UP = frozenset({"set_data_usage", "suspend_line_for_overdue_bill"})

    # ---- records --------------------------------------------------------------------------------------------

    def customer(self, customer_id: str) -> Record:
        return self._record("customers", customer_id, "Customer with ID {} not found")

    def line(self, line_id: str) -> Record:
        return self._record("lines", line_id, "Line with ID {} not found")

    def bill(self, bill_id: str) -> Record:
        return self._record("bills", bill_id, "Bill with ID {} not found")

    def plan(self, plan_id: str) -> Record:
        return self._record("plans", plan_id, "Plan with ID {} not found")

    def _record(self, table: str, key: str, refusal: str) -> Record:
        if not isinstance(key, str) or key not in self.db[table]:
            raise ValueError(refusal.format(key))
        return self.db[table][key]

    def owned_line(self, customer_id: str, line_id: str) -> Record:
        """A line of a customer, to be read only."""
        if line_id not in self.customer(customer_id)["line_ids"]:
            raise ValueError(f"Line {line_id} not found for customer {customer_id}")
        return self.line(line_id)

    def line_of_number(self, phone_number: str) -> Record:
        for line_id in self.db["lines"]:
            if self.db["lines"][line_id]["phone_number"] == phone_number:
                return self.db["lines"][line_id]
        raise ValueError(f"Line with phone number {phone_number} not found")

    def customer_of_number(self, phone_number: str) -> Record:
        for customer_id in self.db["customers"]:
            customer = self.db["customers"][customer_id]
            numbers = (self.line(line_id)["phone_number"] for line_id in customer["line_ids"])
            if customer["phone_number"] == phone_number or phone_number in numbers:
                return customer
        raise ValueError(f"Customer with phone number {phone_number} not found")

    def bills_of(self, customer: Record, status: str) -> list[Record]:
        bills = (self.bill(bill_id) for bill_id in customer["bill_ids"])
        return [bill for bill in bills if bill["status"] == status]

    def set_bill_to_paid(self, bill_id: str) -> None:
        self.bill(bill_id)
        self.db["bills"].edit(bill_id)["status"] = "Paid"

    # ---- look-ups -------------------------------------------------------------------------------------------

    def get_customer_by_phone(self, phone_number: str) -> str:
        """Find a customer by a phone number: the contact number, or that of a line.

        Args:
            phone_number: such as "555-123-2001".
        """
        return self.db["customers"].shown(self.customer_of_number(phone_number)["customer_id"])

    def get_customer_by_id(self, customer_id: str) -> str:
        """Show a customer.

        Args:
            customer_id: such as "C1001".
        """
        self.customer(customer_id)
        return self.db["customers"].shown(customer_id)

    def get_customer_by_name(self, full_name: str, dob: str) -> str:
        """Find customers by name and date of birth.

        Args:
            full_name: the customer's full name.
            dob: date of birth, YYYY-MM-DD.
        """
        customers = [self.db["customers"][customer_id] for customer_id in self.db["customers"]]
        matches = (one for one in customers if one["full_name"].lower() == full_name.lower())
        return json.dumps([one for one in matches if one["date_of_birth"] == dob])

    def get_details_by_id(self, id: str) -> str:
        """Show a customer, line, device, bill or plan.

        Args:
            id: its id, which begins with C, L, D, B or P.
        """
        tables = {"L": "lines", "D": "devices", "B": "bills", "C": "customers", "P": "plans"}
        kind = next((letter for letter in tables if id.startswith(letter)), None)
        if kind is None:
            raise ValueError(f"Unknown ID format or type: {id}")
        self._record(tables[kind], id, f"{tables[kind][:-1].capitalize()} with ID {{}} not found")
        return self.db[tables[kind]].shown(id)

    def get_bills_for_customer(self, customer_id: str, limit: int = 12) -> str:
        """List a customer's bills, the newest first.

        Args:
            customer_id: such as "C1001".
            limit: how many to list.
        """
        bills = [self.bill(bill_id) for bill_id in self.customer(customer_id)["bill_ids"]]
        return json.dumps(sorted(bills, key=lambda bill: bill["issue_date"], reverse=True)[:limit])

    def get_data_usage(self, customer_id: str, line_id: str) -> str:
        """Tell how much data a line has used in this billing cycle, its limit, and when the cycle ends.

        Args:
            customer_id: the line's owner, such as "C1001".
            line_id: such as "L1001".
        """
        line = self.owned_line(customer_id, line_id)
        limit = self.plan(line["plan_id"])["data_limit_gb"]
        used, refuelled = line["data_used_gb"], line["data_refueling_gb"]
        usage = {"line_id": line_id, "data_used_gb": str(used), "data_limit_gb": str(limit)}
        return json.dumps(usage | {"data_refueling_gb": str(refuelled), "cycle_end_date": END_OF_CYCLE})

    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a person, if the customer asks for one or the tools and the policy do not allow
        what the customer needs.

        Args:
            summary: what the customer needs.
        """
        return "Transfer successful"

    # ---- changes --------------------------------------------------------------------------------------------

    def suspend_line(self, customer_id: str, line_id: str, reason: str) -> str:
        """Suspend an active line, for at most six months.

        Args:
            customer_id: the line's owner, such as "C1001".
            line_id: such as "L1001".
            reason: why.
        """
        if self.owned_line(customer_id, line_id)["status"] != "Active":
            raise ValueError("Line must be active to suspend")
        line = self._set_line(line_id, status="Suspended", suspension_start_date=TODAY)
        message = "Line suspended successfully. $5/month holding fee will apply."
        return json.dumps({"message": message, "line": line})

    def resume_line(self, customer_id: str, line_id: str) -> str:
        """Resume a line that is suspended or waits for its activation.

        Args:
            customer_id: the line's owner, such as "C1001".
            line_id: such as "L1001".
        """
        if self.owned_line(customer_id, line_id)["status"] not in ("Suspended", "Pending Activation"):
            raise ValueError("Line must be suspended to resume")
        line = self._set_line(line_id, status="Active", suspension_start_date=None)
        return json.dumps({"message": "Line resumed successfully", "line": line})

    def _set_line(self, line_id: str, **changes: Any) -> Record:
        line = self.db["lines"].edit(line_id)
        line.update(changes)
        return line

    def send_payment_request(self, customer_id: str, bill_id: str) -> str:
        """Ask a customer to pay a bill. Only one bill at a time can await payment; whether it is paid already is not
        checked.

        Args:
            customer_id: such as "C1001".
            bill_id: such as "B1001".
        """
        customer = self.customer(customer_id)
        if self.bills_of(customer, "Awaiting Payment"):
            raise ValueError("A bill is already awaiting payment for this customer")
        if bill_id not in customer["bill_ids"]:
            raise ValueError(f"Bill {bill_id} not found for customer {customer_id}")
        self.bill(bill_id)
        self.db["bills"].edit(bill_id)["status"] = "Awaiting Payment"
        return f"Payment request sent to the customer for bill {bill_id}"

    def enable_roaming(self, customer_id: str, line_id: str) -> str:
        """Allow a line to be used abroad.

        Args:
            customer_id: the line's owner, such as "C1001".
            line_id: such as "L1001".
        """
        if self.owned_line(customer_id, line_id)["roaming_enabled"]:
            return "Roaming was already enabled"
        self._set_line(line_id, roaming_enabled=True)
        return "Roaming enabled successfully"

    def disable_roaming(self, customer_id: str, line_id: str) -> str:
        """Forbid a line to be used abroad.

        Args:
            customer_id: the line's owner, such as "C1001".
            line_id: such as "L1001".
        """
        if not self.owned_line(customer_id, line_id)["roaming_enabled"]:
            return "Roaming was already disabled"
        self._set_line(line_id, roaming_enabled=False)
        return "Roaming disabled successfully"

    def refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> str:
        """Add data to a line for this billing cycle, at the price of its plan, to be paid with the next bill.

        Args:
            customer_id: the line's owner, such as "C1001".
            line_id: such as "L1001".
            gb_amount: how many gigabytes.
        """
        held = self.owned_line(customer_id, line_id)
        if gb_amount <= 0:
            raise ValueError("Refuel amount must be positive")
        price = self.plan(held["plan_id"])["data_refueling_price_per_gb"]
        charge = gb_amount * price
        line = self.db["lines"].edit(line_id)
        line["data_refueling_gb"] += gb_amount
        self._charge(customer_id, charge, f"Data refueling: {gb_amount} GB at ${price}/GB")
        message = f"Successfully added {gb_amount} GB of data for line {line_id} for ${charge:.2f}"
        amounts = {"new_data_refueling_gb": str(line["data_refueling_gb"]), "charge": str(charge)}
        return json.dumps({"message": message} | amounts)

    def _charge(self, customer_id: str, amount: float, description: str) -> None:
        """Put an amount on the draft of the next bill."""
        draft = next(iter(self.bills_of(self.customer(customer_id), "Draft")), None)
        if draft is None:
            number = sum(bill_id not in self.db["bills"].frozen.records for bill_id in self.db["bills"]) + 1
            draft = self._new_bill(f"B{number:08}", customer_id, NEXT_MONTH, "Draft")
        bill = self.db["bills"].edit(draft["bill_id"])
        kind = "Credit" if amount < 0 else "Charge"
        bill["line_items"].append(_line_item(description, amount, kind))
        bill["total_due"] += amount

    def _new_bill(self, bill_id: str, customer_id: str, month: tuple[str, str, str], status: str) -> Record:
        first, last, due = month
        period = {"period_start": first, "period_end": last, "issue_date": first, "due_date": due}
        whose = {"bill_id": bill_id, "customer_id": customer_id, "total_due": 0, "status": status}
        self.db["bills"][bill_id] = plain(Bill.model_validate(whose | period))
        self.db["customers"].edit(customer_id)["bill_ids"].append(bill_id)
        return self.db["bills"][bill_id]

    # ---- tasks: set-up and judgement ------------------------------------------------------------------------

    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> None:
        self.owned_line(customer_id, line_id)
        self._set_line(line_id, data_used_gb=data_used_gb)

    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
    ) -> None:
        line = self.line(line_id)
        if line["status"] != "Active":
            raise ValueError("Line must be active to suspend for unpaid bill")
        if self.bills_of(self.customer(customer_id), "Overdue"):
            raise ValueError("Customer already has an overdue bill")
        amount = self.plan(line["plan_id"])["price_per_month"]
        bill = self._new_bill(new_bill_id, customer_id, LAST_MONTH, "Overdue")
        bill["line_items"].append(_line_item(f"Charge for line {line_id}", amount, "Charge"))
        bill["total_due"] += amount
        line = self._set_line(line_id, status="Suspended", suspension_start_date=TODAY)
        if contract_ended:
            line["contract_end_date"] = LAST_MONTH[1]

    def assert_data_refueling_amount(self, customer_id: str, line_id: str, expected_amount: float) -> bool:
        return abs(self.owned_line(customer_id, line_id)["data_refueling_gb"] - expected_amount) < 1e-6

    def assert_line_status(self, customer_id: str, line_id: str, expected_status: str) -> bool:
        return self.owned_line(customer_id, line_id)["status"] == expected_status

    def assert_overdue_bill_exists(self, customer_id: str, overdue_bill_id: str) -> bool:
        if overdue_bill_id not in self.customer(customer_id)["bill_ids"]:
            raise ValueError(f"Overdue bill {overdue_bill_id} not found")
        if self.bill(overdue_bill_id)["status"] != "Overdue":
            raise ValueError(f"Overdue bill {overdue_bill_id} is not overdue")
        return True

    def assert_no_overdue_bill(self, overdue_bill_id: str) -> bool:
        return overdue_bill_id not in self.db["bills"] or self.bill(overdue_bill_id)["status"] == "Paid"


def _line_item(description: str, amount: float, kind: str) -> Record:
    item = {"description": description, "amount": amount, "date": TODAY, "item_type": kind}
    return plain(LineItem.model_validate(item))


TOOLS = (
    "get_customer_by_phone",
    "get_customer_by_id",
    "get_customer_by_name",
    "get_details_by_id",
    "suspend_line",
    "resume_line",
    "get_bills_for_customer",
    "send_payment_request",
    "get_data_usage",
    "enable_roaming",
    "disable_roaming",
    "transfer_to_human_agents",
    "refuel_data",
)
