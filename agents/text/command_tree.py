"""Tree of the replies that are possible at a turn, laid out so that a model can read all of it in one pass.

A node is what can be said before a reply's last token; replies that begin alike share nodes. An edge is a token that
goes on from a node, or from the prompt. So a pass over the nodes gives the probability of every edge, and the product
along a reply's edges is the probability q of that reply among all texts. A whole reply is drawn with

    p(reply) = q(reply) / sum of q over all replies
    p(token | those before it) = S(those and the token) / S(those)
    S(x): sum of q over the replies that begin with x

The second line says the same token by token: along a reply its product is the first line. So each token has a
probability of its own under the policy that draws, and the entropies of a reply's tokens are those of the choice.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

_KEPT_TREES = 4096  # of the turns of a step; members of a group stand before the same choice


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
        replies: the same.
        ids: N tokens of the nodes, each after the one it follows.
        depths: (N,) how many tokens come before each.
        hidden: (N, N) True where a node, the row, must not see another one, the column.
        sources: (E,) where each edge begins, in order: 0 for the prompt, and n + 1 for node n.
        tokens: (E,) what each edge says.
        ends: (E,) where each edge leads to: n + 1 for node n, and 0 where a reply is over.
        paths: the edges of each reply.
    """

    def __init__(self, replies: Sequence[Sequence[int]]):
        self.replies = tuple(map(tuple, replies))
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
        place_of = self._places = {edge: place for place, edge in enumerate(edges)}
        self.sources, self.tokens = (np.array(part, np.int64) for part in zip(*edges, strict=True))
        after = {(numbers[begin[:-1]], begin[-1]): number for begin, number in numbers.items() if begin}
        self.ends = np.array([after.get(edge, 0) for edge in edges], np.int64)
        self.paths = [[place_of[step] for step in path] for path in steps]
        self._flat = np.concatenate([np.array(path, np.int64) for path in self.paths])
        self._starts = np.cumsum([0, *map(len, self.paths[:-1])])

    def likelihoods(self, edges_E: np.ndarray) -> np.ndarray:
        """(R,) log-probabilities of the replies, given those of the edges."""
        return np.add.reduceat(edges_E[self._flat], self._starts)

    def path(self, ids: Sequence[int]) -> list[int]:
        """The edges of the reply that these ids begin with; raises KeyError if none of the replies is."""
        place, path = 0, list[int]()
        for token in ids:
            path.append(self._places[place, token])
            place = int(self.ends[path[-1]])
            if not place:
                return path
        raise KeyError(f"{list(ids)} is only the beginning of a reply")

    def conditionals(self, likelihoods_R: np.ndarray, number: int) -> tuple[list[float], list[float]]:
        """Log-probability of each token of a reply where a whole one is drawn, and the entropy that it was drawn from.

        >>> tree = CommandTree([(5, 0), (5, 6, 0), (7, 3, 0)])
        >>> [np.exp(logprob).round(2).tolist() for logprob, _ in zip(*tree.conditionals(np.log([0.1, 0.3, 0.2]), 1))]
        [0.67, 0.75, 1.0]

        Args:
            likelihoods_R: of the replies, see ``likelihoods``.
            number: of the reply.
        """
        logprobs, entropies, open_ = list[float](), list[float](), [*range(len(self.replies))]
        for place, token in enumerate(self.replies[number]):
            open_ = [other for other in open_ if self.replies[other][:place] == self.replies[number][:place]]
            tokens, which = np.unique([self.replies[other][place] for other in open_], return_inverse=True)
            scores = likelihoods_R[open_]
            shares = np.bincount(which, np.exp(scores - scores.max())) if len(tokens) > 1 else np.ones(1)
            shares = shares / shares.sum()
            some = shares[shares > 0]
            logprobs.append(float(np.log(shares[tokens == token][0])))
            entropies.append(float(-(some * np.log(some)).sum()) + 0.0)
        return logprobs, entropies


@lru_cache(_KEPT_TREES)
def tree_of(replies: tuple[tuple[int, ...], ...]) -> CommandTree:
    """The tree of some replies, the same one for the same replies."""
    return CommandTree(replies)
