"""tau2-bench's domains as services: official tasks and policies, and the official reward as far as rules can tell it.

Parts of the reward that only a language model could judge are not judged: ``Task.params["not_judged"]`` names them, and
the outcome is the product of the others. Of the 114 retail tasks 40 have such parts.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manyturn.envs.benchmarks.tau.agent_tools import Desk
from manyturn.envs.benchmarks.tau.domain import AgentCall, Deeds, Service, all_said
from manyturn.envs.benchmarks.tau.files import Files, shared
from manyturn.envs.benchmarks.tau.v2 import airline, databases, retail
from manyturn.envs.benchmarks.tau.v2.telecom import agent_tools, phone
from manyturn.envs.benchmarks.tau.v2.telecom.desk import TelecomDesk
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.tool import tool_of

AGENT_TOOLS = {
    "retail": (retail.RetailTools, retail.TOOLS),
    "airline": (airline.AirlineTools, airline.TOOLS),
    "telecom": (agent_tools.TelecomTools, agent_tools.TOOLS),
}
SPLITS = {"retail": ("train", "test"), "airline": ("train", "test"), "telecom": ("train", "test", "small")}
LISTS = {
    "retail": ("tasks.json",),
    "airline": ("tasks.json",),
    "telecom": ("tasks.json", "tasks_base_regenerated.json", "tasks_small.json"),  # those that are there
}
COUNTS = {
    "retail": {"train": 74, "test": 40},
    "airline": {"train": 30, "test": 20},
    "telecom": {"train": 74, "test": 40, "small": 20},
}


@shared
def load(folder: str | Path | None, domain: str, pinned: bool = True) -> Service:
    """A domain of a folder. Raises DataError."""
    files = Files(folder, "v2", domain, pinned)
    tasks, base = _tasks(files), databases.BASES[domain](files)
    kind, names = AGENT_TOOLS[domain]
    functions = [getattr(kind, name) for name in names]
    schemas = tuple(tool_of(function).schema for function in functions)
    if domain != "telecom":
        return Service(
            tasks=tasks,
            policy=files.text("policy.md"),
            schemas=schemas,
            open=lambda task: Desk(base, kind, names),
            judge=judge,
            writes=kind.WRITES,
            guidelines=_guidelines(files, "simulation_guidelines.md"),
        )
    phone_base = databases.phone(files)
    return Service(
        tasks=tasks,
        policy=_telecom_policy(files, "main_policy.md"),
        schemas=schemas,
        open=lambda task: TelecomDesk(base, phone_base, task.params["set_up"]),
        judge=judge,
        writes=kind.WRITES | phone.TelecomUserTools.WRITES,
        user_schemas=tuple(tool_of(getattr(phone.TelecomUserTools, name)).schema for name in phone.TOOLS),
        solo_policy=_telecom_policy(files, "main_policy_solo.md"),
        guidelines=_guidelines(files, "simulation_guidelines_tools.md"),
    )


def _telecom_policy(files: Files, name: str) -> str:
    main, manual = files.text(name), files.text("tech_support_manual.md")
    return f"<main_policy>\n{main}\n</main_policy>\n<tech_support_policy>\n{manual}\n</tech_support_policy>"


def _guidelines(files: Files, name: str) -> str:
    folder = Files(files.root, "v2", "user_simulator", files.pinned)
    return folder.text(name) if folder.find(name) is not None else ""


def judge(desk: Desk, gold: Desk, task: Task, deeds: Deeds) -> Mapping[str, float]:
    """The parts that the task's reward is made of and rules can tell."""
    params, parts = task.params, {}
    if "DB" in params["basis"]:
        parts["database"] = float(desk.same(gold))
    if "ENV_ASSERTION" in params["basis"] and isinstance(desk, TelecomDesk):
        parts["assertions"] = float(all([desk.holds(assertion) for assertion in params["assertions"]]))
    if "ACTION" in params["basis"]:
        parts["actions"] = float(all(_was_called(action, deeds.calls) for action in params["gold"]))
    if "COMMUNICATE" in params["basis"]:
        parts["communicated"] = all_said(params["say"], deeds.texts)
    return parts


def _was_called(action: Mapping[str, Any], called: Iterable[AgentCall]) -> bool:
    """True if a call matches a gold action; without ``compare`` the arguments that the call has are compared."""
    for name, arguments in called:
        keys = arguments.keys() if action["compare"] is None else action["compare"]
        if name == action["name"] and all(
            (key in arguments, arguments.get(key)) == (key in action["arguments"], action["arguments"].get(key))
            for key in keys
        ):
            return True
    return False


def _tasks(files: Files) -> Mapping[str, tuple[Task, ...]]:
    listed: dict[str, Mapping[str, Any]] = {}
    lists = [name for name in LISTS[files.domain] if files.find(name) is not None]
    for name in lists or LISTS[files.domain][:1]:
        try:
            listed |= {one["id"]: one for one in files.json(name, list)}
        except (KeyError, TypeError) as error:
            raise files.unreadable(name, error) from None
    splits = files.json("split_tasks.json")
    tasks = {}
    for split in SPLITS[files.domain]:
        ids = [task_id for task_id in splits.get(split, ()) if task_id in listed]
        if not ids:
            continue
        if files.pinned and len(ids) != COUNTS[files.domain][split]:
            raise files.unreadable(lists[0], f"{len(ids)} {split} tasks instead of {COUNTS[files.domain][split]}")
        try:
            tasks[split] = tuple(_task(files.domain, split, listed[task_id]) for task_id in ids)
        except (KeyError, TypeError, AttributeError) as error:
            raise files.unreadable(lists[0], error) from None
    if not tasks:
        raise files.unreadable("split_tasks.json", "none of its tasks is there")
    return tasks


def _task(domain: str, split: str, one: Mapping[str, Any]) -> Task:
    criteria, state = one["evaluation_criteria"], one.get("initial_state") or {}
    if state.get("initialization_data") or state.get("message_history"):
        raise TypeError(f"task {one['id']} begins in the middle of a dialogue, which is not supported")
    gold = [
        {
            "name": action["name"],
            "arguments": action["arguments"],
            "by": action.get("requestor") or "assistant",
            "compare": action.get("compare_args"),
        }
        for action in criteria["actions"] or ()
    ]
    params = {
        "benchmark": "tau2-bench",
        "domain": domain,
        "scenario": one["user_scenario"]["instructions"],
        "ticket": one.get("ticket"),
        "set_up": state.get("initialization_actions") or [],
        "gold": gold,
        "say": criteria.get("communicate_info") or [],
        "assertions": criteria.get("env_assertions") or [],
        "basis": criteria["reward_basis"],
        "not_judged": ["NL_ASSERTION"]
        if "NL_ASSERTION" in criteria["reward_basis"] and criteria.get("nl_assertions")
        else [],
    }
    if persona := one["user_scenario"].get("persona"):
        params["persona"] = persona
    return Task(f"{split}/{domain}/{one['id']}", split, params)
