"""tau-bench's retail desk: 16 tools over orders, products and users.

Rules, messages and quirks are the original's (tau_bench/envs/retail/tools, MIT); only its data reach the reward.
"""

import json
from collections.abc import Sequence

from manyturn.envs.benchmarks.tau.arithmetic import calculated, has_other_signs
from manyturn.envs.benchmarks.tau.store import Database, Record
from manyturn.envs.benchmarks.tau.v1.refusal import Refusal

Data = Database


def calculate(data: Data, expression: str) -> str:
    if has_other_signs(expression):
        raise Refusal("invalid characters in expression")
    return calculated(expression)


def think(data: Data, thought: str) -> str:
    return ""


def transfer_to_human_agents(data: Data, summary: str) -> str:
    return "Transfer successful"


# ---- look-ups ----------------------------------------------------------------------------------------------------


def find_user_id_by_email(data: Data, email: str) -> str:
    found = data.base.once("user of email", user_of_email).get(email.lower())
    if found is None:
        raise Refusal("user not found")
    return found


def find_user_id_by_name_zip(data: Data, first_name: str, last_name: str, zip: str) -> str:
    users = data["users"]
    for user_id in data.base.once("users of first name", users_of_first_name).get(first_name.lower(), ()):
        user = users[user_id]
        if user["name"]["last_name"].lower() == last_name.lower() and user["address"]["zip"] == zip:
            return user_id
    raise Refusal("user not found")


def user_of_email(tables) -> dict[str, str]:
    """Lower-cased address -> the first user who has it; no tool changes an address."""
    return {user["email"].lower(): user_id for user_id, user in reversed(tables["users"].items())}


def users_of_first_name(tables) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for user_id, user in tables["users"].items():
        found.setdefault(user["name"]["first_name"].lower(), []).append(user_id)
    return found


def get_order_details(data: Data, order_id: str) -> str:
    if order_id in data["orders"]:
        return data["orders"].shown(order_id)
    raise Refusal("order not found")


def get_product_details(data: Data, product_id: str) -> str:
    if product_id in data["products"]:
        return data["products"].shown(product_id)
    raise Refusal("product not found")


def get_user_details(data: Data, user_id: str) -> str:
    if user_id in data["users"]:
        return data["users"].shown(user_id)
    raise Refusal("user not found")


def list_all_product_types(data: Data) -> str:
    return data.base.once("product types", product_types)


def product_types(tables) -> str:
    named = {product["name"]: product["product_id"] for product in tables["products"].values()}
    return json.dumps(dict(sorted(named.items())))


# ---- changes -----------------------------------------------------------------------------------------------------


def _order_with(data: Data, order_id: str, status: str, refusal: str) -> Record:
    if order_id not in data["orders"]:
        raise Refusal("order not found")
    order = data["orders"][order_id]
    if order["status"] != status:
        raise Refusal(refusal)
    return order


def _balance_changed(data: Data, user_id: str, payment_id: str, amount: float) -> None:
    method = data["users"].edit(user_id)["payment_methods"][payment_id]
    method["balance"] = round(method["balance"] + amount, 2)


def cancel_pending_order(data: Data, order_id: str, reason: str) -> str:
    _order_with(data, order_id, "pending", "non-pending order cannot be cancelled")
    if reason not in ["no longer needed", "ordered by mistake"]:
        raise Refusal("invalid reason")
    order = data["orders"].edit(order_id)
    refunds = []
    for payment in order["payment_history"]:
        amount, payment_id = payment["amount"], payment["payment_method_id"]
        refunds.append({"transaction_type": "refund", "amount": amount, "payment_method_id": payment_id})
        if "gift_card" in payment_id:
            _balance_changed(data, order["user_id"], payment_id, amount)
    order["status"] = "cancelled"
    order["cancel_reason"] = reason
    order["payment_history"].extend(refunds)
    return json.dumps(order)


def _check_items(order: Record, item_ids: Sequence[str], new_item_ids: Sequence[str]) -> None:
    held = [item["item_id"] for item in order["items"]]
    for item_id in item_ids:
        if item_ids.count(item_id) > held.count(item_id):
            raise Refusal(f"{item_id} not found")
    if len(item_ids) != len(new_item_ids):
        raise Refusal("the number of items to be exchanged should match")


def _item(order: Record, item_id: str) -> Record:
    found = [item for item in order["items"] if item["item_id"] == item_id]
    return found[0]


def _price_difference(data: Data, order: Record, item_ids: Sequence[str], new_item_ids: Sequence[str]) -> float:
    difference = 0
    for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
        item = _item(order, item_id)
        variants = data["products"][item["product_id"]]["variants"]
        if not (new_item_id in variants and variants[new_item_id]["available"]):
            raise Refusal(f"new item {new_item_id} not found or available")
        difference += variants[new_item_id]["price"] - item["price"]
    return difference


def _payment_method(data: Data, order: Record, payment_method_id: str) -> Record:
    methods = data["users"][order["user_id"]]["payment_methods"]
    if payment_method_id not in methods:
        raise Refusal("payment method not found")
    return methods[payment_method_id]


