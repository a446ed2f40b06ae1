"""Start of a run: the configuration and the checkpoint that it begins with, and what has changed since that one."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manyturn.agents.records.task_id_files import failure_remarks
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.tasks.env_identity import EnvIdentity
from manyturn.trainers.recipe.config import RunConfig, located
from manyturn.trainers.record.checkpoint import CheckpointError, newest_checkpoint, read_state
from manyturn.trainers.record.config_edits import edits_since, refuse_edits
from manyturn.trainers.record.env_changes import env_change_lines, env_changes_since, refuse_env_changes
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.loop.code_signature import check_signed
from manyturn.trainers.run.loop.extended_runs import epo_note, lengthened, schedule_note
from manyturn.trainers.run.setup.frozen_roles import PartnerIdentity, partner_changes
from manyturn.trainers.run.setup.past_selves import refuse_missing_copies

_READS = ("agent.", "env", "model.")  # entries that what is stored depends on


@dataclass(frozen=True)
class RunStart:
    """The configuration and the checkpoint that a run begins with.

    Attributes:
        accept: what to go on with: changes of the ``config``, of the ``env``; ``code`` that a folder from elsewhere
            names.
        edits: accepted edits of the configuration since the checkpoint, by place, with both values; changes of
            partners too, by ``partner ROLE``.
        env_changes: words for each accepted change of the environment since the checkpoint.
        task_words: words for the training tasks of a new run, as they were given.
        remarks: lines on evaluations that choose the tasks and are of another environment.
    """

    config: RunConfig
    checkpoint: Path | None
    accept: Collection[str]
    edits: Mapping[str, tuple[Any, Any]]
    env_changes: Sequence[str] = ()
    task_words: Sequence[str] = ()
    remarks: Sequence[str] = ()

    def in_environment(self, folder: RunFolder, now: EnvIdentity) -> "RunStart":
        """The start in an environment that has been made. Raises ConfigError if it is another one than was accepted.

        A configuration that was accepted with another ``env.id``, or other ``envs``, has accepted what these name.
        """
        was = None if self.checkpoint is None else EnvIdentity.of(read_state(self.checkpoint))
        words = env_changes_since(was, now, self.edits)
        if "env" not in self.accept and not {"env.id", "envs"} & set(self.edits):
            refuse_env_changes(folder.path, self.checkpoint, words)
        args = {} if self.config.env is None else self.config.env.args
        remarks = failure_remarks(self.task_words, now, args)
        return replace(self, env_changes=words, remarks=remarks)

    @property
    def steps_done(self) -> int | None:
        """Steps that were done until the checkpoint; None where the run begins."""
        return None if self.checkpoint is None else read_state(self.checkpoint)["step"]

    @property
    def pinned(self) -> Mapping[str, Mapping[str, str]]:
        """Partners that played until the checkpoint, by role; none where they are not known."""
        return {} if self.checkpoint is None else read_state(self.checkpoint).get("partners", {})

    def with_partners(self, folder: RunFolder, now: Mapping[str, PartnerIdentity]) -> "RunStart":
        """The start with partners that have been loaded. Raises ConfigError if one is another than was accepted."""
        changes = partner_changes(self.pinned, now)
        for role, (was, present) in changes.items() if "config" not in self.accept else ():
            raise ConfigError(
                f"{now[role].policy}, which plays {role}, has changed since {self.checkpoint}: it was {was} and is "
                f"{present}; take the change back, or accept it with manyturn train --resume {folder.path} "
                "--accept-config"
            )
        edits = {**self.edits, **{f"partner {role}": pair for role, pair in changes.items()}}
        return replace(self, edits=edits)

    def accepted_into(self, state: State, config: RunConfig, now: EnvIdentity) -> list[str]:
        """Continue a state under what was accepted; returns the notices on it, none where nothing was to be accepted.

        Args:
            config: of the run, fitted to its environment.
            now: the environment's identity.
        """
        notices = [note(config, self.edits, state.step) for note in (schedule_note, epo_note)] if self.edits else []
        if set(self.edits) - {"steps"} or self.env_changes:
            state.draw_anew()  # they may be of other tasks, or another order
        if self.env_changes or any(place.startswith(_READS) for place in self.edits):
            state.stored = []  # the policy might read or say something else there now
        if self.edits:
            entries = {place: list(values) for place, values in self.edits.items()}
            state.config_changes.append({"step": state.step, "entries": entries})
        if self.env_changes:
            change = {"step": state.step, "before": state.env_identity, "differences": list(self.env_changes)}
            state.env_changes.append(change)
            notices += env_change_lines([change])
        state.env_identity = now.plain()
        return [notice for notice in notices if notice]


def start_of(folder: RunFolder, config: RunConfig | None, steps: int | None, accept: Collection[str]) -> RunStart:
    """The start of a run, or of its continuation. Raises ConfigError for edits or code not accepted."""
    settings = folder.read_config() if config is None else located(config)
    checkpoint = _newest(folder)
    if steps is not None:
        settings = lengthened(settings, steps, checkpoint)
    edits = edits_since(checkpoint, settings)
    if "config" not in accept:
        refuse_edits(folder.path, checkpoint, {k: v for k, v in edits.items() if k != "steps" or steps is None})
    _refuse_late_source(settings, edits)
    if config is None and "code" not in accept:
        check_signed(folder.path, settings)
    if checkpoint is not None:
        refuse_missing_copies(checkpoint, settings.roles)
    return RunStart(settings, checkpoint, accept, edits, task_words=() if config is None else config.tasks or ())


def _refuse_late_source(config: RunConfig, edits: Mapping[str, tuple[Any, Any]]) -> None:
    """Raise ConfigError where an edit names a source for a buffer that was filled before the first step."""
    replay, places = config.rollout.replay, ("rollout.replay", "rollout.replay.source")
    if replay is not None and replay.source is not None and edits.keys() & set(places):
        raise ConfigError(
            "rollout.replay.source fills the buffer before the first step, and this run has a checkpoint: leave it as "
            "it was, or start another run"
        )


def _newest(folder: RunFolder) -> Path | None:
    """The newest intact checkpoint; None where the run has none yet."""
    checkpoint, problems = newest_checkpoint(folder.checkpoints)
    if problems and checkpoint is None:
        raise CheckpointError(f"no checkpoint is intact ({problems[0]}): restore one, or start again in another folder")
    for problem in problems:
        print(f"skipped a damaged checkpoint: {problem}", file=sys.stderr)
    return checkpoint
