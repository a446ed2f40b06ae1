"""The training loop, from the warm-up to the last update.

Each step draws tasks, plays a group of episodes of each, gives credit to their turns, updates the weights, and hands
them to the engine. Everything a step does depends on the configuration, the step's number and the weights; a run that
was killed continues from its last checkpoint to the same bits.
"""

import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from manyturn.agents.records.episode_buffer import EpisodeBuffer
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.ranks.process_group import RANKS_DRAIN_SECONDS, Ranks, started_ranks
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.checkpoint import beside, read_state, version_notice
from manyturn.trainers.record.config_edits import plain
from manyturn.trainers.record.env_changes import env_changes_at
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.resource_use import peak_memory
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.record.stop_signal import Stopped, Stopping
from manyturn.trainers.run.loop.answer_log import AnswerLog
from manyturn.trainers.run.loop.checkpoint_writer import Saving
from manyturn.trainers.run.loop.code_signature import sign
from manyturn.trainers.run.loop.disk_space import check_room
from manyturn.trainers.run.loop.held_out_metrics import conclude, figures
from manyturn.trainers.run.loop.metrics_logger import MetricsLogger
from manyturn.trainers.run.loop.start import RunStart, start_of
from manyturn.trainers.run.setup.ranks.rank_failure import ending_with_ranks
from manyturn.trainers.run.setup.run_builder import Run, open_run
from manyturn.trainers.run.setup.task_check import members_of
from manyturn.trainers.run.step import value_pretraining
from manyturn.trainers.run.step.asynchronous import Ahead
from manyturn.trainers.run.step.no_signal import SILENT_STEPS, NoSignal, warning
from manyturn.trainers.run.step.step import train_step
from manyturn.trainers.run.warmup.replay_source import fill_buffer
from manyturn.trainers.run.warmup.warmup import WarmupOutput, WarmupProgress, validate, warm_up

Step = Callable[[], Awaitable[dict[str, Any]]]


async def train(
    config: RunConfig | None,
    path: Path,
    *,
    resume: bool = False,
    accept: Collection[str] = (),
    steps: int | None = None,
    report: Log = lambda line: None,
) -> dict[str, Any]:
    """Run, or continue a run.

    Args:
        config: what to do; None when resuming, for then the folder's own counts.
        path: the run's folder.
        accept: ``config`` and ``env``: go on although the folder's configuration was edited, a partner in a role has
            changed (both are ``config``), or the environment has, since the last checkpoint; ``code``: run the code
            that a folder from elsewhere names.
        steps: when resuming, how many steps the run has now; None: as many as before.
        report: receives each line of metrics as it is written; how far the vocabulary is, where that takes long;
            ``{"phase": "begin", "tasks": COUNTS, "done": STEPS}`` once the checks have passed, its STEPS those of the
            checkpoint that it resumes from, or None; and notices, ``{"phase": "notice",
            "notice": TEXT}``.

    Returns:
        The summary, which is written to ``summary.json`` too.

    Raises:
        ConfigError, NotHeldOut: options do not fit each other, the environment or its tasks; or the configuration was
            edited, or the environment has changed, since the last checkpoint, or the folder is from elsewhere and names
            code, and that is not accepted.
        Stopped: a signal asked for it; what was finished is saved.
        DiskFull, TooManyErrors: the run cannot go on; once that is fixed it continues from its last checkpoint.
        LearningFailed: going on would teach nothing; NoSignal where ``stopping.no_signal`` says so.
    """
    with ExitStack() as opened:
        ranks = opened.enter_context(Ranks()) if started_ranks() > 1 else None
        folder = opened.enter_context(RunFolder(path, resume=resume))
        stopping = opened.enter_context(Stopping() if ranks is None else Stopping(RANKS_DRAIN_SECONDS))
        start = start_of(folder, config, steps, accept)
        output = MetricsLogger(folder, start.config, report)
        async with AsyncExitStack() as stack:
            stack.callback(output.loggers.close)
            opening = open_run(start.config, output.tell, ranks, start.pinned)
            run = await stopping.run(stack.enter_async_context(opening))
            if run.ranks is not None:
                await stack.enter_async_context(ending_with_ranks(run.ranks))
            output.config = run.config
            start = start.in_environment(folder, run.seats.identity).with_partners(folder, run.frozen.partners)
            for remark in start.remarks:
                output.note(remark)
            check_room(run, path)
            if not resume or steps is not None:
                folder.write_config(run.config)
            sign(path, folder.read_config())
            output.tell({"phase": "begin", "tasks": _task_counts(run), "done": start.steps_done})
            if run.endpoints:
                answers = stack.enter_context(AnswerLog(folder))
                for endpoint in run.endpoints:
                    endpoint.answers = answers
            saving = stack.enter_context(Saving(run, folder))
            return await _Session(run, folder, saving, stopping, output).train(start)


