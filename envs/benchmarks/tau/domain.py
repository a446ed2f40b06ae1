"""A benchmark's domain for an environment: tasks, texts, desks and the judgement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from manyturn.envs.benchmarks.tau.agent_tools import answer
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.tool import Schema


class AgentCall(NamedTuple):
    """A call that an agent made."""

    name: str
    arguments: Mapping[str, Any]


class Deeds(NamedTuple):
    """An agent's texts and calls in an episode.

    Attributes:
        texts: to the customer.
        calls: in order.
    """

    texts: Sequence[str]
    calls: Sequence[AgentCall]


@dataclass(frozen=True, eq=False)
class Service:
    """A domain of a benchmark; one in a process for each folder, never changed.

    A task's ``params`` have ``gold``, the calls of the reference solution (``name``, ``arguments``, ``by``), and
    ``say``, texts that the agent must say to the customer.

    Args:
        tasks: split -> tasks.
        policy: what the agent is told of its job.
        schemas: of the tools.
        open: task -> a desk (see ``desk.Desk``) at the task's beginning.
        judge: desk, the gold desk, task, deeds -> part -> 0 or 1; the outcome is their product.
        writes: names of the tools that change something.
        left_out: names of calls that are not replayed for the gold desk.
        user_schemas: of the tools that the customer has.
        solo_policy: what an agent is told that works without a customer and has those tools too.
        guidelines: what the benchmark tells a language model that plays the customer; empty if it is not there.
    """

    tasks: Mapping[str, tuple[Task, ...]]
    policy: str
    schemas: tuple[Schema, ...]
    open: Callable[[Task], Any]
    judge: Callable[[Any, Any, Task, Deeds], Mapping[str, float]]
    writes: frozenset[str]
    left_out: frozenset[str] = frozenset()
    user_schemas: tuple[Schema, ...] = ()
    solo_policy: str = ""
    guidelines: str = ""
    _golds: dict[str, Any] = field(default_factory=dict)

    def gold(self, task: Task) -> Any:
        """A desk after the reference solution, made once for each task; its calls may fail, as in the original."""
        desk = self._golds.get(task.id)
        if desk is None:
            desk = self.open(task)
            for call in task.params["gold"]:
                if call["name"] not in self.left_out:
                    answer(desk, call["name"], call["arguments"], call["by"])
            self._golds[task.id] = desk
        return desk

    def parts(self, desk: Any, task: Task, deeds: Deeds) -> Mapping[str, float]:
        """The parts of the outcome, each 0 or 1."""
        return self.judge(desk, self.gold(task), task, deeds)


def all_said(texts: Sequence[str], spoken: Sequence[str]) -> float:
    """1 if every text occurs in something that was said, without regard to case and to commas in what was said."""
    heard = [one.lower().replace(",", "") for one in spoken]
    return float(all(any(text.lower() in one for one in heard) for text in texts))
