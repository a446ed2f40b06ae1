"""Sample that an audit scores methods on: the turns of played groups, with the true effect of each."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from manyturn.trainers.credit.audit.effects import Effects, joined
from manyturn.trainers.credit.audit.gradient_alignment import FirstActions
from manyturn.trainers.credit.batch.turn_batch import IntK, TurnBatch, ids_of
from manyturn.trainers.credit.external_rollouts import Rollout, batch_of

OWN = "environment"  # the anchor that the rollouts have


@dataclass(frozen=True)
class AuditedTask:
    """A group of episodes of one task, with the true effects of its K turns, episode after episode.

    Attributes:
        starts_K: number of the situation before each turn: turns of one number are in one state.
        choices: what the policy would have done there; None: not known, and no alignment is computed.
        anchors: kind -> of each turn (K) the situation by that anchor; the rollouts' own is not among them.
        branches: the rollouts once more, and after them branches that repeat turns of these and then go on by
            themselves, with the column "drawer", for methods that compare siblings; empty: there are none.
    """

    rollouts: Sequence[Rollout]
    effects: Effects
    starts_K: IntK
    choices: FirstActions | None = None
    anchors: Mapping[str, Sequence[Hashable]] = field(default_factory=dict)
    branches: Sequence[Rollout] = ()


@dataclass(frozen=True, eq=False)
class AuditSample:
    """The turns of N tasks: K turns of E episodes.

    Attributes:
        batch: for the methods.
        task_K: number of the task of each turn, 0 to N-1.
        starts_K: number of the state before each turn, over all tasks.
        choices: of each task; empty where they are not known.
        anchors: kind -> ids (K) of the situations by that anchor.
        branched: a batch with branches too, in which the K turns come first; None: there are no branches.
        oracle: names of columns that are made from true values.
    """

    batch: TurnBatch
    effects: Effects
    task_K: IntK
    starts_K: IntK
    choices: Sequence[FirstActions]
    anchors: Mapping[str, IntK]
    branched: TurnBatch | None = None
    oracle: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tasks: Sequence[AuditedTask], oracle: frozenset[str] = frozenset()) -> "AuditSample":
        """All tasks as one sample. Raises ValueError where a list does not fit the turns."""
        batch = batch_of([rollout for task in tasks for rollout in task.rollouts])
        turns_N = [len(task.starts_K) for task in tasks]
        if sum(turns_N) != len(batch.turn_K):
            raise ValueError(f"there are effects of {sum(turns_N)} turns, and rollouts of {len(batch.turn_K)}")
        task_K = np.repeat(np.arange(len(tasks)), turns_N)
        kinds = list(tasks[0].anchors)
        anchors = {kind: ids_of([one for task in tasks for one in task.anchors[kind]]) for kind in kinds}
        if batch.anchor_K is not None:
            anchors = {OWN: batch.anchor_K, **anchors}
        starts = [(n, start) for n, task in enumerate(tasks) for start in task.starts_K.tolist()]
        choices = [task.choices for task in tasks if task.choices is not None]
        return cls(
            batch=batch,
            effects=joined([task.effects for task in tasks]),
            task_K=task_K,
            starts_K=ids_of(starts),
            choices=choices if len(choices) == len(tasks) else (),
            anchors=anchors,
            branched=_branched(tasks),
            oracle=oracle,
        )

    def batch_by(self, anchor: str) -> TurnBatch:
        """The batch with the situations of another anchor. Similarity goes on by the texts."""
        return self.batch if anchor == OWN else replace(self.batch, anchor_K=self.anchors[anchor])


def _branched(tasks: Sequence[AuditedTask]) -> TurnBatch | None:
    """All rollouts, and after them all branches."""
    if not all(task.branches for task in tasks):
        return None
    own = [rollout for task in tasks for rollout in task.branches[: len(task.rollouts)]]
    return batch_of([*own, *(rollout for task in tasks for rollout in task.branches[len(task.rollouts) :])])
