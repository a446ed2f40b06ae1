"""Lists of splits and tasks, as servers of OpenEnv and of the Open Reward Standard give them."""

import re
from typing import Any

from starlette.requests import Request

from manyturn.serving.episodes import MOST_LISTED, Episodes
from manyturn.serving.error_replies import Refusal

_KINDS = ("train", "validation", "test")  # of splits; there are no others


def served_name(episodes: Episodes) -> str:
    """The environment's name in addresses, which has no slash."""
    return re.split(r"[/:]", episodes.seats.facts.name)[-1]


def check_name(episodes: Episodes, request: Request) -> None:
    """Raise Refusal if the address names another environment."""
    name = served_name(episodes)
    if request.path_params.get("name", name).lower() != name.lower():
        raise Refusal("no_episode", f"there is no such environment here: it is {name}")


def listed_splits(episodes: Episodes) -> list[dict[str, str]]:
    """The splits that clients may play."""
    return [{"name": split, "type": split if split in _KINDS else "validation"} for split in episodes.splits]


async def listed_tasks(episodes: Episodes, what: str, body: Any) -> dict[str, Any]:
    """The answer to a question about tasks: how many there are, one, some, or all. Raises Refusal."""
    try:
        split, numbers = body["split"], [body.get(key) for key in ("index", "start", "stop")]
    except (KeyError, TypeError, AttributeError):
        raise Refusal("bad_request", "the request names a split, as JSON") from None
    if not isinstance(split, str) or any(type(number) not in (int, type(None)) for number in numbers):
        raise Refusal("bad_request", "a split is text, and index, start and stop are numbers")
    (index, start, stop), name = numbers, served_name(episodes)
    count = (await episodes.tasks(split, 0, 1))[1]
    match what:
        case "num_tasks":
            return {"num_tasks": count}
        case "task" if index is not None and 0 <= index < count:
            [task], _ = await episodes.tasks(split, index, 1)
            return {"task": {"task": task, "split": split}, "env_name": name}
        case "task_range" | "tasks":
            first, end = (0, count) if what == "tasks" else slice(start, stop).indices(count)[:2]
            if end - first > MOST_LISTED:
                raise Refusal("bad_request", f"{split} has {count} tasks: ask for {MOST_LISTED} at once, by task_range")
            ids = (await episodes.tasks(split, first, end - first))[0] if end > first else []
            return {"tasks": [{"task": task, "split": split} for task in ids], "env_name": name}
    raise Refusal("bad_request", f"there are num_tasks, task with an index below {count}, tasks and task_range")
