"""Log-probabilities and entropies of tokens, out of hidden states: of all tokens, or of those that were possible."""

from collections.abc import Callable, Sequence

import torch
from torch.utils.checkpoint import checkpoint

from manyturn.agents.model.float32_head import Float32Head
from manyturn.agents.model.model_internals import allowed_logits
from manyturn.trainers.learn.passes.vocabulary_blocks import AT_ONCE, blockwise_scores

_LOGITS_AT_ONCE = 2**27  # floats; more positions than this allows are computed in pieces and recomputed backwards

_Scores = tuple[torch.Tensor, torch.Tensor]


def free_scores(
    head: torch.nn.Linear, states: torch.Tensor, targets: torch.Tensor, temperature: float, place: str | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy (T,) of tokens among all of the vocabulary.

    Args:
        head: from hidden states to logits.
        states: (T, D) out of which each is predicted.
        targets: (T,) the tokens.
        place: kind of device for which blocks are sized; None: that of the states.
    """
    if type(head) in (torch.nn.Linear, Float32Head) and len(states) * head.weight.shape[0] > AT_ONCE:
        return blockwise_scores(head, states, targets, temperature, place)

    def scores_of(states: torch.Tensor, piece: slice) -> _Scores:
        logits = head(states)
        scores = torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature, -1)
        return scores.gather(-1, targets[piece, None])[:, 0], -(scores.exp() * scores).sum(-1)

    return _in_pieces(scores_of, states, head.weight.shape[0])


def limited_scores(
    head: torch.nn.Linear,
    states: torch.Tensor,
    targets: torch.Tensor,
    temperature: float,
    allowed: Sequence[Sequence[int] | None],
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, each among those that were possible for it; of a forced token both are 0, without a gradient.

    Args:
        allowed: T sets of tokens; None where all were possible.
    """
    forced = (states[:, :0].sum(-1)).to(torch.promote_types(states.dtype, torch.float32))
    logprob, entropy = forced, forced  # 0, and a part of the graph even if nothing else is
    free = [place for place, tokens in enumerate(allowed) if tokens is None]
    chosen = [(place, tokens) for place, tokens in enumerate(allowed) if tokens is not None and len(tokens) > 1]
    parts = []
    if free:
        place_P = torch.tensor(free, device=states.device)
        parts.append((place_P, free_scores(head, states[place_P], targets[place_P], temperature)))
    if chosen:
        place_P = torch.tensor([place for place, _ in chosen], device=states.device)
        sets = [tokens for _, tokens in chosen]
        parts.append((place_P, _among(head, states[place_P], targets[place_P], temperature, sets)))
    for place_P, (logprob_P, entropy_P) in parts:
        logprob = logprob.to(logprob_P.dtype).index_put((place_P,), logprob_P)
        entropy = entropy.to(entropy_P.dtype).index_put((place_P,), entropy_P)
    return logprob, entropy


def _among(
    head: torch.nn.Linear,
    states: torch.Tensor,
    targets: torch.Tensor,
    temperature: float,
    allowed: Sequence[Sequence[int]],
) -> _Scores:
    def scores_of(states: torch.Tensor, piece: slice) -> _Scores:
        words, logits, possible = allowed_logits(head, states, allowed[piece])
        scores = torch.log_softmax(logits / temperature, -1)
        columns = torch.searchsorted(words, targets[piece])
        # What is impossible would enter as 0 times infinity.
        terms = scores.exp() * scores.masked_fill(~possible, 0.0)
        return scores.gather(-1, columns[:, None])[:, 0], -terms.sum(-1)

    return _in_pieces(scores_of, states, len(set().union(*allowed)))


def _in_pieces(scores_of: Callable[[torch.Tensor, slice], _Scores], states: torch.Tensor, width: int) -> _Scores:
    """The scores out of all states; where that takes several pieces, each is computed again backwards.

    Args:
        scores_of: takes some states and which ones they are.
        width: logits of a state.
    """
    count, size = len(states), max(1, _LOGITS_AT_ONCE // width)
    if count <= size:
        return scores_of(states, slice(0, count))
    bounds = [slice(start, start + size) for start in range(0, count, size)]
    pieces = [checkpoint(scores_of, states[piece], piece, use_reentrant=False) for piece in bounds]
    logprob, entropy = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    return logprob, entropy
