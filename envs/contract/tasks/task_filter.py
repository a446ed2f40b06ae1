"""Choice of tasks of a split by their ids and tags."""

from collections.abc import Iterable, Sequence
from itertools import islice

from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.tasks.task import Task, task_finder

TAG = "tag="
_TAGGED = 20_000  # tasks of a split that are looked at for a tag: a generated split may have a million
_SUGGESTED = 2_000  # tasks from which a nearby id is suggested
_LISTED = 20


class TaskChoiceError(ValueError):
    """The tasks that were named do not exist, or there are none; the text says what would fix it."""


def chosen_tasks(words: Sequence[str] | None, split: str, env: EnvFacts) -> Sequence[Task]:
    """The tasks that words name, in the words' order, each once; those of a tag in the order of the split.

    Args:
        words: ids, and ``tag=NAME`` for each task with that tag among the first 20,000 of the split; None: the split.
        split: the split that they are taken from.

    Raises:
        TaskChoiceError: there is no task of an id in the split, or none with a tag, or no word at all.
    """
    tasks, chosen = env.tasks(split), dict[str, Task]()
    if words is None:
        return tasks
    if not words:
        raise TaskChoiceError("no task is named: give ids, @FILE, failed:FOLDER or tag=NAME, or leave tasks out")
    find = task_finder(tasks)
    for word in words:
        if word.startswith(TAG):
            chosen |= {task.id: task for task in _tagged(tasks, word.removeprefix(TAG), split, env.name)}
        elif (task := find(word)) is not None:
            chosen[task.id] = task
        else:
            raise TaskChoiceError(_unknown(word, tasks, split, env))
    return list(chosen.values())


def names_all(words: Iterable[str]) -> bool:
    """True if each word names a task, so that their number is known before the tasks are looked at."""
    return not any(word.startswith(TAG) for word in words)


def _tagged(tasks: Sequence[Task], tag: str, split: str, name: str) -> list[Task]:
    looked_at = list(islice(tasks, _TAGGED))
    if tagged := [task for task in looked_at if tag in task.tags]:
        return tagged
    tags = sorted({tag for task in looked_at for tag in task.tags})
    more = f", and {len(tags) - _LISTED} more" if len(tags) > _LISTED else ""
    there = f"there are {', '.join(tags[:_LISTED])}{more}" if tags else "its tasks have no tags: name ids"
    raise TaskChoiceError(f"no task of the split {split} of {name} has the tag {tag!r}; {_near(tag, tags)}{there}")


def _unknown(word: str, tasks: Sequence[Task], split: str, env: EnvFacts) -> str:
    message = f"{env.name} has no task {word!r} in its split {split}"
    for other in env.splits:
        if other != split and _has(env, other, word):
            return f"{message}: it is one of the split {other}"
    if word.isdecimal():
        return f"{message}: name ids; a number of tasks is --limit, and of those in a training step rollout.tasks"
    ids = [task.id for task in islice(tasks, _SUGGESTED)]
    parts = [part.strip() for part in word.split(",")]
    if len(parts) > 1 and any(_has(env, split, part) for part in parts):
        return f"{message}: write several ids with blanks between them, {' '.join(parts)}, or in a file, @FILE"
    return f"{message}; {_near(word, ids)}its ids are like {', '.join(map(repr, ids[:3])) or 'nothing: it is empty'}"


def _has(env: EnvFacts, split: str, task_id: str) -> bool:
    try:
        return task_finder(env.tasks(split))(task_id) is not None
    except ValueError:
        return False  # a split that is not installed has no tasks here


def _near(word: str, names: Sequence[str]) -> str:
    close = near_names(word, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}? Otherwise: " if close else ""
