"""Replay of successes: a stored one takes the place of an attempt in a group of which no attempt succeeds (ARPO).

    a group without a success    its first ``members`` attempts make way for as many stored successes of its task
    any other group              stays as it is
    with ``use = "imitation"``   no attempt makes way: the successes are imitated after the step's updates (ReLIFT)
    after the step               its own successes are stored: of each task the newest ``per_task``

Source: ARPO (Agentic Replay Policy Optimization for GUI agents), arXiv 2505.16282, and the authors' code
(dvlab-research/ARPO, ``ray_trainer.py``, ``apply_replay``): one success out of the 8 newest of the task, drawn
uniformly, replaces the group's first member; the step's own successes are stored after that. Imitation: ReLIFT, arXiv
2506.07527, and the authors' code (TheRoadQaQ/ReLIFT, ``trainer.py``): tasks that no attempt solves are fine-tuned on,
between updates of reinforcement learning.

Implementation:
1. A replayed episode has the tokens that it was drawn with, and the log-probability that the policy of then gave each.
   With ``learner.old_logprobs = "learner"``, which is theirs, the ratio of an update begins at 1 all the same;
   ``objective.correction`` then weighs each token by the present policy's probability over that of then. With
   ``"engine"`` the ratio itself is over the policy of then.
2. Which stored success is drawn follows from the run's seed, the step and the task alone. All are files next to the
   run, which its checkpoints name with their hashes.
3. The attempts that make way are in the tables and in ``success``, and are not learnt from; the replayed episodes are
   in the tables with their age in the column ``replayed``, and in no figure of what was played. A curriculum hears of
   what was played alone.
4. ``source`` fills the buffer before the first step: with what another run has stored, if environment, agent and
   tokenizer are the same; or with trajectories. Those are played again, action by action, and enter if they succeed
   here; their log-probabilities are 0, since whoever played them is taken to be certain. Only training tasks enter.
5. With ``use = "imitation"`` a step ends with one more update, towards saying what the stored successes of all its
   groups without one say (mean negative log-likelihood of a token). Nothing else of the step changes.
6. Where an environment is random, an attempt and a stored success of its task may have met different chances.

Differences: ARPO's code tests whether scores between 0 and 1 have a mean below 0.2 and a deviation below 0.05, here no
attempt has reached its goal; there a success is a score above 0.1. Their buffer is in memory, and empty again where a
run is resumed. Members that ended in an error have left their group here, and make way for nothing. ReLIFT gathers 128
such tasks of several steps for an update, rewards entropy in it, and has solutions of a larger model; here each step
has its update.

Watch: ``replayed``: 0, and ``silent_groups`` above 0: nothing is stored of the tasks that fail, so that a source has to
begin it. ``replay_ratio`` far from 1: the policy has moved away from what it replays. ``replay_age`` as large as the
run: it lives on a few early successes. ``engine_kl`` counts replayed tokens too, which older weights drew.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from manyturn.agents.play.episode import Episode
from manyturn.agents.records.episode_buffer import EpisodeBuffer
from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.turn_batch import FloatK
from manyturn.trainers.play.rollout.rollout_batch import is_learnable


class SuccessReplay(Options):
    """Number of stored successes that a group without one gets, and number that are stored."""

    members: int = Field(default=1, ge=1)
    """Stored successes that a group without a success gets; fewer than rollout.group."""
    use: Literal["member", "imitation"] = "member"
    """Take the place of attempts, or be imitated after the step's updates."""
    rate: Annotated[float, OnlyWith("use", "imitation")] = Field(default=1.0, gt=0)
    """Learning rate of imitation, as a multiple of the learner's in the step."""
    per_task: int = Field(default=8, ge=1)
    """Successes of a task that are stored, the newest ones."""
    size: int = Field(default=1000, ge=1)
    """Successes that are stored in all, the newest ones."""
    source: str | None = None
    """Folder of a run whose stored successes are there from the first step on; or a file or folder of trajectories of
    training tasks, such as of ``manyturn evaluate expert --split train``, which are played again."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.members >= run.rollout.group:
            return (
                f"rollout.replay.members = {self.members} leaves no attempt of rollout.group = {run.rollout.group} to "
                "compare with: lower it, raise rollout.group, or leave replay out"
            )
        if self.per_task > self.size:
            return (
                f"rollout.replay.per_task = {self.per_task} has no effect with size = {self.size}: lower it, or raise "
                "size"
            )
        for section in ("branching", "tempering", "guidance"):
            if getattr(run.rollout, section) is not None:
                return f"rollout.replay and rollout.{section} do not go together: leave one of them out"
        if run.roles or (env is not None and len(env.roles) > 1):
            return "rollout.replay stores episodes of one policy in one role, and here there are several: leave it out"
        if self.use != "member":
            return None
        if self.source is not None and run.judge is not None:
            return (
                "rollout.replay.source begins with episodes that no judge has seen, and [judge] pays verdicts: leave "
                "source out"
            )
        return self._refuse_fresh(run)

    def _refuse_fresh(self, run: Any) -> str | None:
        """Refuse what takes each episode for one of the present policy's."""
        if run.objective.needs_fresh_samples and run.objective.correction is None:
            return (
                f"rollout.replay learns from what earlier weights drew, and {run.objective.name} needs samples of the "
                "present ones: take an objective with a ratio, such as clip, or give objective.correction"
            )
        for stage in (*run.credit.rewards, run.credit.advantage, *run.credit.modulation):
            if stage.needs_fresh_samples:
                return (
                    f"rollout.replay adds successes that the present policy did not have, which {stage.name} would "
                    "take for its own: take an advantage that compares the episodes of a group, such as grpo"
                )
        if run.value is not None:
            return (
                "rollout.replay adds successes that the present policy did not have, and the critic of [value] would "
                "learn them as its own: take an advantage without a critic, such as grpo, and leave [value] out"
            )
        return None


