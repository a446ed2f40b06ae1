"""A step's episodes, kept in a journal as they end, so that a run which was killed need not play them again."""

from collections.abc import Sequence
from pathlib import Path

from manyturn.agents.engine import EpisodeKey
from manyturn.agents.episode import Episode
from manyturn.agents.gather import gather
from manyturn.agents.journal import Journal, JournalError
from manyturn.agents.recorded import episode_from_plain, episode_to_plain
from manyturn.envs.task import Task
from manyturn.trainers.curricula.horizon import turn_limit
from manyturn.trainers.parts import Parts
from manyturn.trainers.run_folder import RunFolder

Plan = Sequence[tuple[Task, EpisodeKey]]


async def play_groups(parts: Parts, plan: Plan, folder: RunFolder, step: int, round: int = 0) -> list[Episode]:
    """Play what the journal does not hold yet.

    Which rows share a batch moves the last digits of log-probabilities. So a step that is reproducible to the bit
    (``rollout.patience`` unset) is taken from the journal if all of it is there, and played anew if not; otherwise
    every finished episode counts. Those that ended in an error are always tried again.

    Args:
        plan: E tasks with the key of each episode.
        folder: holds the journal of this round of the step, which is begun if it is missing or of other weights.

    Returns:
        E episodes in the order of the plan.
    """
    path = folder.journal_file(step, round)
    found = _found(plan, path, parts.learner.updates)
    if len(found) < len(plan) and parts.config.rollout.patience is None:
        found = {}
        path.unlink(missing_ok=True)
    missing = [(task, key) for task, key in plan if key not in found]
    if missing:
        # What is played now may differ from before, and then later rounds and steps were played by other weights.
        folder.forget_journals_after(step, round)
        with folder.writing(), _journal(path, parts.learner.updates) as journal:

            def keep(episode: Episode) -> None:
                with folder.writing():
                    journal.append(episode_to_plain(episode))

            played = await gather(
                parts.seats,
                parts.agent,
                missing,
                max_turns=_turn_limit(parts, step),
                patience=parts.patience,
                breaker=parts.breaker,
                on_episode=keep,
            )
        found |= {episode.key: episode for episode in played}
    return [found[key] for _, key in plan]


def _turn_limit(parts: Parts, step: int) -> int:
    rollout = parts.config.rollout
    return rollout.max_turns if rollout.horizon is None else turn_limit(rollout.horizon, step)


def _journal(path: Path, version: int) -> Journal:
    return Journal(path, {"policy_version": version})


def _found(plan: Plan, path: Path, version: int) -> dict[EpisodeKey, Episode]:
    if not path.is_file():
        return {}
    try:
        with _journal(path, version) as journal:
            entries = journal.entries
    except JournalError:
        # Of other weights, or damaged at its head: whatever it holds is of no use for this step.
        path.unlink()
        return {}
    tasks = {key: task for task, key in plan}
    keyed = [(EpisodeKey(*entry["key"]), entry) for entry in entries]
    episodes = [episode_from_plain(entry, tasks[key]) for key, entry in keyed if key in tasks]
    return {episode.key: episode for episode in episodes if not episode.ending.is_error}
