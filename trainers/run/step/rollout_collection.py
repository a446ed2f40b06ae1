"""A step's episodes, kept in a journal as they end, so that a run which was killed need not play them again."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manyturn.agents.play.agent import Agent, AgentPlayer
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.episode import Episode, Policy
from manyturn.agents.play.fork import Forking
from manyturn.agents.records.episode_log import Journal, JournalError
from manyturn.agents.records.episode_rows import SCHEMA_VERSION
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.options.registry import Memory
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.learn.columns.tempered import PLACE
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.play.guidance.guidance import Guide, Guides, Workshop, guides
from manyturn.trainers.play.guidance.guidance_log import texts_of
from manyturn.trainers.play.guidance.guided_play import Guided
from manyturn.trainers.play.judges.agreement import JudgeDisagrees
from manyturn.trainers.play.rollout.branching import Starts, starts
from manyturn.trainers.play.rollout.horizon import turn_limit
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.run.setup.run_builder import Run

Plan = Sequence[tuple[Task, EpisodeKey]]
Temperatures = Mapping[EpisodeKey, float]
Settle = Callable[[Episode], None]


async def play_groups(
    run: Run,
    plan: Plan,
    folder: RunFolder,
    step: int,
    round: int = 0,
    temperatures: Temperatures | None = None,
) -> list[Episode]:
    """Play what the journal does not hold yet.

    Which rows share a batch moves the last digits of log-probabilities. So where the engine keeps bits, a step is taken
    from the journal if all of it is there, and played again if not; otherwise every finished episode counts. Those that
    ended in an error are always tried again. A step with branches or guidance counts entirely or not, since one episode
    that is missing may change what others branch off, or read; texts that were made for it are read again.

    Args:
        plan: E tasks with the key of each episode.
        folder: holds the journal of this round of the step, which is begun if it is missing or of other weights.
        temperatures: of episodes that are drawn at another temperature than the run's.

    Returns:
        E episodes in the order of the plan.
    """
    path, rollout = folder.journal_file(step, round), run.config.rollout
    episodes = _recorded_episodes(plan, path, run.versions)
    depends = rollout.branching is not None or rollout.guidance is not None
    if len(episodes) < len(plan) and (run.config.engine.capabilities.keeps_bits or depends):
        episodes = {}
        path.unlink(missing_ok=True)
    if len(episodes) < len(plan):
        # What is played now may differ from before, and then later rounds and steps were played by other weights.
        folder.forget_journals_after(step, round)
        with folder.writing(), _journal(path, run.versions) as journal:
            while len(episodes) < len(plan):
                next_ones = _Next(run, plan, episodes, folder, step, round)
                episodes |= await next_ones.play(journal, temperatures or {})
    return await judged(run, [episodes[key] for _, key in plan], first=step == 1 and round == 0)


async def judged(run: Run, episodes: Sequence[Episode], *, first: bool) -> list[Episode]:
    """Episodes with the verdicts of the run's judge, where it has one.

    Args:
        first: of the first step, after which the run trusts its judge.

    Raises:
        LearningFailed: the judge does not agree with the outcomes of the first step.
    """
    if run.judging is None:
        return list(episodes)
    try:
        return await run.judging.judged(episodes, first=first)
    except JudgeDisagrees as error:
        raise LearningFailed(str(error)) from error


def starts_of(run: Run, keys: Sequence[EpisodeKey], played: Mapping[EpisodeKey, Episode]) -> Starts:
    """The episodes that can begin, and where each of them forks; see ``branching.starts``."""
    rollout = run.config.rollout
    if rollout.branching is None:
        return dict.fromkeys(keys)
    return starts(keys, played, rollout.group, rollout.branching, run.only.engine.vocabulary)


@dataclass(frozen=True)
class _Next:
    """The episodes of a round of a step that can begin and are not there yet.

    Attributes:
        done: those that have ended.
    """

    run: Run
    plan: Plan
    done: Mapping[EpisodeKey, Episode]
    folder: RunFolder
    step: int
    round: int

    async def play(self, journal: Journal, temperatures: Temperatures) -> dict[EpisodeKey, Episode]:
        """Play them; each is in the journal when it has ended."""
        run, folder = self.run, self.folder
        begun, policy, settle = await self._beginnings(temperatures)
        batch = [(task, key) for task, key in self.plan if key in begun and key not in self.done]

        def keep(episode: Episode) -> None:
            settle(episode)
            with folder.writing():
                journal.append(episode_to_plain(episode))

        patience = run.patience  # its share of errors is of all that is planned
        played = await gather(
            run.seats,
            policy,
            batch,
            max_turns=most_turns(run, self.step),
            patience=replace(patience, error_share=patience.error_share * (len(self.plan) / len(batch))),
            breaker=run.breaker,
            on_episode=keep,
        )
        return {episode.key: episode for episode in played}

    async def _beginnings(self, temperatures: Temperatures) -> tuple[Container[EpisodeKey], Policy, Settle]:
        """The episodes that can begin, who plays them, and what is noted in each that has ended."""
        run, keys = self.run, [key for _, key in self.plan]
        if temperatures:
            return keys, Tempered(run.only.agent, temperatures), _leave
        if run.config.rollout.branching is not None:
            begun = starts_of(run, keys, self.done)
            forks = {key: fork for key, fork in begun.items() if fork is not None}

            def settle(episode: Episode) -> None:
                if episode.key in forks:
                    forks[episode.key].settle(episode)

            # Branches repeat what one policy said; where there are several, nothing branches.
            return begun, Forking(run.only.agent, forks), settle
        if (orders := guides_of(run, keys, self.done, self.step)) is not None:
            missing = {key: guide for key, guide in orders.items() if guide is not None and key not in self.done}
            texts = await self._texts(missing) if missing else {}
            guided = Guided(run.only.agent, texts, keeps_plain=run.config.rollout.guidance.reads == "plain")
            return orders, guided, guided.settle
        return keys, run.advised(), _leave

    async def _texts(self, missing: Mapping[EpisodeKey, Guide]) -> dict[EpisodeKey, str]:
        run = self.run
        workshop = Workshop(run.seats, most_turns(run, self.step), run.patience)
        path = self.folder.guidance_file(self.step, self.round)
        return await texts_of(workshop, missing, run.config.rollout.guidance, path, _settings(run.versions))


def _leave(episode: Episode) -> None:
    """Nothing is to be noted."""


def guides_of(run: Run, keys: Sequence[EpisodeKey], played: Mapping[EpisodeKey, Episode], step: int) -> Guides | None:
    """The episodes that can begin, and the text that each needs; None where the step has no guidance."""
    rollout = run.config.rollout
    if rollout.guidance is None or step <= rollout.guidance.after:
        return None
    return guides(keys, played, rollout.group, rollout.guidance)


def most_turns(run: Run, step: int) -> int:
    """The turn limit of a step's episodes."""
    rollout = run.config.rollout
    return rollout.max_turns if rollout.horizon is None else turn_limit(rollout.horizon, max(step, 1))


