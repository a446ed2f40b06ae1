"""The telephone company's database."""

from functools import lru_cache
from typing import Any

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.desk.customer_generator import person
from manyturn.envs.desk.database import Tables

_PLANS = {
    "L1": {"name": "Mini", "monthly": 9, "data_gb": 2, "roaming": False},
    "L2": {"name": "Basic", "monthly": 15, "data_gb": 5, "roaming": False},
    "L3": {"name": "Plus", "monthly": 24, "data_gb": 20, "roaming": True},
    "L4": {"name": "Travel", "monthly": 35, "data_gb": 40, "roaming": True},
    "L5": {"name": "Max", "monthly": 49, "data_gb": 100, "roaming": True},
}
_DEVICES = ("phone", "tablet", "watch", "car", "router", "alarm")
_MONTHS = ("January", "February", "March", "April", "May", "June")


@lru_cache(maxsize=8)
def tables(users: int, seed: int) -> Tables:
    """A database of this many customers, with two to six lines and one to three bills each."""
    draws = Draws("desk telecom", users, seed)
    records: dict[str, Any] = {}
    lines: dict[str, Any] = {}
    bills: dict[str, Any] = {}
    for number in range(1, users + 1):
        mine = tuple(f"N{len(lines) + i + 1}" for i in range(draws.between(2, 6)))
        due = tuple(f"X{len(bills) + i + 1}" for i in range(draws.between(1, 3)))
        records[f"C{number}"] = {
            **person(draws, number),
            "lines": mine,
            "bills": due,
            "fee_waived": draws.below(4) == 0,
        }
        devices = draws.below(len(_DEVICES))
        for i, key in enumerate(mine):
            lines[key] = _line(draws, f"C{number}", _DEVICES[(devices + i) % len(_DEVICES)])
        for i, key in enumerate(due):
            bills[key] = _bill(draws, f"C{number}", _MONTHS[-1 - i])
    return Tables({"users": records, "lines": lines, "bills": bills, "plans": _PLANS})


def _line(draws: Draws, user: str, device: str) -> dict[str, Any]:
    plan = draws.pick(tuple(_PLANS))
    status = draws.pick(("active", "active", "active", "suspended", "closed"))
    return {
        "user_id": user,
        "device": device,
        "status": status,
        "plan_id": plan,
        "roaming": _PLANS[plan]["roaming"] and draws.below(2) == 0,
        "data_left_gb": draws.pick((0, 0, 3, 8)),
        "added_gb": 0,
        "contract_months_left": draws.pick((0, 0, 5)),
        "suspensions": draws.below(2) + (status == "suspended"),
        "sim": draws.pick(("card", "esim")),
        "deposit": draws.between(20, 99),
        "credit": draws.between(100, 199),
    }


def _bill(draws: Draws, user: str, month: str) -> dict[str, Any]:
    status = draws.pick(("open", "paid", "paid", "overdue"))
    return {
        "user_id": user,
        "month": month,
        "amount": draws.between(9, 99),
        "status": status,
        "late_fee": draws.pick((0, 5, 5)),
    }
