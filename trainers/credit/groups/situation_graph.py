"""The graph of situations: nodes are situations of a task, edges are the turns that led from one to the next."""

import networkx as nx
import numpy as np

from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.situations import next_row

GOAL = -2  # the node that an episode's last turn leads to where the episode reached the goal


def reached_goal(batch: TurnBatch, goal: float) -> BoolK:
    """True for the turn (K) that ended an episode with an outcome of ``goal`` or more.

    >>> reached_goal(TurnBatch.from_episodes([[0, 1], [0.5]], [0, 0]), goal=1.0)
    array([False,  True, False])
    """
    return (next_row(batch) < 0) & (np.nan_to_num(outcome_E(batch), nan=-np.inf)[batch.episode_K] >= goal)


def distances(batch: TurnBatch, situation_K: IntK, goal: float) -> tuple[FloatK, FloatK]:
    """Fewest turns from the situation of each turn (K) to the goal, and from the situation that it led to.

    Paths go along turns of any episode of the task. A situation without a path, and the end of an episode that failed,
    is one turn farther than the farthest that has one; unscorable turns have NaN.

    >>> batch = TurnBatch.from_episodes([[0, 0, 1], [0, 0]], [0, 0], anchors=["abc", "bx"])
    >>> distances(batch, np.array([0, 1, 2, 1, 3]), goal=1.0)
    (array([3., 2., 1., 2., 4.]), array([2., 1., 0., 4., 4.]))
    """
    next_K, here_K, there_K = next_row(batch), np.full(len(situation_K), np.nan), np.full(len(situation_K), np.nan)
    node_K = np.where(next_K >= 0, situation_K[next_K], np.where(reached_goal(batch, goal), GOAL, -1))
    for group in np.unique(batch.group_K):
        rows = np.flatnonzero((batch.group_K == group) & batch.scorable_K)
        backwards = nx.DiGraph()
        backwards.add_node(GOAL)
        backwards.add_edges_from((v, u) for u, v in zip(situation_K[rows], node_K[rows], strict=True) if v != -1)
        steps = nx.single_source_shortest_path_length(backwards, GOAL)
        beyond = max(steps.values()) + 1
        here_K[rows] = [steps.get(node, beyond) for node in situation_K[rows]]
        there_K[rows] = [steps.get(node, beyond) for node in node_K[rows]]
    return here_K, there_K


def node_means(value_K: FloatK, node_K: IntK, counted_K: BoolK) -> FloatK:
    """Mean (K) of the counted values at the turn's node; NaN where there is none.

    >>> node_means(np.array([1.0, 0.0, 5.0, np.nan]), np.array([0, 0, 1, -1]), np.array([True, True, True, False]))
    array([0.5, 0.5, 5. , nan])
    """
    nodes = int(node_K.max()) + 2
    sum_N = np.bincount(node_K[counted_K] + 1, value_K[counted_K], nodes)
    count_N = np.bincount(node_K[counted_K] + 1, minlength=nodes)
    return np.where(count_N > 0, sum_N / np.maximum(count_N, 1), np.nan)[node_K + 1]
