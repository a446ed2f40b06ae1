"""The run of an audit: passes over all tasks, each exact where the last one was uncertain, until the truth is reliable.

Tasks do not depend on each other within a pass, so they can be spread over processes, and one that was finished is
kept. Between passes one number goes to all of them, the error of the effects that the reliability asks for.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manyturn.trainers.credit.audit.effects import Effects, joined, reliability
from manyturn.trainers.credit.audit.sampling_budget import error_for
from manyturn.trainers.credit_audit.config import AuditConfig
from manyturn.trainers.credit_audit.continuations import cost_of, effects_of, needed, reach_of
from manyturn.trainers.credit_audit.group_episodes import PlayedTask
from manyturn.trainers.credit_audit.resume_log import AuditJournal

PASSES = 8
Report = Callable[[str, int, int], None]
"""Takes what is done, how much of it is done, and how much there is."""


class Jobs(Protocol):
    """Does the work on tasks, in this process or in others; yields each task as soon as it is done."""

    def begin(self, tasks: Sequence[str]) -> Iterator[PlayedTask]: ...
    def extend(self, tasks: Sequence[tuple[PlayedTask, list[int]]]) -> Iterator[PlayedTask]: ...


@dataclass
class Audited:
    """Everything that an audit has played.

    Attributes:
        tasks: in the order of the split.
        ended: why no more continuations were added: "reliability", "steps", "seconds", "most",
            "passes", or "equal returns", where no turn has an effect.
        passes: for each pass the continuations so far, the steps so far, and the reliability.
    """

    tasks: list[PlayedTask]
    ended: str = ""
    passes: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return sum(task.steps for task in self.tasks)

    @property
    def effects(self) -> Effects:
        """The true effects of all turns, as far as they are known."""
        reach = reach_of(self.tasks)
        return joined([effects_of(task, reach) for task in self.tasks])

    @property
    def continuations(self) -> int:
        return sum(len(start.returns) + len(start.critic) for task in self.tasks for start in task.starts)


def audited(
    jobs: Jobs,
    names: Sequence[str],
    config: AuditConfig,
    out: Path | None = None,
    report: Report = lambda doing, done, of: None,
) -> Audited:
    """Play everything.

    Args:
        names: ids of the tasks.
        out: folder in which finished work is kept; an audit that was interrupted goes on from there.
    """
    watch, journal = _Watch(config.seconds), AuditJournal(out)
    audit = Audited(_pass(jobs.begin, names, 0, journal, watch, report, "groups"))
    _note(audit)
    for number in range(1, PASSES + 1):
        if len(audit.tasks) < len(names) or watch.is_over:
            audit.ended = "seconds"
            return audit
        if reach_of(audit.tasks) == 0:
            audit.ended = "equal returns"
            return audit
        error = error_for(audit.effects, config.reliability)
        if error is None:
            audit.ended = "reliability"
            return audit
        more, is_cut = _affordable(
            audit, [needed(task, error, reach_of(audit.tasks), config.most) for task in audit.tasks], config
        )
        if not any(one.any() for one in more):
            audit.ended = "steps" if is_cut else "most"
            return audit
        by_name = {task.task: (task, one.tolist()) for task, one in zip(audit.tasks, more, strict=True)}
        audit.tasks = _pass(
            lambda some, by_name=by_name: jobs.extend([by_name[name] for name in some]),
            names, number, journal, watch, report, f"pass {number}",
        )  # fmt: skip
        _note(audit)
    audit.ended = "passes"
    return audit


def _pass(
    work: Callable[[Sequence[str]], Iterator[PlayedTask]],
    names: Sequence[str],
    number: int,
    journal: AuditJournal,
    watch: "_Watch",
    report: Report,
    doing: str,
) -> list[PlayedTask]:
    """One pass over the tasks: what is kept of it is read, the rest is done."""
    done = {name: task for name in names if (task := journal.read(number, name)) is not None}
    report(doing, len(done), len(names))
    for task in work([name for name in names if name not in done]):
        journal.write(number, task)
        done[task.task] = task
        report(doing, len(done), len(names))
        if watch.is_over:
            break
    return [done[name] for name in names if name in done]


def _affordable(audit: Audited, more: Sequence[np.ndarray], config: AuditConfig) -> tuple[list[np.ndarray], bool]:
    """Continuations that there are steps for, each task's share alike; and whether they are fewer than needed."""
    cost = sum(cost_of(task, one) for task, one in zip(audit.tasks, more, strict=True))
    steps = config.steps - audit.steps
    if cost <= steps:
        return list(more), False
    share = max(0.0, steps / cost)
    return [np.floor(one * share).astype(np.int64) for one in more], True


def _note(audit: Audited) -> None:
    trust = reliability(audit.effects) if audit.tasks else 0.0
    audit.passes.append({"continuations": audit.continuations, "steps": audit.steps, "reliability": trust})


class _Watch:
    """The limit of seconds."""

    def __init__(self, seconds: float | None):
        self._until = None if seconds is None else time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return self._until is not None and time.monotonic() > self._until
