"""A mail-order shop's policy and what its customers want."""

from collections.abc import Mapping
from typing import Any, get_args

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.desk.customer_generator import address
from manyturn.envs.desk.database import Record, Store
from manyturn.envs.desk.desks.retail_tables import tables
from manyturn.envs.desk.desks.retail_tools import Reason, RetailTools
from manyturn.envs.desk.pack import Arguments, Drawn, Kind, Pack, Rule, Thing
from manyturn.envs.tools.calls import CallRequest

_PENDING = frozenset({"cancel_order", "set_order_address", "set_order_payment", "change_item"})
_BACK = frozenset({"return_item", "exchange_item"})
_SWAPS = frozenset({"change_item", "exchange_item"})


def _order(store: Store, call: Arguments) -> Record:
    return store["orders", call["order_id"]]


def _old(store: Store, call: Arguments) -> Record:
    return store["items", call["item_id"]]


def _new(store: Store, call: Arguments) -> Record:
    return store["items", call["new_item_id"]]


def _payment(store: Store, call: Arguments) -> Mapping[str, Any]:
    payments = store["users", _order(store, call)["user_id"]]["payments"]
    return next(payment for payment in payments if payment["payment_id"] == call["payment_id"])


RULES = (
    Rule(
        "R1",
        "Only a pending order can be cancelled or changed (its address, its payment, its items).",
        _PENDING,
        lambda store, call: _order(store, call)["status"] != "pending",
    ),
    Rule(
        "R2",
        "An order can be cancelled only if it was ordered by mistake or is no longer needed.",
        frozenset({"cancel_order"}),
        lambda store, call: call["reason"] not in ("ordered by mistake", "no longer needed"),
    ),
    Rule(
        "R3",
        "Only items of a delivered order can be returned or exchanged.",
        _BACK,
        lambda store, call: _order(store, call)["status"] != "delivered",
    ),
    Rule(
        "R4",
        "Returns and exchanges are possible within 30 days of delivery.",
        _BACK,
        lambda store, call: (_order(store, call)["days_since_delivery"] or 0) > 30,
    ),
    Rule(
        "R5",
        "A price difference is settled with the order's payment method or with a gift card.",
        frozenset({"exchange_item"}),
        lambda store, call: (
            call["payment_id"] != _order(store, call)["payment_id"] and _payment(store, call)["type"] != "gift card"
        ),
    ),
    Rule(
        "R6",
        "An item can be changed or exchanged only for an item of the same product.",
        _SWAPS,
        lambda store, call: _new(store, call)["product_id"] != _old(store, call)["product_id"],
    ),
    Rule(
        "R7",
        "A replacement item must be in stock.",
        _SWAPS,
        lambda store, call: _new(store, call)["stock"] == 0,
    ),
    Rule(
        "R8",
        "An order can have only one exchange.",
        frozenset({"exchange_item"}),
        lambda store, call: _order(store, call)["exchanged"],
    ),
    Rule(
        "R9",
        "A gift card can pay for an order only if its balance covers the total.",
        frozenset({"set_order_payment"}),
        lambda store, call: _payment(store, call).get("balance", 10**9) < _order(store, call)["total"],
    ),
    Rule(
        "R10",
        "A final-sale item cannot be returned or exchanged.",
        _BACK,
        lambda store, call: _old(store, call)["final_sale"],
    ),
)


def _cancel(draws: Draws, store: Store, key: str) -> Drawn:
    reason = draws.pick(get_args(Reason))
    return {"reason": reason}, {"reason": reason}


def _readdress(draws: Draws, store: Store, key: str) -> Drawn:
    place = address(draws)
    return {"address": place}, {"address": place}


def _repay(draws: Draws, store: Store, key: str) -> Drawn:
    order = store["orders", key]
    others = [p for p in store["users", order["user_id"]]["payments"] if p["payment_id"] != order["payment_id"]]
    payment = draws.pick(others)
    return {"payment_id": payment["payment_id"]}, {"payment": payment["type"]}


def _return(draws: Draws, store: Store, key: str) -> Drawn:
    items = store["orders", key]["items"]
    if not items:
        return None
    item = draws.pick(items)
    return {"item_id": item}, {"item": store["items", item]["name"]}


