"""The shop's database."""

from functools import lru_cache
from typing import Any

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.desk.customer_generator import person
from manyturn.envs.desk.database import Tables

_PRODUCTS = (
    "desk lamp, backpack, rain jacket, office chair, water bottle, headphones, keyboard, yoga mat, coffee grinder, "
    "tea kettle, wall clock, garden hose, picture frame, hand mixer, bed sheet, beach towel, hiking boots, toolbox, "
    "bicycle helmet, board game"
).split(", ")
_COLORS = ("black", "white", "red", "blue", "green")
STATUSES = ("pending", "pending", "processed", "delivered", "delivered", "delivered")
PAYMENTS = ("card", "gift card", "bank account")


@lru_cache(maxsize=8)
def tables(users: int, seed: int) -> Tables:
    """A database of this many customers, with two to six orders each."""
    draws = Draws("desk retail", users, seed)
    items: dict[str, Any] = {}
    products: dict[str, Any] = {}
    for number, name in enumerate(_PRODUCTS):
        price, keys = draws.between(8, 120), []
        for color in _COLORS:
            keys.append(f"I{len(items) + 1}")
            stock, final_sale = (0 if draws.below(4) == 0 else draws.between(1, 50)), draws.below(5) == 0
            items[keys[-1]] = {
                "product_id": f"G{number + 1}",
                "name": name,
                "color": color,
                "price": price + draws.below(10),
                "stock": stock,
                "final_sale": final_sale,
            }
        products[f"G{number + 1}"] = {"name": name, "items": tuple(keys)}
    records: dict[str, Any] = {}
    orders: dict[str, Any] = {}
    for number in range(1, users + 1):
        payments = tuple(
            {"payment_id": f"P{3 * number + i}", "type": kind, "balance": draws.between(5, 400)}
            if kind == "gift card"
            else {"payment_id": f"P{3 * number + i}", "type": kind}
            for i, kind in enumerate(PAYMENTS)
        )
        mine = tuple(f"W{len(orders) + i + 1}" for i in range(draws.between(2, 6)))
        records[f"C{number}"] = {**person(draws, number), "orders": mine, "payments": payments}
        for key in mine:
            orders[key] = _order(draws, f"C{number}", records[f"C{number}"]["address"], payments, items)
    return Tables({"users": records, "orders": orders, "products": products, "items": items})


def _order(draws: Draws, user: str, address: str, payments: tuple[Any, ...], items: dict[str, Any]) -> dict[str, Any]:
    names, keys = set[str](), []
    for _ in range(draws.between(1, 3)):
        key = draws.pick(tuple(items))
        if items[key]["name"] not in names:
            names.add(items[key]["name"])
            keys.append(key)
    status = draws.pick(STATUSES)
    return {
        "user_id": user,
        "status": status,
        "items": tuple(keys),
        "total": sum(items[key]["price"] for key in keys),
        "shipping": draws.between(3, 19),
        "payment_id": draws.pick(payments)["payment_id"],
        "address": address,
        "days_since_delivery": draws.between(1, 60) if status == "delivered" else None,
        "exchanged": status == "delivered" and draws.below(4) == 0,
        "note": "",
    }
