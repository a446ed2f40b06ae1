"""Splits and tasks that a server lists, as those of OpenEnv and of the Open Reward Standard do."""

import json
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.env_registry import NeedsSetup, OutsideLost
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task
from manyturn.envs.openenv.address import Address
from manyturn.envs.openenv.faults import BadAnswer, short

_MOST_BYTES = 32 * 2**20  # of one answer
_AT_ONCE = 64  # tasks of one request
_KEPT = 64  # requests whose tasks are kept
_ABSENT = frozenset({404, 405, 501})
_SEEDS = 2**20  # tasks of a server that lists none
_SPLIT = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)  # it stands in ids, tables and the names of files


class TaskLists:
    """Lists of a server's tasks. Raises OutsideLost if nothing answers.

    Args:
        address: of the server.
        seconds: that an answer may take.
        name: of the environment there; None for the first that it lists.

    Attributes:
        name: of the environment; None where the server lists none.
        splits: in the server's order; empty if it lists no tasks.
    """

    def __init__(self, address: Address, seconds: float, name: str | None = None):
        self._address, self._seconds = address, seconds
        named = self.response("GET", "/list_environments") if name is None else [name]
        self.name = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else None
        self.splits = self._splits()
        self._tasks: OrderedDict[tuple[str, int], list[Any]] = OrderedDict()

    def _splits(self) -> tuple[str, ...]:
        listed = self.response("GET", f"/{self.name}/splits") if self.name else None
        if listed is None:
            return ()
        if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
            raise BadAnswer(f"the server lists its splits as {short(listed)}")
        names = [one.get("name") for one in listed]
        if not all(isinstance(name, str) and _SPLIT.fullmatch(name) for name in names) or len(set(names)) < len(names):
            raise BadAnswer(f"the server lists its splits as {short(listed)}")
        return tuple(map(str, names))

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split, asked for as they are needed; seeds, where the server lists none."""
        if not self.splits:
            return GeneratedTasks(lambda i: Task(f"{split}/{i}", split, {"seed": i}), _SEEDS, f"{split}/")
        answer = self.response("POST", f"/{self.name}/num_tasks", {"split": split})
        count = answer.get("num_tasks") if isinstance(answer, Mapping) else None
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise BadAnswer(f"the server counts the tasks of {split} as {short(answer)}")
        return GeneratedTasks(lambda i: self._task(split, i, count), count, f"{split}/")

    def _task(self, split: str, index: int, count: int) -> Task:
        first = index - index % _AT_ONCE
        if (page := self._tasks.get((split, first))) is None:
            request = {"split": split, "start": first, "stop": min(first + _AT_ONCE, count)}
            answer = self.response("POST", f"/{self.name}/task_range", request)
            page = answer.get("tasks") if isinstance(answer, Mapping) else None
            if not isinstance(page, list) or len(page) != request["stop"] - first:
                raise BadAnswer(
                    f"the server lists tasks {first} to {request['stop'] - 1} of {split} as {short(answer)}"
                )
            self._tasks[split, first] = page
            if len(self._tasks) > _KEPT:
                self._tasks.popitem(last=False)
        spec = page[index - first]
        return Task(f"{split}/{index}", split, spec if isinstance(spec, dict) and spec else {"task": spec})

    def response(self, method: str, path: str, body: Any = None) -> Any:
        """Server's answer at a path; None where it has none."""
        raw, where, stop = bytearray(), f"{self._address.http}{path}", time.monotonic() + self._seconds
        headers = {"Accept-Encoding": "identity", **self._address.headers}
        try:
            with (
                httpx.Client(timeout=self._seconds, trust_env=not self._address.is_here) as client,
                client.stream(method, where, json=body, headers=headers) as response,
            ):
                for chunk in response.iter_raw():
                    raw += chunk
                    if time.monotonic() > stop:  # httpx counts the time of each piece alone
                        raise OutsideLost(f"{where} has not answered within {self._seconds:g} s")
                    if len(raw) > _MOST_BYTES:
                        raise BadAnswer(f"{where} sends more than {_MOST_BYTES:,} bytes")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            reason = short(str(error) or type(error).__name__)
            raise OutsideLost(f"{where} cannot be reached: {reason}: start the server, or fix the address") from None
        if response.status_code in (401, 403):
            raise NeedsSetup(
                f"{where} refused with status {response.status_code}: set {self._address.token} to the server's token"
            )
        if response.status_code in _ABSENT:
            return None
        if response.status_code != 200:
            raise OutsideLost(
                f"{where} answers with status {response.status_code}: {short(raw.decode(errors='replace'))}"
            )
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise BadAnswer(f"{where} gives no JSON: {short(raw.decode(errors='replace'))}") from None


class ListedTasks:
    """The methods of an environment of which a server lists the tasks.

    Attributes:
        splits: of the environment; at least one.
    """

    splits: tuple[str, ...]
    _lists: TaskLists

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split."""
        if split not in self.splits:
            raise ValueError(f"the server has no split {split!r}; it has {', '.join(self.splits)}")
        return self._lists.tasks(split)

    def find(self, task_id: str) -> Task:
        """The task with this id."""
        split, _, number = task_id.rpartition("/")
        tasks = self.tasks(split) if split in self.splits else ()
        if not number.isdecimal() or str(int(number)) != number or int(number) >= len(tasks):
            raise KeyError(f"the server has no task {task_id!r}; an id looks like {self.splits[0]}/0")
        return tasks[int(number)]

    def _named_or_drawn(self, options: Mapping[str, Any] | None, seed: int) -> Task:
        """The task of ``options``, or one that the seed draws from ``train``, or else from the first split."""
        named = (options or {}).get("task")
        if named is None:
            tasks = self.tasks("train" if "train" in self.splits else self.splits[0])
            return tasks[int(generator("draw", seed).integers(len(tasks)))]
        return named if isinstance(named, Task) else self.find(named)
