"""Forward passes: what the policy thinks of tokens that were said."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from manyturn.trainers.learn.heads import ValueHead
from manyturn.trainers.learn.samples import Padded, Rows, Sample, micro_batches

_LOGITS_AT_ONCE = 2**27  # floats; more positions than this allows are computed in pieces and recomputed backwards


class Reading(NamedTuple):
    """A forward pass over B rows of T tokens.

    Attributes:
        logprob: (B, T) log-probability of each said token at the sampling temperature, 0 elsewhere.
        entropy: (B, T) entropy in nats of the distribution it was drawn from, 0 elsewhere.
        hidden: (B, T, D) last hidden state at each token.
    """

    logprob: torch.Tensor
    entropy: torch.Tensor
    hidden: torch.Tensor


def read(model: PreTrainedModel, batch: Padded, temperature: float) -> Reading:
    """One forward pass; the output head is applied where something was said and nowhere else."""
    hidden = model.get_decoder()(input_ids=batch.ids, use_cache=False).last_hidden_state
    rows, columns = batch.said.nonzero(as_tuple=True)
    states, targets = hidden[rows, columns - 1], batch.ids[rows, columns]
    head = model.get_output_embeddings()

    def piece(states: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = head(states)
        scores = torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature, -1)
        return scores.gather(-1, targets[:, None])[:, 0], -(scores.exp() * scores).sum(-1)

    size = max(1, _LOGITS_AT_ONCE // head.weight.shape[0])
    if len(states) <= size:
        logprob, entropy = piece(states, targets)
    else:
        pieces = [
            checkpoint(piece, states[i : i + size], targets[i : i + size], use_reentrant=False)
            for i in range(0, len(states), size)
        ]
        logprob, entropy = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    empty = torch.zeros(batch.ids.shape, device=hidden.device, dtype=logprob.dtype)
    place = (rows, columns)
    return Reading(empty.index_put(place, logprob), empty.index_put(place, entropy), hidden)


def precision(model: PreTrainedModel) -> contextlib.AbstractContextManager[object]:
    """What a forward pass is computed in: on a GPU bfloat16, elsewhere the model's own type."""
    cuda = model.device.type == "cuda"
    return torch.autocast("cuda", torch.bfloat16) if cuda else contextlib.nullcontext()


class Passed(NamedTuple):
    """A forward pass without gradient over many samples: one (T,) row on the CPU for each."""

    logprob: Rows
    entropy: Rows
    value: Rows | None


class Reader:
    """Reads samples in groups that fit into memory.

    Args:
        micro_tokens: most padded tokens at once.
    """

    def __init__(self, model: PreTrainedModel, micro_tokens: int):
        self._model, self._micro_tokens = model, micro_tokens

    def batches(self, samples: Sequence[Sample], indices: Sequence[int]) -> Iterator[tuple[list[int], Padded]]:
        """The samples with these indices, in groups: the indices of each group and its tensors."""
        for group in micro_batches([samples[i] for i in indices], self._micro_tokens):
            chosen = [indices[i] for i in group]
            yield chosen, Padded.of([samples[i] for i in chosen], self._model.device)

    def read(self, batch: Padded, temperature: float) -> Reading:
        """One forward pass."""
        with precision(self._model):
            return read(self._model, batch, temperature)

    @torch.no_grad()
    def over(self, samples: Sequence[Sample], temperature: float, critic: ValueHead | None = None) -> Passed:
        """A pass over everything, with the critic's values if there is one."""
        logprob, entropy, value = ([torch.empty(0)] * len(samples) for _ in range(3))
        for chosen, batch in self.batches(samples, range(len(samples))):
            reading = self.read(batch, temperature)
            value_BT = critic.values(reading.hidden) if critic else reading.logprob
            for row, i in enumerate(chosen):
                T = len(samples[i])
                logprob[i], entropy[i] = reading.logprob[row, :T].cpu(), reading.entropy[row, :T].cpu()
                value[i] = value_BT[row, :T].cpu()
        return Passed(logprob, entropy, value if critic else None)
