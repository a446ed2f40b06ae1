"""Tree of the replies that are possible at a turn, laid out so that a model can read all of it in one pass.

A node is what can be said before a reply's last token; replies that begin alike share nodes. An edge is a token that
goes on from a node, or from the prompt. So a pass over the nodes gives the probability of every edge, and the product
along a reply's edges is the probability of that reply among all texts.
"""

from collections.abc import Sequence

import numpy as np


class CommandTree:
    """The tree of R replies, with N nodes and E edges.

    >>> tree = CommandTree([(5, 0), (5, 6, 0), (7, 3, 0)])
    >>> tree.ids, tree.depths.tolist(), tree.sources.tolist(), tree.tokens.tolist()
    ([5, 6, 7, 3], [0, 1, 0, 1], [0, 0, 1, 1, 2, 3, 4], [5, 7, 0, 6, 0, 3, 0])
    >>> np.exp(tree.likelihoods(np.log([0.5, 0.4, 0.2, 0.6, 1, 0.5, 1]))).round(2).tolist()
    [0.1, 0.3, 0.2]

    Args:
        replies: token ids of each; none begins another.

    Attributes:
        ids: N tokens of the nodes, each after the one it follows.
        depths: (N,) how many tokens come before each.
        hidden: (N, N) True where a node, the row, must not see another one, the column.
        sources: (E,) where each edge begins, in order: 0 for the prompt, and n + 1 for node n.
        tokens: (E,) what each edge says.
        paths: the edges of each reply.
    """

    def __init__(self, replies: Sequence[Sequence[int]]):
        numbers: dict[tuple[int, ...], int] = {(): 0}
        for reply in replies:
            for length in range(1, len(reply)):
                numbers.setdefault(tuple(reply[:length]), len(numbers))
        begins = [*numbers][1:]
        self.ids = [begin[-1] for begin in begins]
        self.depths = np.array([len(begin) - 1 for begin in begins], np.int64)
        self.hidden = np.ones((len(begins), len(begins)), bool)
        for place, begin in enumerate(begins):
            self.hidden[place, [numbers[begin[:length]] - 1 for length in range(1, len(begin) + 1)]] = False
        steps = [[(numbers[tuple(reply[:k])], token) for k, token in enumerate(reply)] for reply in replies]
        edges = sorted({step for path in steps for step in path})
        place_of = {edge: place for place, edge in enumerate(edges)}
        self.sources, self.tokens = (np.array(part, np.int64) for part in zip(*edges, strict=True))
        self.paths = [[place_of[step] for step in path] for path in steps]
        self._flat = np.concatenate([np.array(path, np.int64) for path in self.paths])
        self._starts = np.cumsum([0, *map(len, self.paths[:-1])])

    def likelihoods(self, edges_E: np.ndarray) -> np.ndarray:
        """(R,) log-probabilities of the replies, given those of the edges."""
        return np.add.reduceat(edges_E[self._flat], self._starts)
