"""Learning of a step from episodes that have been played, in whichever order they were."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.agents.records.episode_buffer import EpisodeBuffer
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.registry import Memory
from manyturn.trainers.learn.learner.rate_schedule import rate_share
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.play.guidance.guidance import guidance_figures
from manyturn.trainers.play.rollout.branching import Starts, drawn_tokens, repeats
from manyturn.trainers.play.rollout.curriculum_feedback import findings
from manyturn.trainers.play.rollout.replay import Replays, ages, with_replays
from manyturn.trainers.play.rollout.rollout_batch import is_learnable
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.step.inert_parts import gives_grpos, idle_parts
from manyturn.trainers.run.step.no_signal import no_signal
from manyturn.trainers.run.step.policy_update import Origins, PolicyUpdate, credit_columns, policy_updates
from manyturn.trainers.run.step.task_draw import task_of
from manyturn.trainers.run.warmup.imitation_samples import imitation_samples


@dataclass(frozen=True)
class Lesson:
    """The episodes of a step.

    Attributes:
        step: its number.
        episodes: all that were played, and those of earlier steps that are replayed.
        is_kept: the ones to learn from, unless they ended in an error.
        numbers: task id -> its number in the split.
        begun: where each episode forked, where some did.
        temperatures: of episodes that were drawn at another temperature than the run's.
        figures: of what chose the episodes to learn from.
        stored: the index of the buffer of episodes after the step.
        imitated: episodes to imitate after the updates.
    """

    step: int
    episodes: Sequence[Episode]
    is_kept: Sequence[bool]
    numbers: Mapping[str, int]
    begun: Starts
    temperatures: Mapping[EpisodeKey, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    stored: list[list[Any]] = field(default_factory=list)
    imitated: Sequence[Episode] = ()

    def updates(self, run: Run, memory: Memory) -> list[PolicyUpdate]:
        """An update for each policy that had a turn. Raises LearningFailed where there is none."""
        episodes = self.episodes
        if updates := policy_updates(run, episodes, self.is_kept, memory, Origins.of(self.begun, self.temperatures)):
            return updates
        ends = Counter(episode.cause if episode.ending.is_error else episode.last for episode in episodes)
        [(end, count)] = ends.most_common(1)
        raise LearningFailed(
            f"no episode of step {self.step} has a turn to learn from, {count} of {len(episodes)} for this reason: "
            f"{end}"
        )

    def learn(
        self, run: Run, folder: RunFolder, updates: Sequence[PolicyUpdate], memory: Memory
    ) -> tuple[dict[str, Any], Memory]:
        """Write down what was played, and update the weights; returns metrics, and what the run remembers."""
        config, episodes, figures = run.config, self.episodes, dict[str, Any](self.figures)
        columns = credit_columns(updates, sum(len(episode.turns) for episode in episodes))
        if self.step == 1:
            for update in updates:
                if idle := ", ".join(idle_parts(update, config.environments.values(), config.credit)):
                    figures |= update.trainee.labelled({"idle_wrappers": idle})
                if gives_grpos(update, config.credit):
                    figures |= update.trainee.labelled({"idle_advantage": config.credit.advantage.name})
        if config.rollout.branching is not None:
            columns["repeats_member"] = repeats(episodes, self.begun)
            figures["branched"] = float(np.mean([fork is not None for fork in self.begun.values()]))
        if config.rollout.replay is not None:
            columns["replayed"] = ages(episodes)
        if config.rollout.guidance is not None:
            figures |= guidance_figures(episodes, config.rollout.group, self.step, config.rollout.guidance)
        if run.judging is not None:
            figures |= run.judging.figures(episodes)
        folder.write_step(self.step, episodes, columns, tokens=config.keep_tokens)
        trained = 0
        for update in updates:
            update_figures, tokens = update.learn(run, self.step)
            figures |= update_figures | update.replay_figures()
            trained += tokens
            memory = update.remembered(memory)
        if self.imitated:
            figures |= self._imitate(run)
        elif reason := no_signal(updates, self._played, figures):
            figures["no_signal"] = reason
        return {**figures, "trained_tokens": trained}, memory

    def _imitate(self, run: Run) -> dict[str, Any]:
        """One more update, towards saying what the imitated episodes say; returns its metrics."""
        config, learner, replay = run.config, run.only.learner, run.config.rollout.replay
        assert replay is not None
        lr = config.learner.lr * rate_share(config.learner, self.step, config.steps) * replay.rate
        loss = learner.imitate(imitation_samples(self.imitated), lr)["loss"]
        return {"imitated": len(self.imitated), "imitation_loss": loss, "version": learner.updates}

    def settle(self, run: Run, state: State, updates: Sequence[PolicyUpdate], memory: Memory) -> dict[str, Any]:
        """The step is done: the state says so; returns metrics of what has been drawn."""
        episodes, credits = self._played, [update.credit for update in updates]
        state.seen |= {task_of(run, state, number).content for number in self.numbers.values()}
        unguided = [episode for episode in episodes if not episode.guidance]  # a text may do what the policy cannot
        state.feedback = [list(feedback) for feedback in findings(unguided, self.numbers, credits, run.learning_roles)]
        state.step, state.memory, state.stored = self.step, dict(memory), self.stored
        state.judged = [] if run.judging is None else list(run.judging.spent)
        turns, tokens = sum(len(episode.turns) for episode in episodes), drawn_tokens(episodes, self.begun)
        return {
            "drawn_tokens": drawn_tokens(self._learnt, self.begun),
            **state.count(len(episodes), turns, tokens),
        }

    @property
    def _played(self) -> list[Episode]:
        return [episode for episode in self.episodes if episode.replayed is None]

    @property
    def _learnt(self) -> list[Episode]:
        """The episodes of this step that it learns from."""
        pairs = zip(self.episodes, self.is_kept, strict=True)
        return [e for e, is_kept in pairs if is_kept and e.replayed is None and is_learnable(e)]


def replays_of(
    run: Run, folder: RunFolder, state: State, episodes: Sequence[Episode], is_kept: Sequence[bool]
) -> Replays:
    """The episodes of the next step with those that are replayed; files are written, and the state stays as it is."""
    config = run.config.rollout.replay
    if config is None:
        return Replays(episodes, is_kept, [], {})
    with folder.writing():
        return with_replays(
            episodes, is_kept, EpisodeBuffer(folder.path, state.stored), config, (run.config.seed, state.step + 1)
        )
