"""The official files, where they are, and small domains made here."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from needs_files import data

OFFICIAL = (
    *(f"v1/airline/{name}.json" for name in ("flights", "reservations", "tasks", "tools_schema", "users")),
    *(f"v1/retail/{name}.json" for name in ("orders", "products", "tasks", "tools_schema", "users")),
    *(f"v1/{domain}/wiki.md" for domain in ("airline", "retail")),
    *(f"v2/{domain}/{name}" for domain in ("airline", "retail") for name in ("policy.md", "split_tasks.json")),
    *("v2/airline/tasks.json", "v2/retail/tasks.json", "v2/retail/db.json"),
    *(f"v2/telecom/{name}.toml" for name in ("db", "user_db")),
    *(f"v2/telecom/{name}.json" for name in ("split_tasks", "tasks_base_regenerated", "tasks_small")),
    *(f"v2/telecom/{name}.md" for name in ("main_policy", "main_policy_solo", "tech_support_manual")),
    *(f"v2/telecom/{name}.md" for name in ("tech_support_workflow", "tech_support_workflow_solo")),
)


@pytest.fixture(scope="session")
def official() -> Path:
    """Folder of the official files."""
    return data("tau", *OFFICIAL)


def _order(number: int, user: str, status: str, paid: str, price: float) -> dict[str, Any]:
    address = {"address1": "1 Hill Road", "address2": "", "city": "Perth", "country": "USA", "state": "TX", "zip": "1"}
    item = {"name": "Lamp", "product_id": "500", "item_id": "9000000001", "price": price, "options": {"colour": "red"}}
    payment = {"transaction_type": "payment", "amount": price, "payment_method_id": paid}
    return {
        "order_id": f"#W{number}",
        "user_id": user,
        "address": address,
        "items": [item],
        "status": status,
        "fulfillments": [],
        "payment_history": [payment],
    }


def _variant(item_id: str, colour: str, price: float, available: bool = True) -> dict[str, Any]:
    return {"item_id": item_id, "options": {"colour": colour}, "available": available, "price": price}


def retail_tables() -> dict[str, Any]:
    """A shop with one product, two customers and three orders."""
    users = {}
    for name, zip_code in (("ada", "11111"), ("bob", "22222")):
        user_id, card = f"{name}_stone_1234", f"gift_card_{zip_code}"
        users[user_id] = {
            "user_id": user_id,
            "name": {"first_name": name.title(), "last_name": "Stone"},
            "address": {
                "address1": "1 Hill Road",
                "address2": "",
                "city": "Perth",
                "country": "USA",
                "state": "TX",
                "zip": zip_code,
            },
            "email": f"{name}@example.com",
            "payment_methods": {
                card: {"source": "gift_card", "balance": 50.0, "id": card},
                f"paypal_{zip_code}": {"source": "paypal", "id": f"paypal_{zip_code}"},
            },
            "orders": [],
        }
    orders = [
        _order(1000001, "ada_stone_1234", "pending", "gift_card_11111", 10.1),
        _order(1000002, "ada_stone_1234", "delivered", "paypal_11111", 10.1),
        _order(1000003, "bob_stone_1234", "pending", "paypal_22222", 80.0),
    ]
    variants = [_variant("9000000001", "red", 10.1), _variant("9000000002", "blue", 12.4)]
    variants.append(_variant("9000000003", "green", 1.0, available=False))
    product = {"name": "Lamp", "product_id": "500", "variants": {one["item_id"]: one for one in variants}}
    return {"users": users, "orders": {one["order_id"]: one for one in orders}, "products": {"500": product}}


def _v1(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, table in retail_tables().items():
        (folder / f"{name}.json").write_text(json.dumps(table))
    cancel = {"name": "cancel_pending_order", "kwargs": {"order_id": "#W1000001", "reason": "no longer needed"}}
    look = {"name": "get_order_details", "kwargs": {"order_id": "#W1000002"}}
    leave = {"name": "transfer_to_human_agents", "kwargs": {"summary": "wants a person"}}
    tasks = [
        ("You are Ada Stone in 11111. You want to cancel your order #W1000001, no longer needed.", [look, cancel], []),
        ("You are Ada Stone in 11111. You want to know the price of your lamp.", [look], ["10.1"]),
        ("You are Ada Stone in 11111. You want a person.", [leave], []),
    ]
    listed = [
        {"user_id": "ada_stone_1234", "instruction": text, "actions": actions, "outputs": outputs}
        for text, actions, outputs in tasks
    ]
    (folder / "tasks.json").write_text(json.dumps({"train": listed[:1], "dev": listed[1:2], "test": listed}))
    (folder / "wiki.md").write_text("Be kind.")


def _v2_telecom(folder: Path) -> None:
    folder.mkdir(parents=True)
    line = {"line_id": "L1", "phone_number": "555", "status": "Active", "plan_id": "P1", "data_used_gb": 1.0}
    address = {"street": "1 Hill Road", "city": "Perth", "state": "TX", "zip_code": "1"}
    customer = {
        "customer_id": "C1",
        "full_name": "Ada Stone",
        "date_of_birth": "1990-01-01",
        "email": "ada@example.com",
        "phone_number": "554",
        "address": address,
        "line_ids": ["L1"],
    }
    plan = {"plan_id": "P1", "name": "Small", "data_limit_gb": 5.0, "price_per_month": 40.0}
    tables = {"plans": [plan | {"data_refueling_price_per_gb": 2.0}], "customers": [customer], "lines": [line]}
    (folder / "db.toml").write_text(tomli_w.dumps(tables))
    (folder / "user_db.toml").write_text("[device]\nbattery_level = 80\n")
    who = {"env_type": "user", "func_name": "set_user_info", "arguments": {"name": "Ada", "phone_number": "555"}}
    off = {"env_type": "user", "func_name": "turn_airplane_mode_on", "arguments": {}}
    overdue = {"customer_id": "C1", "line_id": "L1", "new_bill_id": "B9", "contract_ended": False}
    suspend = {"env_type": "assistant", "func_name": "suspend_line_for_overdue_bill", "arguments": overdue}
    online = {"env_type": "user", "func_name": "assert_service_status", "arguments": {"expected_status": "connected"}}
    fly = {"name": "toggle_airplane_mode", "arguments": {}, "requestor": "user"}
    ask = {"name": "send_payment_request", "arguments": {"customer_id": "C1", "bill_id": "B9"}}
    pay = {"name": "make_payment", "arguments": {}, "requestor": "user"}
    resume = {"name": "resume_line", "arguments": {"customer_id": "C1", "line_id": "L1"}}
    reboot = {"name": "reboot_device", "arguments": {}, "requestor": "user"}
    tasks = [
        ("fly", [who, off], [fly], ["ENV_ASSERTION"]),
        ("bill", [who, suspend, off], [ask, pay, resume, fly, reboot], ["ENV_ASSERTION", "ACTION"]),
    ]
    scenario = {
        "domain": "telecom",
        "reason_for_call": "You have no service.",
        "known_info": "You are Ada Stone with phone number 555. You are currently at home.",
        "unknown_info": None,
        "task_instructions": "Be brief. If the agent asks you to pay a bill, you accept.",
    }
    listed = [
        {
            "id": name,
            "ticket": f"No service ({name}).",
            "user_scenario": {"persona": f"You are in a hurry to {name}.", "instructions": scenario},
            "initial_state": {"initialization_actions": set_up},
            "evaluation_criteria": {"actions": gold, "env_assertions": [online], "reward_basis": basis},
        }
        for name, set_up, gold, basis in tasks
    ]
    (folder / "tasks.json").write_text(json.dumps(listed))
    (folder / "split_tasks.json").write_text(json.dumps({"train": ["fly"], "test": ["bill"]}))
    (folder / "main_policy.md").write_text("Be kind to the customer.")
    (folder / "main_policy_solo.md").write_text("Be kind.")
    (folder / "tech_support_manual.md").write_text("Try everything.")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a small retail desk of tau-bench and a small telecom desk of tau2-bench."""
    folder = tmp_path_factory.mktemp("small")
    _v1(folder / "v1" / "retail")
    _v2_telecom(folder / "v2" / "telecom")
    from manyturn.envs.benchmarks.tau.v1.retail import TOOLS

    schemas = [{"type": "function", "function": {"name": name, "description": "", "parameters": {}}} for name in TOOLS]
    (folder / "v1" / "retail" / "tools_schema.json").write_text(json.dumps(schemas))
    return folder


@dataclass
class Endpoint:
    """An endpoint on loopback that says what a test puts into it: words, or ``(tool, arguments)``.

    Attributes:
        says: what it says next; taken from the front.
        requests: that it got, oldest first.
    """

    url: str
    says: list[Any]
    requests: list[dict[str, Any]]


def _message(reply: Any) -> dict[str, Any]:
    if isinstance(reply, str):
        return {"role": "assistant", "content": reply}
    function = {"name": reply[0], "arguments": json.dumps(reply[1])}
    return {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]}


@pytest.fixture
def endpoint(serve: Callable[[Callable[[dict[str, Any]], bytes]], str]) -> Endpoint:
    says: list[Any] = []
    requests: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> bytes:
        requests.append(request)
        return json.dumps({"choices": [{"message": _message(says.pop(0)), "finish_reason": "stop"}]}).encode()

    return Endpoint(serve(reply), says, requests)
