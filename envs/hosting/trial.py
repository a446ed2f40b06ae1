"""Trial of an environment: make it and list its tasks in a separate process before this one does."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from manyturn.envs.hosting.deadline import beat
from manyturn.envs.hosting.errand import Errand, ErrandLost
from manyturn.envs.hosting.hello import hello_of
from manyturn.envs.hosting.host import Host


def try_out(name: str, kwargs: Mapping[str, Any] | None, timeout: float) -> None:
    """Raise ErrandLost, with the place, if an environment hangs or ends its process when it is made or lists its tasks.

    What it raises is not reported: who makes it afterwards meets that too, and can say more. An environment is tried
    once in each process.

    Args:
        name: id or ``FILE.py:Class``.
        kwargs: passed to the constructor, plain JSON values.
        timeout: seconds that each of its answers may take.
    """
    _tried(json.dumps(hello_of(name, kwargs)), timeout)


@cache
def _tried(hello: str, timeout: float) -> None:
    greeting = json.loads(hello)
    with Errand(listed, (greeting["name"], greeting["kwargs"]), greeting, timeout) as work:
        try:
            for _ in work:
                pass
        except ErrandLost as lost:
            raise ErrandLost(f"{greeting['name']} cannot be used: {lost}") from None
        except Exception:
            return  # the environment's own, or a mistake in its name


def listed(name: str, kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Make the environment and ask for its tasks; in the process that is for that."""
    host = Host(name, kwargs)
    for split in host.splits:
        yield
        beat()
        if len(tasks := host.tasks(split)):
            assert tasks[0]
    yield
    host.close()
