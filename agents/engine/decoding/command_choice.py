"""Choice among whole commands: each as likely as it is among all texts, out of one pass over the tree of them.

A command's probability is the product of its tokens' probabilities among all of the vocabulary, its end token included,
over the sum of that of all commands. So a first word is not chosen for want of others: it has what the commands
that begin with it have. That is what drawing free replies until one is a command would give. Its log-probability is
told token by token, each given those before it (``CommandTree.conditionals``).
"""

from collections.abc import Sequence

import numpy as np
import torch

from manyturn.agents.engine.decoding.row import Row
from manyturn.agents.engine.engine import EngineError
from manyturn.agents.text.command_tree import CommandTree

_LOGITS = 2**24  # logits that are there together, which bounds the memory that a large vocabulary takes


def choose(
    head: torch.nn.Module, vocabulary: int, rows: Sequence[tuple[Row, CommandTree]], states: torch.Tensor
) -> None:
    """Have each row say one of its commands. The temperature divides logits of tokens; 0 takes the likeliest command.

    Args:
        head: from hidden states to logits.
        rows: with their trees, of N nodes each.
        states: (sum of N + 1, D) hidden states: of the prompt's last token, then of the nodes, row by row.

    Raises:
        EngineError: the model computes NaN.
    """
    counts = [len(tree.ids) + 1 for _, tree in rows]
    starts = np.cumsum([0, *counts])
    heat = [row.temperature or 1.0 for row, _ in rows]
    heats = torch.tensor(np.repeat(heat, counts), dtype=torch.float32, device=states.device)
    sources = np.concatenate([tree.sources + start for (_, tree), start in zip(rows, starts, strict=False)])
    tokens = np.concatenate([tree.tokens for _, tree in rows])
    edges = _scores(head, max(_LOGITS // vocabulary, 1), states, heats, (sources, tokens))
    first = 0
    for row, tree in rows:
        likelihoods = tree.likelihoods(edges[first : first + len(tree.tokens)])
        first += len(tree.tokens)
        number = _drawn(likelihoods, row)
        row.say_all(list(tree.replies[number]), *tree.conditionals(likelihoods, number))


def _drawn(likelihoods: np.ndarray, row: Row) -> int:
    """The number of the command that a row's first number of noise draws."""
    if row.temperature == 0:
        return int(likelihoods.argmax())
    cumulative = np.exp(likelihoods - likelihoods.max()).cumsum()
    reached = min(row.noise[0] * cumulative[-1], np.nextafter(cumulative[-1], 0.0))
    return int(np.searchsorted(cumulative, reached, side="right"))


def _scores(
    head: torch.nn.Module, size: int, states: torch.Tensor, heats: torch.Tensor, edges: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Log-probabilities of edges, which are the states that they begin at, in order, and tokens."""
    sources, tokens = edges
    scores, sound = list[torch.Tensor](), list[torch.Tensor]()
    for start in range(0, len(states), size):
        logits = head(states[start : start + size]).float()
        logprobs = torch.log_softmax(logits / heats[start : start + size, None], -1)
        some = slice(*np.searchsorted(sources, (start, start + size)))
        places, words = (torch.from_numpy(part).to(states.device) for part in (sources[some] - start, tokens[some]))
        scores.append(logprobs[places, words].double())
        sound.append(logits.isfinite().all())
    if not torch.stack(sound).all():
        raise EngineError(
            "the model computed NaN or infinite logits: its weights are damaged (a learning rate too high?)"
        )
    return torch.cat(scores).cpu().numpy()
