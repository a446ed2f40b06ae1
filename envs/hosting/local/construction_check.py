"""Trial of an environment: a separate process makes it before this one does, or in its place."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.env_description import EnvRecord
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.hosting.handle.env_spec_message import hello_of
from manyturn.envs.hosting.local.resource_use import WorkerLimits
from manyturn.envs.hosting.local.subprocess_call import OneShot, OneShotLost


def try_out(name: str, kwargs: Mapping[str, Any] | None, timeout: float, limits: WorkerLimits) -> None:
    """Raise OneShotLost, with the place, if an environment hangs, dies or grows when it is made or lists its tasks.

    What it raises is not reported: who makes it afterwards meets that too, and can say more. An environment is tried
    once in each process.

    Args:
        name: id or ``FILE.py:Class``.
        kwargs: passed to the constructor, plain JSON values.
        timeout: seconds that each of its answers may take.
        limits: of its process.
    """
    _tried(json.dumps(hello_of(name, kwargs)), timeout, limits.model_dump_json())


@cache
def _tried(hello: str, timeout: float, limits: str) -> None:
    greeting, allowed = json.loads(hello), WorkerLimits.model_validate_json(limits)
    with OneShot(listed, (greeting["name"], greeting["kwargs"]), greeting, timeout, allowed) as work:
        try:
            for _ in work:
                pass
        except OneShotLost as lost:
            raise OneShotLost(f"{greeting['name']} cannot be used: {lost}") from None
        except Exception:
            return  # the environment's own, or a mistake in its name


def listed(name: str, kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Make the environment and ask for its tasks; in the process that is for that."""
    handle = EnvHandle(name, kwargs)
    for split in handle.splits:
        yield
        beat()
        if len(tasks := handle.tasks(split)):
            assert tasks[0]
    yield
    handle.close()


def examine(
    hello: Mapping[str, Any], timeout: float, limits: WorkerLimits, ended: threading.Event | None = None
) -> EnvRecord:
    """The record of an environment that a process of its own opens, so that this one never does.

    Args:
        hello: from ``hello_of``.
        timeout: seconds that each of its answers may take.
        limits: of its process.
        ended: set by another thread that wants no more.

    Raises:
        OneShotLost: it hangs, dies or grows when it is made, or nobody wants it any more.
        Exception: as making it raises.
    """
    with OneShot(recorded, (hello["name"], hello["kwargs"], hello["wrappers"]), hello, timeout, limits, ended) as work:
        [plain] = work
    return EnvRecord.from_plain(plain)


def recorded(name: str, kwargs: Mapping[str, Any], wrappers: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The record of an environment; in the process that opens it."""
    handle = EnvHandle(name, kwargs, wrappers)
    beat()
    plain = EnvRecord.of(handle).plain()
    handle.close()
    yield plain
