"""A run that is stopped must be stopped before a step's update or after the step, never between."""

import asyncio
from pathlib import Path

import pytest
from short_runs import short_run

from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.step import train_step


async def _two_steps(folder: Path, waits_for: str | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The weights after two steps; the second one is cancelled where the engine lets it wait, and begun again."""
    state = State()
    with RunFolder(folder, resume=False) as opened:
        async with open_run(short_run()) as run:
            trainee = run.only
            trainee.learner.begin_reinforcement()
            await train_step(run, state, opened)
            assert trainee.learner.updates > trainee.engine.version, "the engine takes new weights before the next step"
            if waits_for:
                before, entered = (trainee.learner.updates, trainee.weights, vars(state).copy()), asyncio.Event()

                async def for_ever(*given: object) -> None:
                    entered.set()
                    await asyncio.Event().wait()

                with monkeypatch.context() as patched:
                    patched.setattr(trainee.engine, waits_for, for_ever)
                    step = asyncio.create_task(train_step(run, state, opened))
                    await asyncio.wait_for(entered.wait(), 60)
                    step.cancel()
                    await asyncio.wait((step,))
                assert (trainee.learner.updates, trainee.weights, vars(state)) == before
            await train_step(run, state, opened)
            assert state.step == 2
            return trainee.weights


def test_a_step_that_is_cancelled_while_an_engine_is_waited_for_has_changed_nothing(tmp_path, monkeypatch):
    weights = {
        asyncio.run(_two_steps(tmp_path / str(method), method, monkeypatch))
        for method in (None, "load", "wake", "generate", "sleep")
    }
    assert len(weights) == 1
