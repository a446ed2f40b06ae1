"""Log-probabilities and entropies of commands that were chosen as wholes, out of one pass that reads all of them.

    p(token | those before it) = S(those and the token) / S(those)
    S(x): sum, over the listed commands that begin with x, of the product of their tokens' free probabilities

``agents/text/command_tree.py`` has the reason. Each token has a probability of its own under the policy that played, so
whatever works by the token is right as it stands, and so is what works by the reply:

- a token's ratio is one of two probabilities of the same choice, and a reply's, their product, is that of two commands;
- the entropies of a reply's tokens add up, in the mean over replies, to that of the choice among commands;
- the divergence from a reference is between two such choices, and corrections compare the engine's with the learner's;
- a token without an alternative has ratio 1, entropy 0 and no gradient.

S is computed from the ends of commands back to the prompt, with S(command) = 1 and

    log S(x) = log sum over tokens t of exp(log probability(t | x) + log S(x and t))
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from manyturn.agents.text.command_tree import CommandTree
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.learn.passes.token_logprobs import free_scores


class Chosen(NamedTuple):
    """A command that a sample's reply was chosen as.

    Attributes:
        row: number of the sample in its pass.
        start: place of the reply's first token.
        tree: of the commands that were listed.
    """

    row: int
    start: int
    tree: CommandTree


class CommandScores(NamedTuple):
    """The scores of P tokens of chosen commands.

    Attributes:
        row, column: (P,) their places in the pass.
        logprob, entropy: (P,).
    """

    row: torch.Tensor
    column: torch.Tensor
    logprob: torch.Tensor
    entropy: torch.Tensor


def chosen_in(samples: Sequence[Sample]) -> list[Chosen]:
    """The commands of samples, where they count as said."""
    return [
        Chosen(row, start, tree)
        for row, sample in enumerate(samples)
        for start, tree in sample.commands.items()
        if sample.reply_mask[start]
    ]


def command_scores(
    head: torch.nn.Linear,
    hidden: torch.Tensor,
    samples: Sequence[Sample],
    chosen: Sequence[Chosen],
    listed: Sequence[np.ndarray],
    temperature: float,
) -> CommandScores:
    """The scores of what was chosen.

    Args:
        head: from hidden states to logits.
        hidden: (N, D) last hidden states of the pass.
        listed: for each that was chosen, the nodes that the edges of its commands begin at; see ``Tree``.
    """
    forest, device = _Forest(chosen, listed), hidden.device

    def there(numbers: np.ndarray | Sequence[int]) -> torch.Tensor:
        return torch.from_numpy(np.asarray(numbers, np.int64)).to(device)

    sources, ends = there(forest.sources), there(forest.ends)
    states = hidden[there(forest.nodes)[sources]]
    free = free_scores(head, states, there(forest.tokens), temperature)[0]
    sums = free.new_zeros(len(forest.nodes) + 1)  # the last one is that of a command's end
    entropies = torch.zeros_like(sums)
    for level in forest.levels():
        begins, table = there(level), there(forest.edges_of(level))
        scores = (free + sums[ends])[table].masked_fill(table < 0, float("-inf"))
        total = scores.logsumexp(-1)
        logs = (scores - total[:, None]).masked_fill(table < 0, 0.0)  # 0 times infinity is no number
        terms = (logs.exp() * logs).masked_fill(table < 0, 0.0)
        sums = sums.index_put((begins,), total)
        entropies = entropies.index_put((begins,), -terms.sum(-1))
    places = [(one, samples[one.row].ids[one.start :].tolist()) for one in chosen]
    paths = [one.tree.path(ids) for one, ids in places]
    edges = there([edge + first for path, first in zip(paths, forest.first_edges, strict=True) for edge in path])
    row = there([one.row for one, path in zip(chosen, paths, strict=True) for _ in path])
    column = there([one.start + k for one, path in zip(chosen, paths, strict=True) for k in range(len(path))])
    logprob = free[edges] + sums[ends[edges]] - sums[sources[edges]]
    return CommandScores(row, column, logprob, entropies[sources[edges]])


class _Forest:
    """The trees of a pass, each list of commands once: E edges between S states.

    Attributes:
        nodes: (S,) of the pass.
        sources: (E,) numbers of the states that edges begin at, in order.
        tokens: (E,) what each says.
        ends: (E,) states that they lead to, S where a command is over.
        first_edges: for each that was chosen, the first edge of its tree.
    """

    def __init__(self, chosen: Sequence[Chosen], listed: Sequence[np.ndarray]):
        self.first_edges = list[int]()
        numbers, trees, begins, sizes = dict[int, int](), list[CommandTree](), list[np.ndarray](), [(0, 0)]
        for one, nodes in zip(chosen, listed, strict=True):
            if id(nodes) not in numbers:
                numbers[id(nodes)] = len(trees)
                trees.append(one.tree)
                begins.append(nodes)
                sizes.append((sizes[-1][0] + len(nodes), sizes[-1][1] + len(one.tree.tokens)))
            self.first_edges.append(sizes[numbers[id(nodes)]][1])
        firsts, total = [first for first, _ in sizes[:-1]], sizes[-1][0]
        shifted = list(zip(trees, firsts, strict=True))
        self.nodes = np.concatenate(begins)
        self.sources = np.concatenate([tree.sources + first for tree, first in shifted])
        self.tokens = np.concatenate([tree.tokens for tree in trees])
        self.ends = np.concatenate([np.where(tree.ends > 0, tree.ends + first, total) for tree, first in shifted])
        self._depths = np.concatenate([np.append(0, tree.depths + 1) for tree in trees])

    def levels(self) -> list[np.ndarray]:
        """The states of each depth, the deepest first."""
        return [np.flatnonzero(self._depths == depth) for depth in range(int(self._depths.max()), -1, -1)]

    def edges_of(self, states: np.ndarray) -> np.ndarray:
        """The edges that begin at each state, in a row of their own; -1 where it has no more."""
        first, last = (np.searchsorted(self.sources, states, side=side) for side in ("left", "right"))
        table = first[:, None] + np.arange(int((last - first).max()))
        return np.where(table < last[:, None], table, -1)
