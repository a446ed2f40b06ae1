"""The training loop, from the warm-up to the last update.

Each step draws tasks, plays a group of episodes of each, gives credit to their turns, updates the weights, and hands
them to the engine. Everything a step does depends on the configuration, the step's number and the weights; a run that
was killed continues from its last checkpoint to the same bits.
"""

import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from manyturn.envs.contract.durable import replace_text
from manyturn.envs.contract.options import ConfigError
from manyturn.trainers.learn.ranks.group import RANKS_DRAIN_SECONDS, Ranks, started_ranks
from manyturn.trainers.recipe.changes import shown
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.recipe.located import located
from manyturn.trainers.record.checkpoint import (
    CheckpointError,
    beside,
    newest_checkpoint,
    read_state,
    version_notice,
)
from manyturn.trainers.record.config_edits import edits_since, plain
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.notices import Notices
from manyturn.trainers.record.peak_memory import peak_memory
from manyturn.trainers.record.run_folder import RunFolder, read_metrics
from manyturn.trainers.record.run_state import State
from manyturn.trainers.record.stop_signal import Stopped, Stopping
from manyturn.trainers.record.trackers.run_loggers import RunLoggers
from manyturn.trainers.run.loop.checkpoint_writer import Saving
from manyturn.trainers.run.loop.disk_space import check_room
from manyturn.trainers.run.loop.extended_runs import epo_note, lengthened, schedule_note
from manyturn.trainers.run.loop.held_out import conclude, figures
from manyturn.trainers.run.loop.metric_warnings import oddities
from manyturn.trainers.run.setup.run import Run, open_run
from manyturn.trainers.run.step import exploration
from manyturn.trainers.run.step.asynchronous import Ahead
from manyturn.trainers.run.step.step import train_step
from manyturn.trainers.run.warmup.warmup import validate, warm_up

Step = Callable[[], Awaitable[dict[str, Any]]]


