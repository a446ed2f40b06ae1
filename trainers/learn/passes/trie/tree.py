"""Rows of tokens as a tree, in which what rows begin with alike is there once.

What a causal model computes of a token depends on the token and on those before it. So two rows that begin alike have
the same log-probabilities, entropies and hidden states up to where they part, and one node stands for both.

Rows are put into lexicographic order, the later one first, so that a row which another one continues comes after it.
Each row then shares its beginning with the row before it, and adds one run of nodes, or none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from manyturn.agents.text.command_tree import CommandTree


class Stretch(NamedTuple):
    """Consecutive nodes that attend together.

    Attributes:
        start, end: their numbers.
        before: (P,) the nodes from the root down to the first one's parent.
        hidden: (N, N) of nodes that branch: True where a node, the row, must not see another one, the column. None:
            each is the child of the one before.
    """

    start: int
    end: int
    before: np.ndarray
    hidden: np.ndarray | None = None


@dataclass(frozen=True)
class Tree:
    """N nodes for B rows. A parent has a lower number than its children; roots are at depth 0.

    Attributes:
        ids: (N,) token of each node.
        depth: (N,) its position in every row that holds it.
        parent: (N,) number of the node before it, -1 for roots.
        rows: for each row of T tokens, (T,) its nodes.
        runs: the nodes in order.
        listed: for each list of commands, (N + 1,) the nodes that its edges begin at.
    """

    ids: np.ndarray
    depth: np.ndarray
    parent: np.ndarray
    rows: list[np.ndarray]
    runs: list[Stretch]
    listed: list[np.ndarray] = field(default_factory=list)

    def with_commands(self, lists: Sequence[tuple[int, int, CommandTree]]) -> "Tree":
        """The same with listed commands as branches. A list that stands twice after the same node is there once.

        Args:
            lists: number of the row that each stands in, of how many of its tokens the prompt is, and the commands.
        """
        parts, runs, size = [(self.ids, self.depth, self.parent)], list(self.runs), len(self.ids)
        nodes, listed = dict[tuple[int, int], np.ndarray](), list[np.ndarray]()
        for row, start, commands in lists:
            before, count = self.rows[row][:start], len(commands.ids)
            key = int(before[-1]), id(commands)
            if key not in nodes:
                nodes[key] = states = np.append(before[-1], np.arange(size, size + count))
                parent = np.empty(count, np.int64)
                parent[commands.ends[commands.ends > 0] - 1] = states[commands.sources[commands.ends > 0]]
                parts.append((np.array(commands.ids, np.int64), start + commands.depths, parent))
                if count:
                    runs.append(Stretch(size, size + count, before, commands.hidden))
                size += count
            listed.append(nodes[key])
        ids, depth, parent = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Tree(ids, depth, parent, self.rows, runs, listed)

    @classmethod
    def of(cls, rows: Sequence[np.ndarray], least: int | None) -> Self:
        """Of rows of token ids, each with one token or more.

        >>> tree = Tree.of([np.array([5, 6, 7]), np.array([5, 6]), np.array([5, 8])], least=1)
        >>> tree.ids.tolist(), tree.depth.tolist(), [row.tolist() for row in tree.rows]
        ([5, 8, 6, 7], [0, 1, 1, 2], [[0, 2, 3], [0, 2], [0, 1]])

        Args:
            least: fewest tokens that are worth sharing, see ``new_tokens``; None shares nothing.
        """
        order, shared = in_order(rows)
        nodes, runs = [np.empty(0, np.int64)] * len(rows), list[Stretch]()
        size, path = 0, np.empty(0, np.int64)
        for row, new in zip(order, new_tokens(rows, order, shared, least), strict=True):
            path = np.concatenate([path[: len(rows[row]) - new], np.arange(size, size + new)])
            nodes[row] = path
            if new:
                runs.append(Stretch(size, size + new, path[:-new]))
            size += int(new)
        ids, depth, parent = (np.empty(size, np.int64) for _ in range(3))
        for row, place in zip(rows, nodes, strict=True):
            ids[place], depth[place], parent[place] = row, np.arange(len(row)), np.append(-1, place[:-1])
        return cls(ids, depth, parent, nodes, runs)


def in_order(rows: Sequence[np.ndarray]) -> tuple[list[int], np.ndarray]:
    """The order that rows enter a tree in, and how many tokens each begins with like the one before it: (B,)."""
    keys = [row.astype(">i8").tobytes() for row in rows]  # bytes of numbers that are not negative sort as these do
    order = sorted(range(len(rows)), key=keys.__getitem__, reverse=True)
    shared = [0] + [_alike(rows[a], rows[b]) for a, b in pairwise(order)]
    return order, np.array(shared[: len(rows)], np.int64)


def new_tokens(rows: Sequence[np.ndarray], order: Sequence[int], shared: np.ndarray, least: int | None) -> np.ndarray:
    """The number of nodes that each row adds in this order (B,): all its tokens where too few are shared.

    Attending to a prefix of another row costs a copy of its keys and values, which a few tokens do not repay. A row
    that another one holds from its first token to its last adds nothing, however short it is.
    """
    lengths = np.array([len(rows[row]) for row in order], np.int64)
    if least is None:
        return lengths
    return lengths - np.where((shared >= least) | (shared == lengths), shared, 0)


def _alike(row: np.ndarray, other: np.ndarray) -> int:
    """With how many equal tokens two rows begin."""
    most = min(len(row), len(other))
    differ = np.flatnonzero(row[:most] != other[:most])
    return int(differ[0]) if len(differ) else most
