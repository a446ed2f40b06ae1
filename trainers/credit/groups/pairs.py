"""Pairs: losses that compare two turns, or two episodes, as an advantage of each.

    L = mean over pairs p = (w, l) of f(D_w - D_l)        D: log of the policy's probability over the reference's
    dL = sum over pairs of f'(D_w - D_l) / P (grad log pi(w) - grad log pi(l))

A pair's gradient is that of the plain policy gradient, -A log pi, where A is -f' / P for the better one of the pair and
f' / P for the worse. f' is of log-probabilities before the update, so the two need never meet in one pass. This is
exact for one update a step, and where each token of the step weighs the same.

Source: Direct Preference Optimization, arXiv 2305.18290, equation 7, for f = -log sigmoid(beta D).
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.situations import paired, previous_row
from manyturn.trainers.credit.stages import StageConfig

ROUNDING = 1e-9  # share of a value below which a difference is none
REFERENCE = "reference"  # the column with D of each turn


class PairConfig(StageConfig):
    """Base of the configurations of methods that learn from pairs."""

    needs: ClassVar[frozenset[str]] = frozenset({REFERENCE})
    compares_groups: ClassVar[bool] = True

    beta: float = Field(default=0.1, gt=0)
    """How much a departure from the reference policy costs: the lower, the further the policy may go."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        objective, credit = run.objective, run.credit
        if fault := run.agent.refuse_inner(f"{self.name} prefers one action to another"):
            return fault
        if run.order.is_asynchronous:
            return (
                f"order.kind = 'asynchronous' learns from episodes of earlier weights, and {self.name} prefers among "
                "those of the policy that learns: leave order.kind out"
            )
        if not objective.needs_fresh_samples:
            return (
                f"{self.name} learns from pairs, with weights of the policy before a step's only update, and "
                f"{objective.name} is made for several: take the plain policy gradient (objective = 'reinforce')"
            )
        if objective.aggregation != "token-sum":
            return (
                f"objective.aggregation = {objective.aggregation!r} weighs what {self.name} has divided by the number "
                "of pairs already: set it to 'token-sum'"
            )
        for name in ("correction", "reject"):
            if getattr(objective, name):
                return f"objective.{name} weighs the two of a pair apart, and {self.name} compares them: leave it out"
        if credit.modulation:
            weighs = credit.modulation[0].name
            return f"{weighs} weighs the two of a pair apart, and {self.name} compares them: leave it out"
        if credit.truncated == "left_out":
            return f"credit.truncated = 'left_out' would tear pairs of {self.name} apart: leave it out"
        return None


class Pairs(NamedTuple):
    """P pairs, as places of the better and of the worse one, such as rows of a batch."""

    better_P: IntK
    worse_P: IntK


def pairs_inside(places: IntK, choices_made: IntK, values: FloatK, threshold: float = 0.0) -> Pairs:
    """All pairs of one place and of different choices, whose values differ by more than the threshold.

    >>> pairs_inside(np.array([0, 0, 0, -1]), np.array([5, 6, 6, 7]), np.array([1.0, 0.0, 2.0, 9.0]))
    Pairs(better_P=array([0, 2]), worse_P=array([1, 0]))

    Args:
        places: of each turn, or episode, the number of its place, such as a situation; -1: of none, and in no pair.
        choices_made: number of what was done there.
        values: how good that was.
        threshold: difference that is not enough.
    """
    _, number, visits = np.unique(places, return_inverse=True, return_counts=True)
    order = np.argsort(places, kind="stable")
    order = order[((places >= 0) & (visits[number] > 1))[order]]
    blocks = [np.zeros((2, 0), np.int64)]
    for rows in np.split(order, np.flatnonzero(np.diff(places[order])) + 1):
        value, choice = values[rows], choices_made[rows]
        least = threshold + ROUNDING * np.abs(value).max(initial=1.0)
        better, worse = np.nonzero((value[:, None] - value > least) & (choice[:, None] != choice))
        blocks.append(np.stack([rows[better], rows[worse]]))
    return Pairs(*np.concatenate(blocks, axis=1))


def choices(batch: TurnBatch, situation_K: IntK) -> IntK:
    """Number (K) of what each turn did in its situation, by the column "action"; -1 where there is no situation."""
    return paired(situation_K, batch.column("action").astype(np.int64))


def paths(batch: TurnBatch, situation_K: IntK) -> IntK:
    """Number (K) of each turn's situation with every situation and action before it in its episode.

    Two turns have equal numbers where their episodes are the same up to their choice; -1 where there is no situation.

    >>> columns = {"action": [[0, 0], [0, 0], [1, 0]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0], [0, 0]], [0] * 3, anchors=["ab", "ab", "ab"], columns=columns)
    >>> paths(batch, batch.anchor_K)
    array([0, 1, 0, 1, 0, 2])
    """
    before_K, action_K = previous_row(batch), batch.column("action").astype(np.int64)
    path_K, choice_K = np.full((2, len(before_K)), -1)
    for turn in range(int(batch.turn_K.max()) + 1):
        rows = np.flatnonzero(batch.turn_K == turn)
        came_K = choice_K[before_K[rows]] if turn else np.zeros(len(rows), np.int64)
        number_K = paired(situation_K[rows], came_K)
        path_K[rows] = np.where(number_K >= 0, number_K + path_K.max() + 1, -1)
        choice_K[rows] = paired(path_K[rows], action_K[rows])
    return path_K


def preference(batch: TurnBatch, pairs: Pairs, beta: float) -> tuple[FloatK, dict[str, float]]:
    """DPO's advantage (K) of the turns in pairs, and figures on the pairs.

    >>> columns = {"reference": [[0.0], [0.0]]}
    >>> batch = TurnBatch.from_episodes([[1], [0]], groups=[0, 0], columns=columns)
    >>> preference(batch, Pairs(np.array([0]), np.array([1])), beta=0.5)[0]
    array([ 0.25, -0.25])
    """
    departure_K, rows = batch.column(REFERENCE), len(batch.turn_K)
    margin_P = beta * (departure_K[pairs.better_P] - departure_K[pairs.worse_P])
    pull_P = beta * np.exp(-np.logaddexp(0.0, margin_P)) / max(len(margin_P), 1)
    total_K = np.zeros(rows)
    np.add.at(total_K, pairs.better_P, pull_P)
    np.subtract.at(total_K, pairs.worse_P, pull_P)
    in_pair_K = np.zeros(rows, bool)
    in_pair_K[np.concatenate(pairs)] = True
    return total_K, pair_figures(margin_P, in_pair_K)


def pair_figures(margin_P: FloatK, in_pair_K: np.ndarray) -> dict[str, float]:
    """Figures on pairs: their mean margin, the share ranked right (ties count half), and the share of turns in pairs.

    >>> pair_figures(np.array([0.2, 0.0]), np.array([True, True, False, False]))
    {'paired_turns': 0.5, 'pair_margin': 0.1, 'pairs_ranked': 0.75}
    """
    figures = {"paired_turns": float(in_pair_K.mean())}
    if len(margin_P):
        ranked_P = (margin_P > 0) + 0.5 * (margin_P == 0)
        figures |= {"pair_margin": float(margin_P.mean()), "pairs_ranked": float(ranked_P.mean())}
    return figures
