"""The telephone company's policy and what its customers want."""

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.desk.database import Record, Store
from manyturn.envs.desk.desks.telecom_tables import tables
from manyturn.envs.desk.desks.telecom_tools import TelecomTools
from manyturn.envs.desk.pack import Arguments, Drawn, Kind, Pack, Rule, Thing, no_arguments
from manyturn.envs.tools.calls import CallRequest

_LINES = frozenset({"set_plan", "suspend_line", "resume_line", "set_roaming", "add_data", "replace_sim"})
_MONEY = frozenset({"set_plan", "resume_line", "add_data"})


def _line(store: Store, call: Arguments) -> Record:
    return store["lines", call["line_id"]]


def _bill(store: Store, call: Arguments) -> Record:
    return store["bills", call["bill_id"]]


def _in_debt(store: Store, call: Arguments) -> bool:
    bills = store["users", _line(store, call)["user_id"]]["bills"]
    return any(store["bills", key]["status"] == "overdue" for key in bills)


RULES = (
    Rule(
        "R1", "A closed line cannot be changed.", _LINES, lambda store, call: _line(store, call)["status"] == "closed"
    ),
    Rule(
        "R2",
        "A line's plan cannot be changed while its contract has months left.",
        frozenset({"set_plan"}),
        lambda store, call: _line(store, call)["contract_months_left"] > 0,
    ),
    Rule(
        "R3",
        "While a customer has an overdue bill, no plan can be changed, no line resumed and no data added.",
        _MONEY,
        _in_debt,
    ),
    Rule(
        "R4",
        "A line can be suspended only once.",
        frozenset({"suspend_line"}),
        lambda store, call: _line(store, call)["suspensions"] > 0,
    ),
    Rule(
        "R5",
        "Roaming can be turned on only if the line's plan allows it.",
        frozenset({"set_roaming"}),
        lambda store, call: call["on"] and not store["plans", _line(store, call)["plan_id"]]["roaming"],
    ),
    Rule(
        "R6",
        "At most 10 GB of data can be added at once.",
        frozenset({"add_data"}),
        lambda store, call: call["gb"] > 10,
    ),
    Rule(
        "R7",
        "Data can be added only to a line with none left.",
        frozenset({"add_data"}),
        lambda store, call: _line(store, call)["data_left_gb"] > 0,
    ),
    Rule(
        "R8",
        "The SIM of a suspended line cannot be replaced.",
        frozenset({"replace_sim"}),
        lambda store, call: _line(store, call)["status"] == "suspended",
    ),
    Rule(
        "R9",
        "A late fee can be waived only once per customer.",
        frozenset({"waive_late_fee"}),
        lambda store, call: store["users", _bill(store, call)["user_id"]]["fee_waived"],
    ),
    Rule(
        "R10",
        "A late fee can be waived only if the bill is paid.",
        frozenset({"waive_late_fee"}),
        lambda store, call: _bill(store, call)["status"] != "paid",
    ),
    Rule(
        "R11",
        "A paid bill cannot be paid again.",
        frozenset({"pay_bill"}),
        lambda store, call: _bill(store, call)["status"] == "paid",
    ),
)


def _suspend(draws: Draws, store: Store, key: str) -> Drawn:
    return None if store["lines", key]["status"] == "suspended" else ({}, {})


def _resume(draws: Draws, store: Store, key: str) -> Drawn:
    return None if store["lines", key]["status"] == "active" else ({}, {})


def _waive(draws: Draws, store: Store, key: str) -> Drawn:
    return ({}, {}) if store["bills", key]["late_fee"] else None


def _plan(draws: Draws, store: Store, key: str) -> Drawn:
    plans = store.tables.records["plans"]
    plan = draws.pick([plan for plan in plans if plan != store["lines", key]["plan_id"]])
    return {"plan_id": plan}, {"plan": plans[plan]["name"]}


