"""The shop's tools."""

from collections.abc import Callable
from typing import Any, Literal

from manyturn.envs.desk.base_tools import DeskTools
from manyturn.envs.desk.database import Record
from manyturn.envs.tools.tool import ToolError

Reason = Literal["ordered by mistake", "no longer needed", "found it cheaper", "delivery too slow"]


class RetailTools(DeskTools):
    """Orders, their items, and where they go."""

    def reads(self) -> list[Callable[..., Any]]:
        return [self.get_order, self.get_item, self.get_product, self.list_products]

    def writes(self) -> list[Callable[..., Any]]:
        pending = [self.cancel_order, self.set_order_address, self.set_order_payment, self.change_item]
        return [*pending, self.return_item, self.exchange_item, self.set_user_address]

    def get_order(self, order_id: str) -> Record:
        """Show an order with its items.

        Args:
            order_id: such as W12.
        """
        order = self._show("orders", order_id)
        items = [self.store["items", key] for key in order["items"]]
        shown = [
            {"item_id": key, "name": item["name"], "color": item["color"]}
            for key, item in zip(order["items"], items, strict=True)
        ]
        return {**order, "items": shown}

    def get_item(self, item_id: str) -> Record:
        """Show an item: its product, color, price, stock, and whether it is a final sale.

        Args:
            item_id: such as I12.
        """
        return self._show("items", item_id)

    def get_product(self, product_id: str) -> Record:
        """Show a product with all its items.

        Args:
            product_id: such as G12.
        """
        product = self.store.find("products", product_id)
        return {**product, "items": [{"item_id": key, **self.store["items", key]} for key in product["items"]]}

    def list_products(self) -> Record:
        """List the products that the shop sells: product id and name."""
        return {key: product["name"] for key, product in self.store.tables.records["products"].items()}

    def cancel_order(self, order_id: str, reason: Reason) -> Record:
        """Cancel an order.

        Args:
            order_id: such as W12.
            reason: the customer's reason.
        """
        self.store.change("orders", order_id, status="cancelled", note=reason)
        return {"order_id": order_id, "status": "cancelled"}

    def set_order_address(self, order_id: str, address: str) -> Record:
        """Change the delivery address of an order.

        Args:
            order_id: such as W12.
            address: such as 12 Oak Street, Belton.
        """
        return self._set("orders", "order_id", order_id, address=address)

    def set_order_payment(self, order_id: str, payment_id: str) -> Record:
        """Change the payment method of an order to another one of the same customer.

        Args:
            order_id: such as W12.
            payment_id: such as P12.
        """
        self._payment(order_id, payment_id)
        return self._set("orders", "order_id", order_id, payment_id=payment_id)

    def change_item(self, order_id: str, item_id: str, new_item_id: str) -> Record:
        """Replace an item that has not been sent.

        Args:
            order_id: such as W12.
            item_id: the item in the order.
            new_item_id: the item to send instead.
        """
        self._swap(order_id, item_id, new_item_id)
        return {"order_id": order_id, "item_id": new_item_id}

    def return_item(self, order_id: str, item_id: str) -> Record:
        """Take an item back and refund it to the payment method of the order.

        Args:
            order_id: such as W12.
            item_id: the item in the order.
        """
        order = self._holding(order_id, item_id)
        rest = tuple(key for key in order["items"] if key != item_id)
        self.store.change("orders", order_id, items=rest, note=f"returned {item_id}")
        return {"order_id": order_id, "returned": item_id}

    def exchange_item(self, order_id: str, item_id: str, new_item_id: str, payment_id: str) -> Record:
        """Take an item back and send another one.

        Args:
            order_id: such as W12.
            item_id: the item in the order.
            new_item_id: the item to send.
            payment_id: pays the price difference.
        """
        self._payment(order_id, payment_id)
        self._swap(order_id, item_id, new_item_id)
        self.store.change("orders", order_id, exchanged=True, note=f"difference by {payment_id}")
        return {"order_id": order_id, "item_id": new_item_id}

    def set_user_address(self, user_id: str, address: str) -> Record:
        """Change the address in a customer's record; orders keep theirs.

        Args:
            user_id: such as C12.
            address: such as 12 Oak Street, Belton.
        """
        return self._set("users", "user_id", user_id, address=address)

    def _holding(self, order_id: str, item_id: str) -> Record:
        order = self.store.find("orders", order_id)
        if item_id not in order["items"]:
            raise ToolError(f"order {order_id} has no item {item_id!r:.80}")
        return order

    def _payment(self, order_id: str, payment_id: str) -> None:
        user = self.store["users", self.store.find("orders", order_id)["user_id"]]
        if payment_id not in [payment["payment_id"] for payment in user["payments"]]:
            raise ToolError(f"the customer has no payment method {payment_id!r:.80}")

    def _swap(self, order_id: str, item_id: str, new_item_id: str) -> None:
        order = self._holding(order_id, item_id)
        self.store.find("items", new_item_id)
        items = tuple(new_item_id if key == item_id else key for key in order["items"])
        self.store.change("orders", order_id, items=items)