@dataclass(frozen=True)
class _Session:
    """The open parts of a run in this process."""

    run: Run
    folder: RunFolder
    saving: Saving
    stopping: Stopping
    output: MetricsLogger

    async def train(self, start: RunStart) -> dict[str, Any]:
        """Everything from the warm-up to the summary."""
        state = await self.stopping.run(self._begin(start.checkpoint))
        state.config = plain(self.run.config)
        self._accept(state, start)
        await self._explore(state)
        earlier, resumed_at = state.seconds, time.monotonic()
        await self._learn(state, earlier, resumed_at)
        summary = await self.stopping.run(conclude(self.run, state, self.folder.path))
        summary["seconds"] = round(earlier + time.monotonic() - resumed_at, 1)
        summary |= peak_memory()
        text = json.dumps(summary, indent=1, allow_nan=False) + "\n"
        replace_text(self.folder.path / "summary.json", text)
        self.output.loggers.end(summary)
        self._end_without_signal(state, f"all its steps are done: {self.folder.path}/summary.json has its figures")
        return summary

    async def _begin(self, checkpoint: Path | None) -> State:
        """The state to continue from: that of the checkpoint, or the end of the warm-up."""
        if checkpoint is not None:
            state = await self._resume(checkpoint)
            return await self._warm_up(state) if state.warming else state
        self.folder.check_new()
        self._note_memory()
        self.output.rewind(-1)
        identity, notices = self.run.seats.identity.plain(), self.output.note.texts
        return await self._warm_up(State(config=plain(self.run.config), env_identity=identity, notices=notices))

    async def _warm_up(self, state: State) -> State:
        """The warm-up, from its start or its last measurement, with a checkpoint at each measurement."""
        run, began, earlier = self.run, time.monotonic(), state.seconds

        def measured(progress: WarmupProgress) -> None:
            state.warming = progress.plain()
            state.seconds = earlier + time.monotonic() - began
            self.saving.now(state)

        output = WarmupOutput(self.output.log, self.output.note, self.stopping.check, measured)
        try:
            state.stored = await fill_buffer(run, self.folder, self.output.note)
            state.warmup, state.seen = await warm_up(run, output, WarmupProgress.of(state.warming))
        except ConfigError:
            self.folder.withdraw()
            raise
        state.warming = {}
        for trainee in run.trainees:
            trainee.learner.begin_reinforcement()
        run.note_step(0)
        state.before = await figures(run, state, "before")
        state.seconds = earlier + time.monotonic() - began
        self.saving.now(state)
        return state

    async def _resume(self, checkpoint: Path) -> State:
        if notice := version_notice(checkpoint):
            print(notice, file=sys.stderr)
        saved = read_state(checkpoint)
        for trainee in self.run.trainees:
            await trainee.load(checkpoint, saved.pop(beside("learner", trainee.name)))
        state = State(**{**saved, "seen": set(saved["seen"])})
        EpisodeBuffer(self.folder.path, state.stored).check()
        self.run.recall(checkpoint)
        self.run.restrict(state.batch_limits)
        if self.run.judging is not None and state.judged:
            self.run.judging.recall(state.judged)
        self.output.note.texts = state.notices
        self._note_memory()
        explored, updates = not value_pretraining.is_due(self.run, state), state.warming.get("updates")
        self.output.rewind(state.step, explored=explored, updates=updates)
        self.saving.resumed(state)
        return state

    def _note_memory(self) -> None:
        for notice in filter(None, (trainee.notice for trainee in self.run.trainees)):
            self.output.note(notice)

    def _accept(self, state: State, start: RunStart) -> None:
        """Continue under the edited configuration, in the changed environment."""
        for notice in start.accepted_into(state, self.run.config, self.run.seats.identity):
            self.output.note(notice)
        if start.edits or start.env_changes:
            self.folder.set_aside(state.step)
            self.saving.now(state)  # what was accepted is the run's, even where no step follows

    async def _explore(self, state: State) -> None:
        """The exploration before the first step, if it is to come, and the checkpoint after it."""
        if value_pretraining.is_due(self.run, state):
            began = time.monotonic()
            await self.stopping.run(
                value_pretraining.explore(self.run, state, self.folder, self.output.log, self.output.note)
            )
            state.seconds += time.monotonic() - began
            self.saving.now(state)

    async def _learn(self, state: State, earlier: float, resumed_at: float) -> None:
        """All steps and validations, with their checkpoints."""
        run, saving = self.run, self.saving
        async with _ordered(run, state, self.folder) as step:
            try:
                while state.step < run.config.steps or _validation_is_due(run, state):
                    await self.stopping.run(self._advance(state, step))
                    state.seconds = earlier + time.monotonic() - resumed_at
                    if not _validation_is_due(run, state) and _checkpoint_is_due(run.config, state):
                        saving.beside(state)
            except (Stopped, NoSignal):
                saving.now(state, last=True)
                raise

    async def _advance(self, state: State, step: Step) -> None:
        """A step, or the validation that follows it; if it is cancelled, nothing has changed."""
        run, log = self.run, self.output.log
        if not _validation_is_due(run, state):
            self.saving.check_room()
            line = await step()
            run.note_step(state.step)
            changed = env_changes_at(state.env_changes, state.step)
            log({"phase": "train", "step": state.step, **({"env_changed": changed} if changed else {}), **line})
            self._count_signal(state, line.get("no_signal"))
            return
        metrics = await validate(run, f"validation/{state.step}", run.config.evaluation.every_limit)
        state.validated = state.step
        log({"phase": "validation", "step": state.step, **metrics})

    def _count_signal(self, state: State, reason: str | None) -> None:
        """Count a step that taught nothing for this reason, or one that taught something.

        Raises:
            NoSignal: as many in a row taught nothing as the run allows. After the last step the summary comes first.
        """
        if reason is None:
            state.learned, state.silent = state.learned + 1, 0
            return
        state.silent += 1
        if state.silent == SILENT_STEPS:
            self.output.note(warning(state.step + 1 - state.silent, state.step, reason))
        state.silence = warning(state.step + 1 - state.silent, state.step, reason)
        if state.step < self.run.config.steps:
            self._end_without_signal(state, "it can be resumed")

    def _end_without_signal(self, state: State, then: str) -> None:
        """Raise NoSignal where as many of the last steps taught nothing as the run allows."""
        allowed = self.run.config.stopping.no_signal
        if allowed is not None and state.silent >= allowed:
            raise NoSignal(f"{state.silence}. stopping.no_signal = {allowed} ends the run; {then}")


@asynccontextmanager
async def _ordered(run: Run, state: State, folder: RunFolder) -> AsyncIterator[Step]:
    """The function that takes the next step, in the order of the run."""
    if run.config.order.is_asynchronous and state.step < run.config.steps:
        async with Ahead(run, state, folder) as ahead:
            yield ahead.step
    else:
        yield partial(train_step, run, state, folder)


def _task_counts(run: Run) -> dict[str, Any]:
    """Numbers of tasks, held-out ones by environment; ``expert`` is true where there is one."""
    config, facts = run.config, run.seats.facts
    validation = len(run.seats.tasks("validation")) if "validation" in facts.splits else 0
    held_out = [len(own.tasks(config.evaluation.split)) for own in members_of(run.seats).values()]
    return {"train": len(run.train), "validation": validation, "held_out": held_out, "expert": facts.has_expert}


def _validation_is_due(run: Run, state: State) -> bool:
    every = run.config.evaluation.every
    return bool(every) and state.step % every == 0 and state.validated != state.step


def _checkpoint_is_due(config: RunConfig, state: State) -> bool:
    return state.step % config.checkpoint_every == 0 or state.step == config.steps
