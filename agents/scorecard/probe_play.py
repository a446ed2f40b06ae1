"""Play of references and probes on held-out tasks, in the process that runs the environment.

All policies play the same tasks with the same seeds. An error of the environment is no reward: the episode is left out
and counted.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gymnasium.error import ResetNeeded

from manyturn.agents.scorecard.contamination import overlap
from manyturn.agents.scorecard.probes import Actor, Demonstration, Opening, Probe, probes
from manyturn.envs.conformance.probe_episodes import LONGEST, Subject, by_random_policy
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.envs.hosting.handle.gymnasium_adapter import offered

_POLICY_SECONDS = 20.0  # for one policy, where turns are slow
_READING_SECONDS = 20.0  # for first observations of training tasks
_TRAINING, _HELD_OUT = 2_000, 200  # tasks that are compared, at most
_LEARNT = 5  # times as many demonstrations as tasks that are played
_ALIKE = 20  # pairs of tasks with one text that the expert plays
_SHOWN = 20_000  # characters of a text that leave the process


def played(name: str, kwargs: Mapping[str, Any], samples: int, seed: int, timeout: float) -> Iterator[dict[str, Any]]:
    """Plain values as soon as they are there: ``facts``, then each ``row``, then ``overlap`` and ``texts``."""
    subject = Subject(name, kwargs, samples, seed, timeout)
    handle = subject.handle
    split = next((one for one in ("test", "validation") if one in subject.splits), subject.splits[-1])
    train = "train" if "train" in subject.splits and split != "train" else None
    tools = offered(handle.env, "tools", None) or ()
    tasks = subject.some_tasks(samples, split)
    yield {
        "facts": {
            **{"split": split, "train": train, "tasks": len(tasks), "seed": seed, "turns": subject.most_turns},
            **{"max_turns": handle.max_turns, "roles": list(handle.roles), "tools": len(tools)},
            **{"expert": handle.has_expert, "admissible": handle.has_admissible, "user": handle.user},
        }
    }
    for reference in ("expert", "random"):
        if reference == "random" or handle.has_expert:
            yield {"row": _row(subject, _reference(reference, handle), tasks)}
    lessons = _demonstrations(subject, train, samples * _LEARNT) if train and handle.has_expert else []
    for probe in probes(tools, lessons):
        yield {"row": _row(subject, probe, tasks)}
    yield from _texts(subject, split, train)
    subject.close()


def _reference(name: str, handle: EnvHandle) -> Probe:
    if name == "expert":
        about = "The environment's own expert."
        return Probe(name, "reference", about, lambda opening: lambda step, rng: handle.expert())
    about = "Draws an admissible command, or letters where none are listed."
    return Probe(name, "reference", about, lambda opening: lambda step, rng: by_random_policy(handle, step, rng))


def _row(subject: Subject, probe: Probe, tasks: Sequence[Task]) -> dict[str, Any]:
    """Success and return of one policy by task; ``None`` of a success that is not known."""
    stop, success, total = time.monotonic() + _POLICY_SECONDS, dict[str, Any](), dict[str, float]()
    errors, first_error, cut, turns = 0, "", 0, 0
    for task in tasks:
        if total and subject.is_slow and time.monotonic() > stop:
            break
        try:
            step, value, length = _episode(subject, task, probe.begin, probe.name)
        except (EnvError, ResetNeeded) as error:
            errors, first_error = errors + 1, first_error or f"{error}"
            continue
        if math.isnan(value):
            errors, first_error = errors + 1, first_error or f"{task.id}: the return is not a number"
            continue
        # An episode that goes on has reached nothing yet.
        success[task.id] = step.success if step.ended else False
        total[task.id], cut, turns = value, cut + (not step.ended), turns + length
    return {
        **{"name": probe.name, "kind": probe.kind, "about": probe.about, "success": success, "return": total},
        **{"errors": errors, "first_error": first_error[:300], "cut": cut, "turns": turns},
    }


def _episode(subject: Subject, task: Task, begin: Callable[[Opening], Actor], name: str) -> tuple[Answer, float, int]:
    """Last answer, return and turns of an episode. Raises EnvError."""
    handle, rng = subject.handle, generator("scorecard", subject.seed, task.id, name)
    longest = LONGEST if name == "expert" else subject.most_turns
    step = handle.reset(task, int(generator("scorecard", subject.seed, task.id).integers(2**31)))
    actor, total, turns = begin(Opening(step, handle.instructions)), 0.0, 0
    while not step.ended and turns < longest:
        step = handle.step(actor(step, rng))
        total, turns = total + step.reward, turns + 1
    return step, total, turns


def _demonstrations(subject: Subject, split: str, count: int) -> list[Demonstration]:
    """The expert's solutions of training tasks, as many as the time allows."""
    stop, lessons = time.monotonic() + _POLICY_SECONDS, list[Demonstration]()
    for task in subject.some_tasks(count, split):
        if lessons and time.monotonic() > stop:
            break
        with suppress(EnvError, ResetNeeded):
            observation, actions = _solution(subject, task)
            lessons += [Demonstration(observation, actions)] if actions else []
    return lessons


def _solution(subject: Subject, task: Task) -> tuple[str, tuple[str, ...]]:
    """First observation, and the expert's actions up to the end."""
    handle, actions = subject.handle, list[str]()
    step = first = handle.reset(task, 0)
    while not step.ended and len(actions) < LONGEST:
        actions.append(handle.expert())
        step = handle.step(actions[-1])
    return first.observation, tuple(actions)


def _texts(subject: Subject, split: str, train: str | None) -> Iterator[dict[str, Any]]:
    """Overlap with training tasks, and the texts of held-out tasks."""
    held_out = _observations(subject, subject.some_tasks(_HELD_OUT, split))
    if train is not None:
        training = _observations(subject, subject.some_tasks(_TRAINING, train))
        common = overlap("train", held_out, training.items())
        alike = _solved_alike(subject, common.same) if subject.handle.has_expert else None
        yield {"overlap": {**common.plain(), "solved_alike": alike}}
    yield {"texts": {task: text[:_SHOWN] for task, text in held_out.items()}}


def _observations(subject: Subject, tasks: Sequence[Task]) -> dict[str, str]:
    """The first observation of each task, as many as the time allows."""
    stop, texts = time.monotonic() + _READING_SECONDS, dict[str, str]()
    for task in tasks:
        if time.monotonic() > stop:
            break
        with suppress(EnvError):
            texts[task.id] = subject.handle.reset(task, 0).observation
    return texts


def _solved_alike(subject: Subject, same: Mapping[str, str]) -> list[int] | None:
    """Pairs that the expert solves by the same actions, and pairs that were looked at; None without a pair."""
    find = getattr(subject.handle.env.unwrapped, "find", None)
    pairs = list(same.items())[:_ALIKE]
    if find is None or not pairs:
        return None
    alike = 0
    for pair in pairs:
        beat()
        with suppress(EnvError, ResetNeeded):
            one, two = (_solution(subject, find(task))[1] for task in pair)
            alike += one == two
    return [alike, len(pairs)]