async def train(
    config: RunConfig | None,
    path: Path,
    *,
    resume: bool = False,
    accept_config: bool = False,
    steps: int | None = None,
    report: Log = lambda line: None,
) -> dict[str, Any]:
    """Run, or continue a run.

    Args:
        config: what to do; None when resuming, for then the folder's own counts.
        path: the run's folder.
        accept_config: go on although the folder's configuration was edited since the last checkpoint.
        steps: when resuming, how many steps the run has now; None: as many as before.
        report: receives each line of metrics as it is written; how far the vocabulary is, where that takes long;
            ``{"phase": "begin"}`` once the checks have passed; and notices, ``{"phase": "notice", "notice": TEXT}``.

    Returns:
        The summary, which is written to ``summary.json`` too.

    Raises:
        ConfigError, NotHeldOut: options do not fit each other, the environment or its tasks; or the configuration was
            edited since the last checkpoint, and that is not accepted.
        Stopped: a signal asked for it; what was finished is saved.
        DiskFull, TooManyErrors: the run cannot go on; once that is fixed it continues from its last checkpoint.
        LearningFailed: going on would teach nothing.
    """
    began = time.monotonic()
    with ExitStack() as opened:
        ranks = opened.enter_context(Ranks()) if started_ranks() > 1 else None
        folder = opened.enter_context(RunFolder(path, resume))
        stopping = opened.enter_context(Stopping() if ranks is None else Stopping(RANKS_DRAIN_SECONDS))
        settings = folder.read_config() if config is None else located(config)
        checkpoint = _newest(folder)
        if steps is not None:
            settings = lengthened(settings, steps, checkpoint)
        edits = edits_since(checkpoint, settings)
        if not accept_config:
            _refuse_edits(path, checkpoint, {k: v for k, v in edits.items() if k != "steps" or steps is None})
        loggers = RunLoggers(settings.loggers)

        def log(line: dict[str, Any]) -> None:
            line = {"seconds": round(time.monotonic() - began, 3), **line}
            loggers.line(folder.log(line))
            report(line)
            for told in oddities(line, settings):
                note(told)

        def tell(line: dict[str, Any]) -> None:
            report({"seconds": round(time.monotonic() - began, 3), **line})

        note = Notices(tell)

        async with AsyncExitStack() as stack:
            stack.callback(loggers.close)
            run = await stopping.run(stack.enter_async_context(open_run(settings, tell, ranks)))
            if settings.placement.ranks > 1:
                from manyturn.trainers.run.setup.ray_ranks import ending_with_ranks  # which only Ray's extra can import

                await stack.enter_async_context(ending_with_ranks(run.seats))
            settings = run.config
            check_room(run, path)
            if not resume or steps is not None:
                folder.write_config(settings)
            tell({"phase": "begin"})
            saving = stack.enter_context(Saving(run, folder))
            state = await stopping.run(_begin(run, folder, saving, checkpoint, loggers, log, note, stopping.check))
            state.config = plain(settings)
            if edits:
                for told in filter(None, (made(settings, edits, state.step) for made in (schedule_note, epo_note))):
                    note(told)
                if set(edits) - {"steps"}:
                    state.draw_anew()  # they may be of other tasks, or another order
                state.config_changes.append({"step": state.step, "entries": {k: list(v) for k, v in edits.items()}})
                folder.set_aside(state.step)
                saving.now(state)  # the accepted configuration is the run's, even where no step follows
            await _explore(run, state, folder, saving, stopping, log, note)
            earlier, went_on = state.seconds, time.monotonic()
            async with _ordered(run, state, folder) as step:
                try:
                    while state.step < settings.steps or _validation_is_due(run, state):
                        await stopping.run(_advance(run, state, saving, log, step))
                        state.seconds = earlier + time.monotonic() - went_on
                        if not _validation_is_due(run, state) and _checkpoint_is_due(settings, state):
                            saving.beside(state)
                except Stopped:
                    saving.now(state, last=True)
                    raise
            summary = await stopping.run(conclude(run, state, path))
            summary["seconds"] = round(earlier + time.monotonic() - went_on, 1)
            summary |= peak_memory()
            replace_text(path / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
            loggers.end(summary)
            return summary


async def _explore(
    run: Run, state: State, folder: RunFolder, saving: Saving, stopping: Stopping, log: Log, note: Notices
) -> None:
    """The exploration before the first step, if it is to come, and the checkpoint after it."""
    if exploration.is_due(run, state):
        began = time.monotonic()
        await stopping.run(exploration.explore(run, state, folder, log, note))
        state.seconds += time.monotonic() - began
        saving.now(state)


@asynccontextmanager
async def _ordered(run: Run, state: State, folder: RunFolder) -> AsyncIterator[Step]:
    """What takes the next step, in the order of the run."""
    if run.config.order.is_asynchronous and state.step < run.config.steps:
        async with Ahead(run, state, folder) as ahead:
            yield ahead.step
    else:
        yield partial(train_step, run, state, folder)


async def _advance(run: Run, state: State, saving: Saving, log: Log, step: Step) -> None:
    """A step, or the validation that follows it; if it is cancelled, nothing has changed."""
    if not _validation_is_due(run, state):
        saving.check_room()
        line = await step()
        log({"phase": "train", "step": state.step, **line})
        return
    found = await validate(run, f"validation/{state.step}", run.config.evaluation.every_limit)
    state.validated = state.step
    log({"phase": "validation", "step": state.step, **found})


def _validation_is_due(run: Run, state: State) -> bool:
    every = run.config.evaluation.every
    return bool(every) and state.step % every == 0 and state.validated != state.step


def _checkpoint_is_due(config: RunConfig, state: State) -> bool:
    return state.step % config.checkpoint_every == 0 or state.step == config.steps


def _newest(folder: RunFolder) -> Path | None:
    """The newest intact checkpoint; None where the run has none yet."""
    checkpoint, problems = newest_checkpoint(folder.checkpoints)
    if problems and checkpoint is None:
        raise CheckpointError(f"no checkpoint is intact ({problems[0]}): restore one, or start again in another folder")
    for problem in problems:
        print(f"skipped a damaged checkpoint: {problem}", file=sys.stderr)
    return checkpoint


def _refuse_edits(path: Path, checkpoint: Path | None, edits: Mapping[str, tuple[Any, Any]]) -> None:
    if edits:
        raise ConfigError(
            f"{path}/config.toml was edited since {checkpoint}: {shown(edits)}; take the edit back, or accept it "
            f"with manyturn train --resume {path} --accept-config"
        )


async def _begin(
    run: Run,
    folder: RunFolder,
    saving: Saving,
    checkpoint: Path | None,
    loggers: RunLoggers,
    log: Log,
    note: Notices,
    heed: Callable[[], None],
) -> State:
    """The state to go on from: that of the checkpoint, or the end of the warm-up."""
    if checkpoint is not None:
        if notice := version_notice(checkpoint):
            print(notice, file=sys.stderr)
        found = read_state(checkpoint)
        for trainee in run.trainees:
            await trainee.load(checkpoint, found.pop(beside("learner", trainee.name)))
        state = State(**{**found, "seen": set(found["seen"])})
        run.restrict(state.batch_limits)
        note.said = state.notices
        _tell_of_memory(run, note)
        _rewind(run, folder, loggers, state.step, not exploration.is_due(run, state))
        saving.resumed(state)
        return state
    folder.check_new()
    _tell_of_memory(run, note)
    _rewind(run, folder, loggers, -1)
    state = State(config=plain(run.config), notices=note.said)
    began = time.monotonic()
    try:
        state.warmup, state.seen = await warm_up(run, log, note, heed)
    except ConfigError:
        folder.withdraw()
        raise
    for trainee in run.trainees:
        trainee.learner.begin_reinforcement()
    state.before = await figures(run, state, "before")
    state.seconds = time.monotonic() - began
    saving.now(state)
    return state


def _tell_of_memory(run: Run, note: Notices) -> None:
    for text in filter(None, (trainee.notice for trainee in run.trainees)):
        note(text)


def _rewind(run: Run, folder: RunFolder, loggers: RunLoggers, step: int, explored: bool = True) -> None:
    folder.rewind(step, explored)
    loggers.begin(folder.path, run.config.model_dump(mode="json"), read_metrics(folder.path))
