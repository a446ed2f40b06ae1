"""Seats for several environments at once: an episode is played in the environment of its task.

Each environment has seats of its own, in this process or in workers, and its own limits of time and memory. A seat here
takes one of them when an episode begins, and gives it back when the next one does. No more episodes are open together
than every one of the environments could hold, so that none waits for another inside an episode.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import numpy as np
from gymnasium.error import ResetNeeded

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.tasks.env_identity import EnvIdentity
from manyturn.envs.contract.tasks.mixed_tasks import MixedTasks, mixed_task, own_task
from manyturn.envs.contract.tasks.task import Direction, Task
from manyturn.envs.hosting.handle.env_description import EnvRecord
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import RESET_FIRST, Seat, Seats

UNKNOWN_SPLIT = "unknown"  # of a task whose environment has no rule


class MixedSeats(Seats):
    """Seats for the tasks of several environments, whose ids begin with the name of theirs.

    Args:
        members: name of each environment -> its seats, which are entered and left with these.

    Attributes:
        members: the same.

    Raises:
        ConfigError: one of them has several roles.
    """

    def __init__(self, members: Mapping[str, Seats]):
        self.members = dict(members)
        for seats in self.members.values():
            if len(seats.facts.roles) > 1:
                raise ConfigError(
                    f"{seats.facts.name} has the roles {', '.join(seats.facts.roles)}, which other environments of "
                    "[[envs]] do not have: leave it out, or train in it by [env] and [roles]"
                )
        limit = min(seats.limit for seats in self.members.values())
        processes = sum(seats.processes for seats in self.members.values())
        super().__init__(_record(self.members), limit, processes)

    def of(self, task: Task) -> Seats:
        """The seats of a task's environment."""
        assert task.env is not None, "a task of several environments names its own"
        return self.members[task.env]

    def figures(self) -> Mapping[str, float | str]:
        return {f"{n}/{key}": value for n, seats in self.members.items() for key, value in seats.figures().items()}

    @contextlib.asynccontextmanager
    async def take(self) -> AsyncIterator[Seat]:
        async with self._places:
            self._check_open()
            seat = _MixedSeat(self)
            try:
                yield seat
            finally:
                await seat.leave()

    async def close(self) -> None:
        self._closed = True
        for seats in self.members.values():
            await seats.close()


class _MixedSeat:
    """A seat in the environment of the last task that began on it."""

    def __init__(self, seats: MixedSeats):
        self._seats, self.name = seats, seats.facts.name
        self._seat: Seat | None = None
        self._held = contextlib.AsyncExitStack()

    async def reset(self, task: Task, seed: int) -> Answer:
        await self.leave()
        self._seat = await self._held.enter_async_context(self._seats.of(task).take())
        self.name = self._seat.name
        return await self._seat.reset(own_task(task), seed)

    async def step(self, action: str) -> Answer:
        return await self._begun().step(action)

    async def expert(self) -> str:
        return await self._begun().expert()

    async def snapshot(self) -> str:
        return await self._begun().snapshot()

    async def restore(self, snapshot: str) -> Answer:
        return await self._begun().restore(snapshot)

    def _begun(self) -> Seat:
        if self._seat is None:
            raise ResetNeeded(RESET_FIRST)
        return self._seat

    async def leave(self) -> None:
        """Give the environment's seat back."""
        self._seat = None
        await self._held.aclose()


def _record(members: Mapping[str, Seats]) -> EnvRecord:
    name = " + ".join(members)
    identity = EnvIdentity(id=name, members={env: seats.identity for env, seats in members.items()})

    def world() -> dict[str, str]:
        return {env: digest(seats.world()) for env, seats in members.items()}

    facts = _facts(name, [seats.facts for seats in members.values()], members)
    return EnvRecord(facts, identity, (), side_by_side=None, waits_outside=False, world=world)


def _facts(name: str, facts: Sequence[EnvFacts], members: Mapping[str, Seats]) -> EnvFacts:
    """The facts that hold in all of them: abilities that every one has, and the longest limit of turns."""
    limits = [one.max_turns for one in facts if one.max_turns is not None]

    def tasks(split: str) -> Sequence[Task]:
        return MixedTasks({env: seats.tasks(split) for env, seats in members.items()})

    def vary(task: Task, direction: Direction, rng: np.random.Generator) -> Task | None:
        change = members[str(task.env)].facts.vary
        varied = None if change is None else change(own_task(task), direction, rng)
        return None if varied is None else mixed_task(varied, str(task.env))

    def split_rule(task: Task) -> str:
        rule = members[str(task.env)].facts.split_rule
        return UNKNOWN_SPLIT if rule is None else rule(own_task(task))

    return EnvFacts(
        name=name,
        instructions="\n\n".join(one.instructions for one in facts),
        splits=tuple(split for split in facts[0].splits if all(split in one.splits for one in facts)),
        roles=facts[0].roles,
        user=None,
        max_turns=max(limits) if len(limits) == len(facts) else None,
        part_names=tuple(dict.fromkeys(part for one in facts for part in one.part_names)),
        lists_parts=all(one.lists_parts for one in facts),
        has_expert=all(one.has_expert for one in facts),
        has_answer=all(one.has_answer for one in facts),
        has_admissible=all(one.has_admissible for one in facts),
        has_progress=all(one.has_progress for one in facts),
        has_anchor_text=all(one.has_anchor_text for one in facts),
        tasks=tasks,
        vary=vary if any(one.vary for one in facts) else None,
        split_rule=split_rule,
    )