class Replays(NamedTuple):
    """The episodes of a step with those that are replayed.

    Attributes:
        episodes: all that were played, and then the replayed ones.
        is_kept: the ones to learn from, unless they ended in an error.
        stored: the index of the buffer after the step.
        figures: metrics.
        imitated: those of the replayed episodes that are to be imitated.
    """

    episodes: Sequence[Episode]
    is_kept: Sequence[bool]
    stored: list[list[Any]]
    figures: dict[str, float]
    imitated: Sequence[Episode] = ()


def with_replays(
    episodes: Sequence[Episode],
    is_kept: Sequence[bool],
    buffer: EpisodeBuffer,
    config: SuccessReplay,
    key: tuple[int, int],
) -> Replays:
    """Put stored successes into the groups that have none, and store the step's own; nothing else is written.

    Args:
        episodes: those of the step, all members of a group with one id of a task.
        is_kept: the ones to learn from so far.
        key: the run's seed and the step.
    """
    groups, kept_E = dict[str, list[int]](), list(is_kept)
    for place, episode in enumerate(episodes):
        if kept_E[place] and is_learnable(episode):
            groups.setdefault(episode.key.task, []).append(place)
    replayed, silent, helped, is_member = list[Episode](), 0, 0, config.use == "member"
    for places in groups.values():
        attempts = [episodes[place] for place in places]
        if any(attempt.success for attempt in attempts) or all(attempt.success is None for attempt in attempts):
            continue
        silent += 1
        free = 1 + max(episode.key.member for episode in episodes if episode.key.task == attempts[0].key.task)
        chosen = _chosen(attempts, buffer, config.members, key, free)
        helped += bool(chosen)
        replayed += chosen
        for place in places[: len(chosen)] if is_member else ():
            kept_E[place] = False
    for episode in episodes:
        if episode.success and is_learnable(episode) and episode.ledger is not None:
            buffer.add(episode, key[1])
    buffer.bound(config.per_task, config.size)
    figures = {
        "silent_groups": silent / max(len(groups), 1),
        "replayed": helped / max(len(groups), 1),
        "stored_episodes": len(buffer.stored),
    }
    if replayed:
        figures["replay_age"] = float(np.mean([episode.replayed or 0 for episode in replayed]))
    together, kept_E = [*episodes, *replayed], kept_E + [is_member] * len(replayed)
    return Replays(together, kept_E, buffer.rows, figures, () if is_member else replayed)


def _chosen(
    attempts: Sequence[Episode], buffer: EpisodeBuffer, members: int, key: tuple[int, int], free: int
) -> list[Episode]:
    """Stored successes of a group's task, as further members from number ``free`` on; at least one attempt stays."""
    task, entries = attempts[0].task, buffer.of(attempts[0].task)
    count = min(members, len(entries), len(attempts) - 1)
    if not count:
        return []
    numbers = generator("replay", *key, task.id).choice(len(entries), size=count, replace=False)
    return [
        replace(
            buffer.read(entries[int(number)], task),
            key=attempts[0].key._replace(member=free + place),
            replayed=key[1] - entries[int(number)].step,
        )
        for place, number in enumerate(numbers)
    ]


def ages(episodes: Sequence[Episode]) -> FloatK:
    """Steps since each of all K turns was drawn, where it is replayed; NaN elsewhere."""
    return np.concatenate(
        [np.full(len(e.turns), np.nan if e.replayed is None else float(e.replayed)) for e in episodes]
    )
