"""Source of the buffer of episodes: what is in it before the first step.

From another run its stored successes are taken as they are, tokens and log-probabilities included, so environment,
agent and tokenizer have to be the same. Trajectories are played again in the run's own environment, action by action,
and those that succeed are stored as if the policy had said them: so rewards, situations and tokens are this run's,
whoever played them. Only training tasks enter.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.demonstrator import Demonstrator
from manyturn.agents.play.episode import Act, LimitReached, Player
from manyturn.agents.records.episode_buffer import EpisodeBuffer
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.trajectories.trajectory import Trajectory
from manyturn.envs.contract.options.config_diff import changes, shown
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.tasks.env_identity import EnvIdentity, differences, listed
from manyturn.envs.contract.tasks.task import Task, task_finder
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat
from manyturn.trainers.play.rollout.replay import SuccessReplay
from manyturn.trainers.record.checkpoint import CheckpointError, newest_checkpoint, read_state
from manyturn.trainers.record.config_edits import complete, plain
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.warmup.external_trajectories import finished, read_trajectories, recorded_act
from manyturn.trainers.run.warmup.shared_warmup import FREE, refuse_another_tokenizer

_PLACE = "rollout.replay.source"


async def fill_buffer(run: Run, folder: RunFolder, note: Callable[[str], None]) -> list[list[object]]:
    """The index of the buffer before the first step; empty without a source.

    Args:
        note: receives how many episodes are left out, and why.

    Raises:
        ConfigError: the source holds nothing to replay, or was made in another environment or by another policy.
    """
    config: SuccessReplay | None = run.config.rollout.replay
    if config is None or config.source is None:
        return []
    source, buffer = Path(config.source), EpisodeBuffer(folder.path)
    if (source / "config.toml").is_file():
        total = _take_from_run(run, source, buffer)
    else:
        total = await _play_again(run, source, buffer)
    if not buffer.stored:
        raise ConfigError(
            f"none of the {total} episodes in {source} is a success at a training task of this run: name others as "
            f"{_PLACE}, or leave it out"
        )
    if (left := total - len(buffer.stored)) > 0:
        note(f"{left} of {total} episodes in {source} are not stored: they fail here, or are of no training task")
    buffer.bound(config.per_task, config.size)
    return buffer.rows


def _training_task(run: Run, find: Callable[[str], Task | None], task_id: str) -> Task | None:
    """The training task of an id; None where there is none, or the run is measured on it."""
    task = find(task_id)
    return None if task is None or task.content in run.measured_contents else task


def _take_from_run(run: Run, source: Path, buffer: EpisodeBuffer) -> int:
    """Store the successes of another run at training tasks; returns how many it has."""
    try:
        checkpoint, _ = newest_checkpoint(source / "checkpoints")
    except CheckpointError as error:
        raise ConfigError(f"{_PLACE}: {error}") from error
    state = {} if checkpoint is None else read_state(checkpoint)
    if checkpoint is None or not state.get("stored"):
        raise ConfigError(
            f"{source} has stored no success, which a run does with rollout.replay: name another run as {_PLACE}"
        )
    was = EnvIdentity.of(state)
    other_env = ("unknown",) if was is None else differences(was, run.seats.identity)
    if other_env:
        raise ConfigError(
            f"{source} was played in another environment ({listed(other_env)}): name another run as {_PLACE}"
        )
    edits = changes(complete(state["config"]), plain(run.config))
    if other := {k: both for k, both in edits.items() if k.startswith("agent.") and k not in FREE}:
        raise ConfigError(f"{source} is of another agent: {shown(other)}; make them the same, or leave {_PLACE} out")
    refuse_another_tokenizer(run.only, source, checkpoint, _PLACE)
    find, theirs = task_finder(run.train), EpisodeBuffer(source, state["stored"])
    for entry, text in theirs.texts():
        task = _training_task(run, find, entry.task)
        if task is not None and task.content == entry.content:
            buffer.put(text, task, 0)
    return len(theirs.stored)


async def _play_again(run: Run, source: Path, buffer: EpisodeBuffer) -> int:
    """Play the trajectories of training tasks again, and store those that succeed; returns how many there are."""
    trajectories = read_trajectories(source, _PLACE)
    find, plan = task_finder(run.train), list[tuple[Task, EpisodeKey]]()
    recorded = dict[EpisodeKey, Trajectory]()
    for number, trajectory in enumerate(trajectories):
        task = _training_task(run, find, trajectory.episode["task"])
        if task is not None and finished(trajectory):
            key = EpisodeKey(run.config.seed, "stored", task.id, number)
            recorded[key] = trajectory
            plan.append((task, key))
    if plan:
        policy, patience = (
            Demonstrator(run.only.agent, _Recorded(run, recorded)),
            replace(run.patience, error_share=1.0),
        )
        played = await gather(run.seats, policy, plan, max_turns=run.config.rollout.max_turns, patience=patience)
        for episode in played:
            if episode.success:
                buffer.add(episode, 0)
    return len(trajectories)


class _Recorded:
    """A policy that says what trajectories have said, by the episode's key."""

    name = "recorded"

    def __init__(self, run: Run, trajectories: dict[EpisodeKey, Trajectory]):
        self._format, self._trajectories = run.only.agent.format, trajectories

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        rows = [
            row
            for row in self._trajectories[key].turns
            if row["format_valid"] and row["understood"] and row["inner"] is None
        ]
        return _RecordedPlayer([recorded_act(row, self._format) for row in rows])


class _RecordedPlayer:
    def __init__(self, acts: Sequence[Act]):
        self._acts, self._place = acts, 0
        self.ledger: Ledger | None = None

    async def act(self, step: Answer, seat: Seat) -> Act:
        if self._place == len(self._acts):
            raise LimitReached("the trajectory has no further turn")
        self._place += 1
        return self._acts[self._place - 1]

    def leave(self) -> None:
        """Nothing is kept."""
