"""Writer of a run's checkpoints: most are written during the step that follows, each complete before the next one.

What is saved is copied to the host's memory, and a thread writes it while the run goes on. So learning changes nothing
of it, and the file is the one that would have been written between two steps. Journals of its steps go once it is on
the disk. An error is raised where the run next looks: before a step, before the next checkpoint, and at its end.

What has to be there before the run goes on is written at once: the first checkpoint, the last one, and one that a stop
asks for. So is every one where the host has no memory for the copy.
"""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import SafetensorError

from manyturn.agents.model.shard_files import WrittenShards
from manyturn.agents.records.episode_log import DiskFull
from manyturn.envs.hosting.local.shutdown_watchdog import watchdog
from manyturn.trainers.learn.ranks.process_group import RankLost
from manyturn.trainers.record.checkpoint import Saved, begin_checkpoint, beside, complete_checkpoint, shards_of
from manyturn.trainers.record.resource_use import spare_memory
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.loop.disk_space import checkpoint_bytes
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.setup.trainee import Trainee
from manyturn.trainers.run.step import value_pretraining

_END_SECONDS = 1.0  # that a checkpoint which nobody wants any more has to notice it


class _Abandoned(Exception):
    """Nobody waits for this checkpoint any more."""


class _Writing(threading.Thread):
    """A checkpoint that is being written.

    Args:
        write: gets what to call from time to time, which ends it by an error once nobody waits for it.
        saved: what to do once it is there.
    """

    def __init__(self, write: Callable[[Callable[[], None]], object], saved: Callable[[], None]):
        super().__init__(name="checkpoint", daemon=True)
        self.saved, self._write = saved, write
        self.error: Exception | None = None
        self._is_unwanted = threading.Event()

    def run(self) -> None:
        try:
            self._write(self._heed)
        except Exception as error:
            self.error = error

    def _heed(self) -> None:
        if self._is_unwanted.is_set():
            raise _Abandoned

    def abandon(self) -> None:
        """End it soon; what is there of it is no checkpoint."""
        self._is_unwanted.set()
        self.join(_END_SECONDS)


class Saving:
    """Writes the checkpoints of a run, as a context manager: at its end none is half written."""

    def __init__(self, run: Run, folder: RunFolder):
        self._run, self._folder = run, folder
        self._writing: _Writing | None = None
        self._has_memory: bool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writing is None:
            return
        # A second signal, which cancels whatever runs; or there is nobody to finish it with.
        if error is not None and (isinstance(error, RankLost) or not isinstance(error, Exception)):
            self._writing.abandon()
            return
        try:
            self._settle()
        except DiskFull:
            if error is None:
                raise

    def resumed(self, state: State) -> None:
        """The run goes on from a checkpoint of this state."""
        self._folder.saved(self._journaled(state), _mark(state))

    def check_room(self) -> None:
        """Raise DiskFull where another checkpoint might not fit, or one could not be written meanwhile."""
        if self._writing is not None and not self._writing.is_alive():
            self._settle()
        try:
            self._folder.check_room()
        except DiskFull:
            if self._writing is None:
                raise
            self._settle()  # which makes room: an older one goes
            self._folder.check_room()

    @watchdog.unhurried()
    def now(self, state: State, *, last: bool = False) -> None:
        """Write a checkpoint; one that the disk refuses is left out once, unless it is the last."""
        self._settle()
        if self._folder.is_saved(_mark(state)):
            return
        try:
            aside = begin_checkpoint(self._folder.checkpoints, state.step)
            policies: Saved = {t.name: (t.language.save, _learnt(self._run, t, aside)) for t in self._run.trainees}
            complete_checkpoint(aside, policies, self._plain(state), self._keep)
        except (OSError, SafetensorError) as error:
            self._folder.not_saved(error, last=last or self._is_end(state))
        else:
            self._folder.saved(self._journaled(state), _mark(state))

    @watchdog.unhurried()
    def beside(self, state: State) -> None:
        """Begin to write a checkpoint of the present state, and return."""
        if state.step == self._run.config.steps or not self._has_room():
            self.now(state)
            return
        self._settle()
        folder, plain = self._folder, json.loads(json.dumps(self._plain(state)))
        try:
            aside = begin_checkpoint(folder.checkpoints, state.step)
            policies: Saved = {t.name: (t.language.held(), _learnt(self._run, t, aside)) for t in self._run.trainees}
        except OSError as error:
            folder.not_saved(error, last=False)
            return
        journaled, mark = self._journaled(state), _mark(state)
        self._writing = _Writing(
            lambda heed: complete_checkpoint(aside, policies, plain, self._keep, heed),
            lambda: folder.saved(journaled, mark),
        )
        self._writing.start()

    @watchdog.unhurried()
    def _settle(self) -> None:
        """Wait for what is being written, and take note of how it ended."""
        writing, self._writing = self._writing, None
        if writing is None:
            return
        writing.join()
        if writing.error is None:
            writing.saved()
        elif isinstance(writing.error, (OSError, SafetensorError)):
            self._folder.not_saved(writing.error, last=False)
        else:
            raise writing.error

    def _has_room(self) -> bool:
        """True if there is memory for a copy, determined once: by then an update has shown how much it takes."""
        if self._has_memory is None:
            copied = sum(checkpoint_bytes(trainee.learner) for trainee in self._run.trainees)
            self._has_memory = copied <= spare_memory()
        return self._has_memory

    def _is_end(self, state: State) -> bool:
        """True at the end of a warm-up and of the run."""
        return not state.warming and state.step in (0, self._run.config.steps)

    @property
    def _keep(self) -> int:
        return self._run.config.keep_checkpoints

    def _plain(self, state: State) -> dict[str, Any]:
        state.batch_limits = self._run.batch_limits()
        state.past = {f"past:{past.every}": list(past.copies) for past in self._run.past}
        state.partners = self._run.frozen.plain_partners
        learners = {beside("learner", trainee.name): trainee.learner.plain() for trainee in self._run.trainees}
        return {**state.plain(), **learners}

    def _journaled(self, state: State) -> int:
        """The last step whose journals a checkpoint of this state makes superfluous; exploration counts as step 0."""
        if value_pretraining.is_due(self._run, state):
            return -1
        is_over = state.step == self._run.config.steps  # then nothing is left of a step that was drawn in part
        return state.first_left - (0 if is_over else 1)


def _mark(state: State) -> tuple[object, ...]:
    """The facts whose change makes a new checkpoint due."""
    accepted = len(state.config_changes) + len(state.env_changes)
    return state.step, state.validated, accepted, bool(state.explored), state.warming.get("updates")


def _learnt(run: Run, trainee: Trainee, aside: Path) -> dict[str, torch.Tensor] | WrittenShards:
    """The learner's state besides the model, with past selves: a copy, or shards that every rank has begun to write."""
    copies = {name: tensor for past in run.past for name, tensor in past.tensors().items()}
    return trainee.learner.write_shards(shards_of(aside, trainee.name)) or trainee.learner.tensors() | copies
