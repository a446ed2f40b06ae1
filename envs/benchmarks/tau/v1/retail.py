"""tau-bench's retail desk: 16 tools over orders, products and users.

Rules, messages and quirks are the original's (tau_bench/envs/retail/tools, MIT). They are those of tau2-bench but for
what stands here: records are not checked, and a payment is by gift card if its id says so.
"""

from typing import Any

from manyturn.envs.benchmarks.tau.agent_tools import AgentTools
from manyturn.envs.benchmarks.tau.database import Record
from manyturn.envs.benchmarks.tau.v2 import retail


class TauBenchTools(AgentTools):
    """Tools and words that both domains of tau-bench have."""

    def refusal(self, words: str) -> ValueError:
        return ValueError(words[0].lower() + words[1:])

    def think(self, thought: str) -> str:
        return ""


class RetailTools(TauBenchTools, retail.RetailTools):
    """The agent's tools; ``WRITES`` change the database."""

    REASONS = ("no longer needed", "ordered by mistake")
    NOT_HELD = "{} not found"
    NOT_RETURNABLE = "some item not found"
    UNEQUAL = "The number of items to be exchanged should match"
    OTHER_METHOD = "Payment method should be either the original payment method or a gift card"

    def _variant(self, product_id: str, item_id: str) -> Record:
        variants = self.db["products"][product_id]["variants"]
        if item_id not in variants:
            raise self.refusal(f"New item {item_id} not found or available")
        return variants[item_id]

    def _by_gift_card(self, user_id: str, payment_method_id: str) -> bool:
        return "gift_card" in payment_method_id

    def _check_changeable(self, order: Record) -> None:
        if order["status"] != "pending":
            raise self.refusal("Non-pending order cannot be modified")

    def _address(self, **parts: str) -> Record:
        return parts

    def _payment(self, kind: str, amount: float, payment_method_id: str) -> Record:
        return {"transaction_type": kind, "amount": amount, "payment_method_id": payment_method_id}

    def _change(self, order: Record, item_id: str, new_item_id: str) -> tuple[Record, Record]:
        return self._exchange(order, item_id, new_item_id)

    def _replace_items(self, order: Record, item_ids: list[str], new_item_ids: list[str]) -> None:
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            item: dict[str, Any] = next(item for item in order["items"] if item["item_id"] == item_id)
            variant = self.db["products"][item["product_id"]]["variants"][new_item_id]
            item |= {"item_id": new_item_id, "price": variant["price"], "options": dict(variant["options"])}


TOOLS = tuple(sorted({*retail.TOOLS, "think"} - {"get_item_details"}))
