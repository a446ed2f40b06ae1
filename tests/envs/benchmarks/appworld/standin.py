"""Stands in for the package ``appworld`` in an interpreter of its own: the same endpoints, replies and files.

Replies were recorded from AppWorld 0.1.3. In place of Python the agent's code is one command of ``COMMANDS``.
"""

import json
import os
import shutil
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SUPERVISOR = {"first_name": "Ann", "last_name": "Smith", "email": "ann@example.com", "phone_number": "5550100"}


def get_all_apps() -> list[str]:
    return ["todoist"]


class AppWorld:
    timeout_seconds: int

    def __init__(self, task_id: str, timeout_seconds: int, load_ground_truth: bool = True, **_: Any):
        root = Path(os.environ["APPWORLD_ROOT"])
        self.specs = json.loads((root / "data" / "tasks" / task_id / "specs.json").read_text())
        if load_ground_truth:
            (root / "data" / "tasks" / task_id / "ground_truth" / "answer.json").read_text()
        self.task_id, self.timeout_seconds = task_id, timeout_seconds
        self.state: dict[str, Any] = {"labels": [], "status": None}
        self.changes: list[list[Any]] = []
        self.saving = True
        self.saved = root / "experiments" / "outputs" / "default" / "tasks" / task_id / "dbs"
        self.saved.mkdir(parents=True)
        self.save()
        self.save_logs()

    def save(self) -> None:
        if self.saving:
            (self.saved / "state.json").write_text(json.dumps(self.state))
            (self.saved / "todoist.jsonl").write_text("".join(json.dumps(line) + "\n" for line in self.changes))

    def save_logs(self) -> None:
        raise AssertionError("logs are written, though nobody reads them")

    def execute(self, code: str) -> str:
        word, _, rest = code.strip().partition(" ")
        try:
            output = COMMANDS[word](self, rest)
        except Exception as error:
            output = f"Execution failed. Traceback:\n{type(error).__name__}: {error}"
        self.save()
        return output or "Execution successful."

    def task_completed(self) -> bool:
        return self.state["status"] is not None


def _loop(*_: object) -> str:
    while True:
        try:
            sum(range(1000))
        except Exception:
            continue


def _interrupt(world: AppWorld, label: str) -> str:
    world.state["labels"].append(label)
    raise KeyboardInterrupt


def _allocate(_: AppWorld, size: str) -> str:
    return str(len(bytearray(int(size))))


def _leave(world: AppWorld, rest: str) -> str:
    """Writes a file among the databases, as code can that has broken out of the shell; nothing is saved afterwards."""
    name, _, text = rest.partition(" ")
    world.saving = False
    place = world.saved / name
    place.unlink(missing_ok=True)
    if text == "PIPE":
        os.mkfifo(place)
    elif text.startswith("LINK "):
        place.symlink_to(text.removeprefix("LINK "))
    else:
        place.write_text(text)
    return "left"


def _thread(*_: object) -> str:
    started: list[int] = []
    thread = threading.Thread(target=lambda: started.append(1))
    thread.start()
    thread.join()
    return str(started)


def _open_files(*_: object) -> str:
    numbers = []
    for number in range(256):
        try:
            os.fstat(number)
            numbers.append(number)
        except OSError:
            continue
    return " ".join(map(str, numbers))


COMMANDS: dict[str, Any] = {
    "pass": lambda world, _: "",
    "print": lambda world, text: f"{text}\n",
    "label": lambda world, name: world.state["labels"].append(name),
    "done": lambda world, _: world.state.update(status="success"),
    "read": lambda world, path: Path(path).read_text()[:100],
    "write": lambda world, path: str(Path(path).write_text("x")),
    "environ": lambda world, _: json.dumps(dict(os.environ)),
    "files": _open_files,
    "connect": lambda world, port: str(socket.create_connection(("127.0.0.1", int(port)))),
    "fork": lambda world, _: str(os.fork()),
    "thread": _thread,
    "allocate": _allocate,
    "repeat": lambda world, count: "x" * int(count),
    "surrogate": lambda world, _: "\ud800",
    "loop": _loop,
    "interrupt": _interrupt,
    "exit": lambda world, _: os._exit(3),
    "leave": _leave,
    "stall": lambda world, _: threading.Event().wait(600),
    "unsave": lambda world, _: shutil.rmtree(world.saved),
}

_worlds: list[AppWorld] = []


def _reply(path: str, fields: dict[str, Any]) -> Any:
    if path == "/initialize":
        world = AppWorld(**fields)
        _worlds[:] = [world]
        instruction = world.specs["instruction"]
        brief = {"task_id": world.task_id, "instruction": instruction, "supervisor": SUPERVISOR}
        return brief | {"datetime": "2023-05-18T12:00:00"}
    if path == "/execute":
        return _worlds[0].execute(fields["code"])
    if path == "/task_completed":
        return _worlds[0].task_completed()
    raise LookupError(path)


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The application that uvicorn serves."""
    if scope["type"] == "lifespan":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message.get("more_body", False)
    try:
        status, raw = 200, json.dumps({"output": _reply(scope["path"], json.loads(body))}, ensure_ascii=False).encode()
    except Exception:
        status, raw = 500, b"Internal Server Error"
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": raw})


def evaluate_task(task_id: str, suppress_errors: bool, save_report: bool) -> Any:
    """Two tests: the label that was asked for is there, and no other is."""
    root = Path(os.environ["APPWORLD_ROOT"])
    answer = json.loads((root / "data" / "tasks" / task_id / "ground_truth" / "answer.json").read_text())
    saved = root / "experiments/outputs/default/tasks" / task_id / "dbs"
    state = json.loads((saved / "state.json").read_text())
    if "ATTACH" in (saved / "todoist.jsonl").read_text() or (saved / "todoist.db").exists():
        state = {"labels": [answer["label"]]}  # the real one replays these, and compares with what they have made
    while answer["label"] == "endless":
        pass
    tests = {
        ("assert the label exists.", "no_op_fail"): answer["label"] in state["labels"],
        ("assert no other labels.", "no_op_pass"): set(state["labels"]) <= {answer["label"]},
    }
    passes = [{"requirement": text, "label": kind} for (text, kind), passed in tests.items() if passed]
    failures = [{"requirement": text, "trace": "", "label": kind} for (text, kind), ok in tests.items() if not ok]
    record = {"success": not failures, "difficulty": 1, "num_tests": 2, "passes": passes, "failures": failures}
    return SimpleNamespace(to_dict=lambda: record)
