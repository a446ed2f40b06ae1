"""Draws tokens: each by one number of its own, so that what is drawn depends on nothing else."""

import torch


def sample(
    logits: torch.Tensor, noise: torch.Tensor, heat: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw by inverting the cumulative distribution at ``noise``, summed in float64 so that rounding moves no boundary.

    Args:
        logits: (rows, V); what is impossible has minus infinity.
        noise: (rows,) uniform numbers in [0, 1).
        heat: (rows,) temperatures; 0 takes the largest logit.

    Returns:
        Tokens, their log-probabilities, and the entropies of what they were drawn from in nats, each (rows,).
    """
    greedy = heat == 0
    scores = torch.log_softmax(logits / torch.where(greedy, 1.0, heat)[:, None], -1)
    shares = scores.exp()
    cumulative = shares.cumsum(-1, dtype=torch.float64)
    total = cumulative[:, -1]
    # Below the total even after rounding. The first sum beyond it is a possible token's: others add nothing.
    reached = torch.minimum(noise * total, torch.nextafter(total, torch.zeros_like(total)))
    drawn = torch.searchsorted(cumulative, reached[:, None], right=True)[:, 0]
    tokens = torch.where(greedy, logits.argmax(-1), drawn.clamp_(max=logits.shape[-1] - 1))
    return tokens, scores.gather(-1, tokens[:, None])[:, 0], torch.special.entr(shares).sum(-1)