def exchange_delivered_order_items(
    data: Data, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
) -> str:
    order = _order_with(data, order_id, "delivered", "non-delivered order cannot be exchanged")
    _check_items(order, item_ids, new_item_ids)
    difference = round(_price_difference(data, order, item_ids, new_item_ids), 2)
    method = _payment_method(data, order, payment_method_id)
    if method["source"] == "gift_card" and method["balance"] < difference:
        raise Refusal("insufficient gift card balance to pay for the price difference")
    order = data["orders"].edit(order_id)
    order["status"] = "exchange requested"
    order["exchange_items"] = sorted(item_ids)
    order["exchange_new_items"] = sorted(new_item_ids)
    order["exchange_payment_method_id"] = payment_method_id
    order["exchange_price_difference"] = difference
    return json.dumps(order)


def modify_pending_order_items(
    data: Data, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
) -> str:
    order = _order_with(data, order_id, "pending", "non-pending order cannot be modified")
    _check_items(order, item_ids, new_item_ids)
    difference = _price_difference(data, order, item_ids, new_item_ids)
    method = _payment_method(data, order, payment_method_id)
    if method["source"] == "gift_card" and method["balance"] < difference:
        raise Refusal("insufficient gift card balance to pay for the new item")
    order = data["orders"].edit(order_id)
    kind = "payment" if difference > 0 else "refund"
    order["payment_history"].append(
        {"transaction_type": kind, "amount": abs(difference), "payment_method_id": payment_method_id}
    )
    if method["source"] == "gift_card":
        _balance_changed(data, order["user_id"], payment_method_id, -difference)
    for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
        item = _item(order, item_id)
        variant = data["products"][item["product_id"]]["variants"][new_item_id]
        item["item_id"], item["price"], item["options"] = new_item_id, variant["price"], dict(variant["options"])
    order["status"] = "pending (item modified)"
    return json.dumps(order)


def modify_pending_order_payment(data: Data, order_id: str, payment_method_id: str) -> str:
    order = _order_with(data, order_id, "pending", "non-pending order cannot be modified")
    method, history = _payment_method(data, order, payment_method_id), order["payment_history"]
    if len(history) > 1 or history[0]["transaction_type"] != "payment":
        raise Refusal("there should be exactly one payment for a pending order")
    old_id, amount = history[0]["payment_method_id"], history[0]["amount"]
    if old_id == payment_method_id:
        raise Refusal("the new payment method should be different from the current one")
    if method["source"] == "gift_card" and method["balance"] < amount:
        raise Refusal("insufficient gift card balance to pay for the order")
    order = data["orders"].edit(order_id)
    for kind, payment_id in (("payment", payment_method_id), ("refund", old_id)):
        order["payment_history"].append({"transaction_type": kind, "amount": amount, "payment_method_id": payment_id})
    if method["source"] == "gift_card":
        _balance_changed(data, order["user_id"], payment_method_id, -amount)
    if "gift_card" in old_id:
        _balance_changed(data, order["user_id"], old_id, amount)
    return json.dumps(order)


def _address(address1: str, address2: str, city: str, state: str, country: str, zip: str) -> Record:
    found = {"address1": address1, "address2": address2, "city": city, "state": state, "country": country}
    return found | {"zip": zip}


def modify_pending_order_address(
    data: Data, order_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
) -> str:
    _order_with(data, order_id, "pending", "non-pending order cannot be modified")
    data["orders"].edit(order_id)["address"] = _address(address1, address2, city, state, country, zip)
    return data["orders"].shown(order_id)


def modify_user_address(
    data: Data, user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
) -> str:
    if user_id not in data["users"]:
        raise Refusal("user not found")
    data["users"].edit(user_id)["address"] = _address(address1, address2, city, state, country, zip)
    return data["users"].shown(user_id)


def return_delivered_order_items(data: Data, order_id: str, item_ids: list[str], payment_method_id: str) -> str:
    order = _order_with(data, order_id, "delivered", "non-delivered order cannot be returned")
    _payment_method(data, order, payment_method_id)
    paid_with = order["payment_history"][0]["payment_method_id"]
    if "gift_card" not in payment_method_id and payment_method_id != paid_with:
        raise Refusal("payment method should be either the original payment method or a gift card")
    held = [item["item_id"] for item in order["items"]]
    for item_id in item_ids:
        if item_ids.count(item_id) > held.count(item_id):
            raise Refusal("some item not found")
    order = data["orders"].edit(order_id)
    order["status"] = "return requested"
    order["return_items"] = sorted(item_ids)
    order["return_payment_method_id"] = payment_method_id
    return json.dumps(order)


TOOLS = (
    calculate,
    cancel_pending_order,
    exchange_delivered_order_items,
    find_user_id_by_email,
    find_user_id_by_name_zip,
    get_order_details,
    get_product_details,
    get_user_details,
    list_all_product_types,
    modify_pending_order_address,
    modify_pending_order_items,
    modify_pending_order_payment,
    modify_user_address,
    return_delivered_order_items,
    think,
    transfer_to_human_agents,
)