def _swap(draws: Draws, store: Store, key: str) -> Drawn:
    back = _return(draws, store, key)
    if back is None:
        return None
    arguments, facts = back
    old = store["items", arguments["item_id"]]
    products = tuple(store.tables.records["products"])
    product = old["product_id"] if draws.below(8) else draws.pick(products)
    new = draws.pick([key for key in store["products", product]["items"] if key != arguments["item_id"]])
    words = f"{store['items', new]['color']} {store['items', new]['name']}"
    return {**arguments, "new_item_id": new}, {**facts, "new": words}


def _exchange(draws: Draws, store: Store, key: str) -> Drawn:
    swap = _swap(draws, store, key)
    if swap is None:
        return None
    payment = draws.pick(store["users", store["orders", key]["user_id"]]["payments"])
    return {**swap[0], "payment_id": payment["payment_id"]}, {**swap[1], "payment": payment["type"]}


def _look_at_items(store: Store, call: Arguments) -> tuple[CallRequest, ...]:
    new = _new(store, call)["product_id"]
    listed = () if new == _old(store, call)["product_id"] else (CallRequest("list_products", {}),)
    return (
        CallRequest("get_item", {"item_id": call["item_id"]}),
        *listed,
        CallRequest("get_product", {"product_id": new}),
    )


def _look_at_user(store: Store, call: Arguments) -> tuple[CallRequest, ...]:
    return (CallRequest("get_user", {"user_id": _order(store, call)["user_id"]}),)


KINDS = (
    Kind(
        "cancel",
        "cancel_order",
        "order_id",
        "Cancel {object}; reason: {reason}.",
        "a cancellation of {object}",
        {"reason": "reason for the cancellation"},
        _cancel,
        simple=True,
    ),
    Kind(
        "readdress",
        "set_order_address",
        "order_id",
        "Send {object} to {address}.",
        "another address for {object}",
        {"address": "address for the delivery"},
        _readdress,
    ),
    Kind(
        "repay",
        "set_order_payment",
        "order_id",
        "Charge {object} to the {payment} instead.",
        "another payment for {object}",
        {"payment": "payment method"},
        _repay,
        _look_at_user,
        simple=True,
    ),
    Kind(
        "change",
        "change_item",
        "order_id",
        "In {object}, replace the {item} with the {new}.",
        "a change of an item in {object}",
        {"item": "item to be changed", "new": "item to send instead"},
        _swap,
        _look_at_items,
    ),
    Kind(
        "return",
        "return_item",
        "order_id",
        "Return the {item} of {object}.",
        "a return of an item of {object}",
        {"item": "item to be returned"},
        _return,
        lambda store, call: (CallRequest("get_item", {"item_id": call["item_id"]}),),
        simple=True,
    ),
    Kind(
        "exchange",
        "exchange_item",
        "order_id",
        "Exchange the {item} of {object} for the {new}, and settle the difference by {payment}.",
        "an exchange of an item of {object}",
        {
            "item": "item to be exchanged",
            "new": "item to get in exchange",
            "payment": "payment method for the difference",
        },
        _exchange,
        lambda store, call: (*_look_at_items(store, call), *_look_at_user(store, call)),
    ),
    Kind(
        "move",
        "set_user_address",
        "user_id",
        "Change the address of {object} to {address}.",
        "a new address for {object}",
        {"address": "new home address"},
        _readdress,
    ),
)

RETAIL = Pack(
    name="retail",
    place="You work at the service desk of a mail-order shop.",
    tables=tables,
    desk_tools=RetailTools,
    rules=RULES,
    kinds=KINDS,
    things={
        "order_id": Thing(
            "orders",
            "get_order",
            "order",
            "the order with the {words}",
            lambda store, key: tuple(store["items", item]["name"] for item in store["orders", key]["items"]),
        ),
        "user_id": Thing("users", "get_user", "customer", "the customer", lambda store, key: ("",)),
    },
    figures={"total": "total", "shipping": "shipping fee"},
    brief={
        "users": ("payments",),
        "orders": ("user_id", "status", "items", "total", "payment_id", "days_since_delivery"),
        "items": ("final_sale",),
    },
    ids={"C": "user_id", "W": "order_id", "I": "item_id", "G": "product_id", "P": "payment_id"},
)
