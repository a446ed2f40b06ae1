"""tau-bench's domains as services: official tasks, wiki and tool schemas, and the official reward."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyturn.envs.benchmarks.tau.agent_tools import Desk
from manyturn.envs.benchmarks.tau.database import TUPLES, Base
from manyturn.envs.benchmarks.tau.domain import Deeds, Service, all_said
from manyturn.envs.benchmarks.tau.files import CLONE, DataError, Files, returned_literal, shared
from manyturn.envs.benchmarks.tau.v1 import airline, retail
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.tool import ToolError

TABLES = {"retail": ("orders", "products", "users"), "airline": ("flights", "reservations", "users")}
TOOLS = {"retail": (retail.RetailTools, retail.TOOLS), "airline": (airline.AirlineTools, airline.TOOLS)}
COUNTS = {"retail": {"train": 500, "dev": 20, "test": 115}, "airline": {"test": 50}}
# Digests of the release's tasks and tool schemas, which are Python source there and may lie in a folder as JSON.
RELEASED = {
    "retail/train": "4dae82b4722d73aacc74131f6746653f",
    "retail/dev": "2aff41d5e3bda20832e5fd7cf177e214",
    "retail/test": "b7187817d2f28d780a33621b520ea7a7",
    "retail/schemas": "76ed018286080a7e51b16a2a77008561",
    "airline/test": "0505188ac39797303f34716c337e09d9",
    "airline/schemas": "6c3fc8f155d968fdf9d0281dd22936d5",
}
LEAVES = "transfer_to_human_agents"  # ends the episode, and is left out where gold actions are replayed
LOOKS = frozenset({"calculate", "think", LEAVES})


class TauBenchDesk(Desk):
    """A desk that answers with the names which tau-bench's source has in Python's messages about arguments."""

    def call(self, name: str, arguments: Mapping[str, Any], by: str = "assistant") -> str:
        if name not in self._names:
            raise ToolError(f"Unknown action {name}")
        try:
            return super().call(name, arguments, by)
        except ToolError as error:
            method = f"{getattr(self.agent, name).__qualname__}()"
            original = f"{name.title().replace('_', '')}.invoke()"
            raise ToolError(str(error).replace(method, original)) from None


@shared
def load(folder: str | Path | None, domain: str, pinned: bool = True) -> Service:
    """A domain of a folder. Raises DataError."""
    files = Files(folder, "v1", domain, pinned)
    base = Base({table: files.records(f"{table}.json") for table in TABLES[domain]}, TUPLES)
    kind, names = TOOLS[domain]
    schemas = tuple(_schema(files, name) for name in names)
    _check(files, "schemas", list(schemas))
    return Service(
        tasks=_tasks(files),
        policy=files.text("wiki.md"),
        schemas=schemas,
        open=lambda task: TauBenchDesk(base, kind, names),
        judge=judge,
        writes=frozenset(name for name in names if not name.startswith(("get_", "find_", "list_", "search_"))) - LOOKS,
        left_out=frozenset({LEAVES}),
    )


def judge(desk: Desk, gold: Desk, task: Task, deeds: Deeds) -> Mapping[str, float]:
    """The reward of the paper: the database as after the gold actions, and every output said."""
    return {"database": float(desk.same(gold)), "outputs": all_said(task.params["say"], deeds.texts)}


def _tasks(files: Files) -> Mapping[str, tuple[Task, ...]]:
    together = files.json("tasks.json") if files.find("tasks.json") else None
    tasks = {}
    for split, count in COUNTS[files.domain].items():
        name = f"tasks_{split}.py" if together is None else "tasks.json"
        listed = files.calls(name) if together is None else together.get(split, ())
        if files.pinned and len(listed) != count:
            raise files.unreadable(name, f"{len(listed)} {split} tasks instead of {count}")
        try:
            _check(
                files, split, [[one[key] for key in ("user_id", "instruction", "actions", "outputs")] for one in listed]
            )
            tasks[split] = tuple(_task(files.domain, split, number, one) for number, one in enumerate(listed))
        except (KeyError, TypeError, AttributeError) as error:
            raise files.unreadable(name, error) from None
    return tasks


def _check(files: Files, what: str, content: list[Any]) -> None:
    """Raise DataError for tasks or schemas that are not those of the release."""
    if files.pinned and digest(content) != RELEASED[f"{files.domain}/{what}"]:
        raise DataError(
            f'the {files.domain} {what} tasks or tools in {files.root} are not those of the release: "{CLONE["v1"]}" '
            "fetches them; or give pinned=False, and scores are of another benchmark"
        )


def _task(domain: str, split: str, number: int, one: Mapping[str, Any]) -> Task:
    gold = [{"name": act["name"], "arguments": act["kwargs"], "by": "assistant"} for act in one["actions"]]
    params = {"benchmark": "tau-bench", "domain": domain, "user_id": one["user_id"], "gold": gold}
    params |= {"scenario": one["instruction"], "say": list(one["outputs"])}
    return Task(f"{split}/{domain}/{number}", split, params)


def _schema(files: Files, name: str) -> Any:
    """The official schema, from a list of them or from the tool's own file in a checkout."""
    if files.find("tools_schema.json") is not None:
        listed = {one["function"]["name"]: one for one in files.json("tools_schema.json", list)}
        if name not in listed:
            raise files.unreadable("tools_schema.json", f"it has no tool {name}")
        return listed[name]
    source = f"tools/{name}.py"
    try:
        return json.loads(json.dumps(returned_literal(files.read(source))))
    except (ValueError, SyntaxError, StopIteration) as error:
        raise DataError(f"{files.find(source)} has no tool schema ({error}): fetch it again") from None