def _roaming(draws: Draws, store: Store, key: str) -> Drawn:
    on = not store["lines", key]["roaming"]
    return {"on": on}, {"on": "on" if on else "off"}


def _data(draws: Draws, store: Store, key: str) -> Drawn:
    gb = draws.pick((1, 2, 5, 10, 20))
    return {"gb": gb}, {"gb": str(gb)}


def _sim(draws: Draws, store: Store, key: str) -> Drawn:
    sim = "card" if store["lines", key]["sim"] == "esim" else "esim"
    return {"sim": sim}, {"sim": sim}


def _look_at_plans(store: Store, call: Arguments) -> tuple[CallRequest, ...]:
    return (CallRequest("list_plans", {}),)


def _look_at_bills(store: Store, call: Arguments) -> tuple[CallRequest, ...]:
    """All bills of the customer, to see that none is overdue."""
    user = _line(store, call)["user_id"]
    bills = store["users", user]["bills"]
    return (CallRequest("get_user", {"user_id": user}), *(CallRequest("get_bill", {"bill_id": key}) for key in bills))


def _look_at_plans_and_bills(store: Store, call: Arguments) -> tuple[CallRequest, ...]:
    return (*_look_at_plans(store, call), *_look_at_bills(store, call))


def _look_at_user(store: Store, call: Arguments) -> tuple[CallRequest, ...]:
    return (CallRequest("get_user", {"user_id": _bill(store, call)["user_id"]}),)


KINDS = (
    Kind(
        "plan",
        "set_plan",
        "line_id",
        "Put {object} on the plan {plan}.",
        "another plan for {object}",
        {"plan": "new plan"},
        _plan,
        _look_at_plans_and_bills,
    ),
    Kind(
        "suspend", "suspend_line", "line_id", "Suspend {object}.", "a suspension of {object}", {}, _suspend, simple=True
    ),
    Kind(
        "resume", "resume_line", "line_id", "Resume {object}.", "a resumption of {object}", {}, _resume, _look_at_bills
    ),
    Kind(
        "roaming",
        "set_roaming",
        "line_id",
        "Turn roaming {on} for {object}.",
        "another roaming setting for {object}",
        {"on": "roaming setting"},
        _roaming,
        _look_at_plans,
    ),
    Kind(
        "data",
        "add_data",
        "line_id",
        "Add {gb} GB of data to {object}.",
        "more data for {object}",
        {"gb": "number of gigabytes"},
        _data,
        _look_at_bills,
    ),
    Kind(
        "sim",
        "replace_sim",
        "line_id",
        "Replace the SIM of {object} with {sim}.",
        "another SIM for {object}",
        {"sim": "type of SIM"},
        _sim,
        simple=True,
    ),
    Kind(
        "pay",
        "pay_bill",
        "bill_id",
        "Take the payment for {object}.",
        "a payment for {object}",
        {},
        no_arguments,
        simple=True,
    ),
    Kind(
        "waive",
        "waive_late_fee",
        "bill_id",
        "Waive the late fee of {object}.",
        "a waiver of the late fee of {object}",
        {},
        _waive,
        _look_at_user,
        simple=True,
    ),
)

TELECOM = Pack(
    name="telecom",
    place="You work at the service desk of a telephone company.",
    tables=tables,
    desk_tools=TelecomTools,
    rules=RULES,
    kinds=KINDS,
    things={
        "line_id": Thing(
            "lines", "get_line", "line", "the line of the {words}", lambda store, key: (store["lines", key]["device"],)
        ),
        "bill_id": Thing(
            "bills", "get_bill", "bill", "the bill of {words}", lambda store, key: (store["bills", key]["month"],)
        ),
    },
    figures={"deposit": "deposit", "credit": "credit"},
    brief={
        "users": ("fee_waived",),
        "lines": ("status", "suspensions", "sim"),
        "bills": ("user_id", "status", "late_fee"),
    },
    ids={"C": "user_id", "N": "line_id", "X": "bill_id", "L": "plan_id"},
)
