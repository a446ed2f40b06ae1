"""tau2-bench's retail desk: 16 tools over orders, products and users.

Rules, messages and quirks are the original's (src/tau2/domains/retail/tools.py, MIT): items that are changed together
all get the price and the options of the last new one.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from manyturn.envs.benchmarks.tau.agent_tools import AgentTools
from manyturn.envs.benchmarks.tau.arithmetic import calculated, has_other_signs
from manyturn.envs.benchmarks.tau.database import Record, copied
from manyturn.envs.benchmarks.tau.v2.retail_records import OrderPayment, UserAddress

Tables = Mapping[str, Any]


class RetailTools(AgentTools):
    """The agent's tools; ``WRITES`` change the database."""

    WRITES = frozenset(
        "cancel_pending_order exchange_delivered_order_items modify_pending_order_address modify_pending_order_items "
        "modify_pending_order_payment modify_user_address return_delivered_order_items".split()
    )
    REASONS = frozenset({"no longer needed", "ordered by mistake"})
    NOT_HELD = "Number of {} not found."
    NOT_RETURNABLE = "Some item not found"
    UNEQUAL = "The number of items to be exchanged should match."
    OTHER_METHOD = "Payment method should be the original payment method"

    # ---- records --------------------------------------------------------------------------------------------

    def _order(self, order_id: str) -> Record:
        if order_id not in self.db["orders"]:
            raise self.refusal("Order not found")
        return self.db["orders"][order_id]

    def _user(self, user_id: str) -> Record:
        if user_id not in self.db["users"]:
            raise self.refusal("User not found")
        return self.db["users"][user_id]

    def _variant(self, product_id: str, item_id: str) -> Record:
        if product_id not in self.db["products"]:
            raise self.refusal("Product not found")
        variants = self.db["products"][product_id]["variants"]
        if item_id not in variants:
            raise self.refusal("Variant not found")
        return variants[item_id]

    def _payment_method(self, user_id: str, payment_method_id: str) -> Record:
        methods = self._user(user_id)["payment_methods"]
        if payment_method_id not in methods:
            raise self.refusal("Payment method not found")
        return methods[payment_method_id]

    def _balance_changed(self, user_id: str, payment_method_id: str, amount: float) -> None:
        method = self.db["users"].edit(user_id)["payment_methods"][payment_method_id]
        method["balance"] = round(method["balance"] + amount, 2)

    def _by_gift_card(self, user_id: str, payment_method_id: str) -> bool:
        return self._payment_method(user_id, payment_method_id)["source"] == "gift_card"

    def _check_changeable(self, order: Record) -> None:
        """Raise ValueError unless address and payment can be changed."""
        if "pending" not in order["status"]:
            raise self.refusal("Non-pending order cannot be modified")

    def _address(self, **parts: str) -> Record:
        return UserAddress(**parts).model_dump()

    def _payment(self, kind: str, amount: float, payment_method_id: str) -> Record:
        payment = {"transaction_type": kind, "amount": amount, "payment_method_id": payment_method_id}
        return OrderPayment.model_validate(payment).model_dump()

    # ---- look-ups -------------------------------------------------------------------------------------------

    def calculate(self, expression: str) -> str:
        """Work out a sum.

        Args:
            expression: numbers, the operators + - * /, parentheses and spaces, such as "(12.5 + 3) * 2".
        """
        if has_other_signs(expression):
            raise self.refusal("Invalid characters in expression")
        return calculated(expression)

    def find_user_id_by_email(self, email: str) -> str:
        """Find a customer's user id by e-mail address.

        Args:
            email: the customer's address.
        """
        user_id = self.db.base.once("user of email", user_of_email).get(email.lower())
        if user_id is None:
            raise self.refusal("User not found")
        return user_id

    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:
        """Find a customer's user id by name and zip code, for customers who cannot be found by e-mail.

        Args:
            first_name: the customer's first name.
            last_name: the customer's last name.
            zip: the zip code of the customer's address.
        """
        users = self.db["users"]
        for user_id in self.db.base.once("users of first name", users_of_first_name).get(first_name.lower(), ()):
            user = users[user_id]
            if user["name"]["last_name"].lower() == last_name.lower() and user["address"]["zip"] == zip:
                return user_id
        raise self.refusal("User not found")

    def get_order_details(self, order_id: str) -> str:
        """Show an order: its items, status, address and payments.

        Args:
            order_id: such as "#W0000000", with the "#".
        """
        self._order(order_id)
        return self.db["orders"].shown(order_id)

    def get_product_details(self, product_id: str) -> str:
        """Show a product with all its items: options, prices and which are available.

        Args:
            product_id: of the product, which is not an item id.
        """
        if product_id not in self.db["products"]:
            raise self.refusal("Product not found")
        return self.db["products"].shown(product_id)

    def get_item_details(self, item_id: str) -> str:
        """Show one item of a product: options, price and whether it is available.

        Args:
            item_id: of the item, which is not a product id.
        """
        for product_id in self.db["products"]:
            variants = self.db["products"][product_id]["variants"]
            if item_id in variants:
                return json.dumps(variants[item_id])
        raise self.refusal("Item not found")

    def get_user_details(self, user_id: str) -> str:
        """Show a customer: name, address, payment methods and order ids.

        Args:
            user_id: such as "sara_doe_496".
        """
        self._user(user_id)
        return self.db["users"].shown(user_id)

    def list_all_product_types(self) -> str:
        """List the names of all products with their product ids."""
        return self.db.base.once("product types", product_types)

    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a person, if the customer asks for one or the tools and the policy do not allow
        what the customer needs.

        Args:
            summary: what the customer needs.
        """
        return "Transfer successful"

    # ---- changes of pending orders --------------------------------------------------------------------------

    def cancel_pending_order(self, order_id: str, reason: str) -> str:
        """Cancel a pending order and refund it: to a gift card at once, else within 5 to 7 business days. The customer
        must have agreed to the details.

        Args:
            order_id: such as "#W0000000", with the "#".
            reason: either "no longer needed" or "ordered by mistake".
        """
        if self._order(order_id)["status"] != "pending":
            raise self.refusal("Non-pending order cannot be cancelled")
        if reason not in self.REASONS:
            raise self.refusal("Invalid reason")
        order = self.db["orders"].edit(order_id)
        refunds = []
        for payment in order["payment_history"]:
            payment_id = payment["payment_method_id"]
            refunds.append(self._payment("refund", payment["amount"], payment_id))
            if self._by_gift_card(order["user_id"], payment_id):
                self._balance_changed(order["user_id"], payment_id, payment["amount"])
        order["status"] = "cancelled"
        order["cancel_reason"] = reason
        order["payment_history"].extend(refunds)
        return json.dumps(order)

    def modify_pending_order_address(
        self, order_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> str:
        """Change the shipping address of a pending order. The customer must have agreed to the details.

        Args:
            order_id: such as "#W0000000", with the "#".
            address1: first line of the address.
            address2: second line of the address, or "".
            city: the city.
            state: the state's two letters.
            country: such as "USA".
            zip: the zip code.
        """
        self._check_changeable(self._order(order_id))
        address = self._address(address1=address1, address2=address2, city=city, state=state, country=country, zip=zip)
        self.db["orders"].edit(order_id)["address"] = address
        return self.db["orders"].shown(order_id)

    def modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Change items of a pending order to other items of the same products. An order can be changed so only once.
        The customer must have agreed to the details.

        Args:
            order_id: such as "#W0000000", with the "#".
            item_ids: items to change; one that is there twice may be named twice.
            new_item_ids: the new item for each, in the same places.
            payment_method_id: pays the difference, or gets it back.
        """
        order = self._order(order_id)
        if order["status"] != "pending":
            raise self.refusal("Non-pending order cannot be modified")
        _check_held(order, item_ids, "{} not found")
        if len(item_ids) != len(new_item_ids):
            raise self.refusal("The number of items to be exchanged should match")
        difference = self._difference(order, item_ids, new_item_ids, self._change)
        method = self._payment_method(order["user_id"], payment_method_id)
        by_gift_card = method["source"] == "gift_card"
        if by_gift_card and method["balance"] < difference:
            raise self.refusal("Insufficient gift card balance to pay for the new item")
        order = self.db["orders"].edit(order_id)
        kind = "payment" if difference > 0 else "refund"
        order["payment_history"].append(self._payment(kind, abs(difference), payment_method_id))
        if by_gift_card:
            self._balance_changed(order["user_id"], payment_method_id, -difference)
        self._replace_items(order, item_ids, new_item_ids)
        order["status"] = "pending (item modified)"
        return json.dumps(order)

    def _change(self, order: Record, item_id: str, new_item_id: str) -> tuple[Record, Record]:
        """An item of a pending order and what it can become."""
        if item_id == new_item_id:
            raise self.refusal("The new item id should be different from the old item id")
        return self._exchange(order, item_id, new_item_id)

    def _replace_items(self, order: Record, item_ids: list[str], new_item_ids: list[str]) -> None:
        """Put the new items into the order; all get the price and the options of the last one."""
        variant: Record = {}
        if item_ids:
            variant = self._variant(_item(order, item_ids[-1])["product_id"], new_item_ids[-1])
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            item = _item(order, item_id)
            item["item_id"] = new_item_id
            item |= {"price": variant["price"], "options": copied(variant["options"])}

    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> str:
        """Change how a pending order is paid. The customer must have agreed to the details.

        Args:
            order_id: such as "#W0000000", with the "#".
            payment_method_id: the new payment method.
        """
        order = self._order(order_id)
        self._check_changeable(order)
        method = self._payment_method(order["user_id"], payment_method_id)
        history, user_id = order["payment_history"], order["user_id"]
        if len(history) != 1 or history[0]["transaction_type"] != "payment":
            raise self.refusal("There should be exactly one payment for a pending order")
        old_id, amount = history[0]["payment_method_id"], history[0]["amount"]
        if old_id == payment_method_id:
            raise self.refusal("The new payment method should be different from the current one")
        if method["source"] == "gift_card" and method["balance"] < amount:
            raise self.refusal("Insufficient gift card balance to pay for the order")
        order = self.db["orders"].edit(order_id)
        for kind, paid_with in (("payment", payment_method_id), ("refund", old_id)):
            order["payment_history"].append(self._payment(kind, amount, paid_with))
        if method["source"] == "gift_card":
            self._balance_changed(user_id, payment_method_id, -amount)
        if self._by_gift_card(user_id, old_id):
            self._balance_changed(user_id, old_id, amount)
        return json.dumps(order)

    def modify_user_address(
        self, user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> str:
        """Change a customer's default address. The customer must have agreed to the details.

        Args:
            user_id: such as "sara_doe_496".
            address1: first line of the address.
            address2: second line of the address, or "".
            city: the city.
            state: the state's two letters.
            country: such as "USA".
            zip: the zip code.
        """
        self._user(user_id)
        address = self._address(address1=address1, address2=address2, city=city, state=state, country=country, zip=zip)
        self.db["users"].edit(user_id)["address"] = address
        return self.db["users"].shown(user_id)

    # ---- changes of delivered orders ------------------------------------------------------------------------

    def _exchange(self, order: Record, item_id: str, new_item_id: str) -> tuple[Record, Record]:
        """An item of the order and what it can become."""
        item = _item(order, item_id)
        variant = self._variant(item["product_id"], new_item_id)
        if not variant["available"]:
            raise self.refusal(f"New item {new_item_id} not found or available")
        return item, variant

    def _difference(
        self, order: Record, item_ids: list[str], new_item_ids: list[str], pair: Callable[..., tuple[Record, Record]]
    ) -> float:
        """The new items' prices less those of the old ones, in dollars."""
        difference = 0
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            item, variant = pair(order, item_id, new_item_id)
            difference += variant["price"] - item["price"]
        return difference

    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Exchange items of a delivered order for other items of the same products. An order can be exchanged or
        returned only once. The customer must have agreed to the details.

        Args:
            order_id: such as "#W0000000", with the "#".
            item_ids: items to exchange; one that is there twice may be named twice.
            new_item_ids: the new item for each, in the same places.
            payment_method_id: pays the difference, or gets it back.
        """
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise self.refusal("Non-delivered order cannot be exchanged")
        _check_held(order, item_ids, self.NOT_HELD)
        if len(item_ids) != len(new_item_ids):
            raise self.refusal(self.UNEQUAL)
        difference = round(self._difference(order, item_ids, new_item_ids, self._exchange), 2)
        method = self._payment_method(order["user_id"], payment_method_id)
        if method["source"] == "gift_card" and method["balance"] < difference:
            raise self.refusal("Insufficient gift card balance to pay for the price difference")
        order = self.db["orders"].edit(order_id)
        order["status"] = "exchange requested"
        order["exchange_items"] = sorted(item_ids)
        order["exchange_new_items"] = sorted(new_item_ids)
        order["exchange_payment_method_id"] = payment_method_id
        order["exchange_price_difference"] = difference
        return json.dumps(order)

    def return_delivered_order_items(self, order_id: str, item_ids: list[str], payment_method_id: str) -> str:
        """Return items of a delivered order. An order can be exchanged or returned only once. The customer must have
        agreed to the details.

        Args:
            order_id: such as "#W0000000", with the "#".
            item_ids: items to return; one that is there twice may be named twice.
            payment_method_id: gets the refund: how the order was paid, or a gift card.
        """
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise self.refusal("Non-delivered order cannot be returned")
        self._payment_method(order["user_id"], payment_method_id)
        paid_with = order["payment_history"][0]["payment_method_id"]
        if not self._by_gift_card(order["user_id"], payment_method_id) and payment_method_id != paid_with:
            raise self.refusal(self.OTHER_METHOD)
        _check_held(order, item_ids, self.NOT_RETURNABLE)
        order = self.db["orders"].edit(order_id)
        order["status"] = "return requested"
        order["return_items"] = sorted(item_ids)
        order["return_payment_method_id"] = payment_method_id
        return json.dumps(order)


def _item(order: Record, item_id: str) -> Record:
    """An item of the order. Raises ValueError."""
    for item in order["items"]:
        if item["item_id"] == item_id:
            return item
    raise ValueError(f"Item {item_id} not found")


def _check_held(order: Record, item_ids: list[str], refusal: str) -> None:
    held = [item["item_id"] for item in order["items"]]
    for item_id in item_ids:
        if item_ids.count(item_id) > held.count(item_id):
            raise ValueError(refusal.format(item_id))


def product_types(tables: Tables) -> str:
    """The names of all products with their ids, as JSON."""
    products = {product["name"]: product["product_id"] for product in tables["products"].values()}
    return json.dumps(dict(sorted(products.items())))


def user_of_email(tables: Tables) -> dict[str, str]:
    """Lower-cased address -> the first user who has it; no tool changes an address."""
    return {user["email"].lower(): user_id for user_id, user in reversed(tables["users"].items())}


def users_of_first_name(tables: Tables) -> dict[str, list[str]]:
    """Lower-cased first name -> users, in the file's order."""
    users: dict[str, list[str]] = {}
    for user_id, user in tables["users"].items():
        users.setdefault(user["name"]["first_name"].lower(), []).append(user_id)
    return users


TOOLS = tuple(name for name in vars(RetailTools) if name.islower() and not name.startswith("_"))