def _journal(path: Path, versions: list[int]) -> Journal:
    return Journal(path, _settings(versions))


def _settings(versions: list[int]) -> dict[str, Any]:
    return {"policy_version": versions, "schema_version": SCHEMA_VERSION}


def _recorded_episodes(plan: Plan, path: Path, versions: list[int]) -> dict[EpisodeKey, Episode]:
    if not path.is_file():
        return {}
    try:
        with _journal(path, versions) as journal:
            entries = journal.entries
    except JournalError:
        # Of other weights, or damaged at its head: what it holds is of no use for this step.
        path.unlink()
        return {}
    tasks = {key: task for task, key in plan}
    keyed = [(EpisodeKey(*entry["key"]), entry) for entry in entries]
    episodes = [episode_from_plain(entry, tasks[key]) for key, entry in keyed if key in tasks]
    return {episode.key: episode for episode in episodes if not episode.ending.is_error}


def temperatures_of(run: Run, keys: Sequence[EpisodeKey], memory: Memory) -> dict[EpisodeKey, float]:
    """Temperatures of the episodes that are tempered, by what the run remembers of the entropy of the step before."""
    rollout = run.config.rollout
    if rollout.tempering is None:
        return {}
    entropy = run.only.memory(memory).get(PLACE, {}).get("entropy")
    return rollout.tempering.temperatures(keys, rollout.group, entropy)


class Tempered:
    """The agent, where episodes of certain keys are drawn at temperatures of their own.

    Their log-probabilities are of those temperatures, and no ratio of the learner's is right for them.

    Args:
        agent: plays all episodes.
        temperatures: key of each episode that is drawn at another temperature -> that temperature.
    """

    def __init__(self, agent: Agent, temperatures: Mapping[EpisodeKey, float]):
        self.agent, self.temperatures, self.name = agent, temperatures, agent.name

    def player(self, key: EpisodeKey, instructions: str) -> AgentPlayer:
        temperature = self.temperatures.get(key)
        if temperature is None:
            return self.agent.player(key, instructions)
        sampling = self.agent.sampling.model_copy(update={"temperature": temperature})
        return AgentPlayer(self.agent, key, instructions, Ledger(), sampling)
