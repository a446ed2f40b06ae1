"""Gradients that are not numbers: the update is left out to the last bit; three in a row stop the run."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import torch
from short_runs import ended, short_run, start
from tally import Tally

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.record.checkpoint import newest_checkpoint
from manyturn.trainers.run.loop import loop
from manyturn.trainers.run.setup.run_builder import Run, open_run

SHORT, LONG = 5, 23
_STATUS = 3
_BAD = (float("nan"), float("inf"), -float("inf"))


def run(count: int, seed: int, folder: Path) -> Tally:
    """One fault in an otherwise good run each, and three in a row in the last run."""
    tally = Tally()
    for number in range(count - 3):
        kept = folder / f"kept-{number}"
        status = ended(start(lambda number=number, kept=kept: _single(folder / f"one-{number}", kept, seed + number)))
        good = status == 0 and kept.exists()
        tally += Tally(1, int(good), notes=[] if good else [f"a single bad gradient: status {status}"])
    status = ended(start(lambda: _row(folder / "three")))
    whole, problems = newest_checkpoint(folder / "three" / "checkpoints")
    good = status == _STATUS and whole is not None and not problems
    return tally + Tally(3, 3 * good, notes=[] if good else [f"three in a row: status {status}, {whole}, {problems}"])


def _single(path: Path, kept: Path, seed: int) -> None:
    """Damage one gradient of a run; writes ``kept`` if weights and momentum were untouched by it."""
    rng = generator("gradient", seed)
    bad, value = int(rng.integers(1, 12)), _BAD[int(rng.integers(3))]

    def watch(learner: Learner) -> Callable[[], float]:
        apply, calls = learner.optimizer.update, 0

        def watched() -> float:
            nonlocal calls
            calls += 1
            if calls != bad:
                return apply()
            before, updates = _state(learner), learner.updates
            _spoil(learner, rng.integers(len(learner.optimizer.trained)), value)
            norm = apply()
            after = _state(learner)
            if learner.updates == updates and all(torch.equal(a, b) for a, b in zip(before, after, strict=True)):
                kept.write_text("equal")
            return norm

        return watched

    with _watched(watch):
        asyncio.run(loop.train(short_run(), path))


def _row(path: Path) -> None:
    """Damage all gradients after the warm-up."""

    def watch(learner: Learner) -> Callable[[], float]:
        apply, calls = learner.optimizer.update, 0

        def watched() -> float:
            nonlocal calls
            calls += 1
            if calls > 24 + 4:  # the warm-up's updates, and some of the first steps
                _spoil(learner, 0, float("nan"))
            return apply()

        return watched

    with _watched(watch):
        try:
            asyncio.run(loop.train(short_run(), path))
        except LearningFailed:
            sys.exit(_STATUS)


def _state(learner: Learner) -> list[torch.Tensor]:
    momentum = [value for state in learner.optimizer.adamw.state.values() for value in state.values()]
    return [tensor.detach().clone() for tensor in (*learner.optimizer.trained, *momentum)]


def _spoil(learner: Learner, number: int, value: float) -> None:
    gradient = learner.optimizer.trained[number].grad
    assert gradient is not None
    gradient.view(-1)[0] = value


class _watched:
    """Runs are made with a learner whose gradients are watched."""

    def __init__(self, watch: Callable[[Learner], Callable[[], float]]):
        self._watch = watch

    def __enter__(self) -> None:
        watch = self._watch

        @asynccontextmanager
        async def watched(*given: Any) -> AsyncIterator[Run]:
            async with open_run(*given) as run:
                run.only.learner.optimizer.update = watch(run.only.learner)
                yield run

        loop.open_run = watched

    def __exit__(self, *exception: object) -> None:
        loop.open_run = open_run
