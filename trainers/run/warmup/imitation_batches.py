"""Batches of the warm-up: of a set that is shown again and again, or of demonstrations that are played for them."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.warmup.demonstrations import learnt_from, play_demonstrations, samples_by_policy

_AHEAD = 8  # updates whose demonstrations are played together; with a policy in them, so old may its weights be

Batch = list[list[Sample]]  # for each policy that is trained, its sequences of an update


class ImitationBatches(Protocol):
    """The source of an update's sequences. Batches follow from the number of the update and the last measurement."""

    async def batch(self, update: int) -> Batch:
        """The sequences of an update, counted from 1; updates are asked for in order."""
        ...

    def measured(self) -> None:
        """The policy was measured: later batches may not hang on earlier ones, for a resumed run has none."""


class FixedSet:
    """The same sequences, shuffled again each time they are used up.

    Args:
        samples: for each policy that is trained, its sequences.
        done: updates that were made.
    """

    def __init__(self, samples: Sequence[Sequence[Sample]], size: int, seed: int, done: int):
        self._samples = samples
        self._orders = [shuffled_batches(len(own), size, seed) for own in samples]
        for order in self._orders:
            next(itertools.islice(order, done, done), None)

    async def batch(self, update: int) -> Batch:
        return [[own[i] for i in next(order)] for own, order in zip(self._samples, self._orders, strict=True)]

    def measured(self) -> None:
        """Nothing hangs on a measurement."""


class DemonstrationStream:
    """New demonstrations for every update, some updates ahead, each from a key of its own.

    An update has ``warmup.batch`` episodes with all of their sequences; where the context is a window, so many
    sequences.

    Args:
        shown: takes the episodes that are learnt from.
    """

    def __init__(self, run: Run, shown: Callable[[Sequence[Episode]], None]):
        self._run, self._shown = run, shown
        self._waiting: list[list[list[Sample]]] = [[] for _ in run.trainees]
        self._part = 0

    async def batch(self, update: int) -> Batch:
        size = self._run.config.warmup.batch
        while any(len(units) < size for units in self._waiting):
            await self._play(update)
            self._part += 1
        taken = [units[:size] for units in self._waiting]
        self._waiting = [units[size:] for units in self._waiting]
        return [[sample for unit in units for sample in unit] for units in taken]

    def measured(self) -> None:
        self._waiting, self._part = [[] for _ in self._run.trainees], 0

    async def _play(self, update: int) -> None:
        """Play demonstrations for the updates from this one to the next measurement, or the first of these."""
        run, config = self._run, self._run.config.warmup
        ahead = min(_AHEAD, config.check_every - (update - 1) % config.check_every, config.max_updates - update + 1)
        count, name = config.batch * ahead, (update, self._part)
        rng = generator("demonstrations", run.config.seed, *name)
        numbers = [own[int(n)] for own, share in run.shares(count, rng) for n in rng.integers(len(own), size=share)]
        if run.config.envs:  # every update has demonstrations of each
            numbers = [numbers[int(place)] for place in rng.permutation(len(numbers))]
        stage = "demonstration/{}/{}".format(*name)
        async with AsyncExitStack() as stack:
            if config.policy_share:
                await stack.enter_async_context(run.drawing())
            episodes = await play_demonstrations(run, numbers, stage, config.policy_share)
        good = learnt_from(run, episodes)
        self._shown(good)
        for waiting, samples in zip(self._waiting, samples_by_policy(run, good), strict=True):
            waiting += by_episode(samples) if run.config.agent.appends else [[sample] for sample in samples]


def by_episode(samples: Sequence[Sample]) -> list[list[Sample]]:
    """The sequences of each episode, in the order of episodes."""
    units: dict[int, list[Sample]] = {}
    for sample in sorted(samples, key=lambda sample: sample.episode):
        units.setdefault(sample.episode, []).append(sample)
    return list(units.values())


def shuffled_batches(count: int, size: int, seed: int) -> Iterator[list[int]]:
    """Numbers below ``count``, shuffled again each time they are used up."""
    order: list[int] = []
    for epoch in itertools.count():
        order += generator("imitate", seed, epoch).permutation(count).tolist()
        while len(order) >= min(size, count):
            yield order[:size]
            order = order[size:]
