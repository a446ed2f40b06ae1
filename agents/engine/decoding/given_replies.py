"""Log-probabilities of replies that are given: the model reads each with its prompt once, and draws nothing."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from transformers import PreTrainedModel

from manyturn.agents.engine.decoding.memory import ran_out
from manyturn.agents.engine.engine import EngineError, GivenReply
from manyturn.agents.model.model_internals import output_head

_LOGITS = 2**24  # logits that are there together, which bounds the memory that a large vocabulary takes


def scored(model: PreTrainedModel, replies: Sequence[GivenReply], temperature: float, most: int) -> list[list[float]]:
    """The log-probabilities of the tokens of each reply; see ``Engine.score``.

    Args:
        most: padded tokens of a pass, unless one reply with its prompt has more; half where memory runs out.

    Raises:
        EngineError: a reply or a prompt is empty, or the model computes NaN.
    """
    if not all(len(given.prompt) and len(given.reply) for given in replies):
        raise EngineError("a reply without a token, or without a prompt, has no log-probability: leave it out")
    numbers: list[list[float]] = [[] for _ in replies]
    passes = _passes(replies, range(len(replies)), most)
    while passes:
        chosen = passes.pop(0)
        try:
            rows = _pass(model, [replies[i] for i in chosen], temperature)
        except Exception as error:
            if not ran_out(error) or len(chosen) == 1:
                raise
        else:
            for i, row in zip(chosen, rows, strict=True):
                numbers[i] = row
            continue
        # Outside of the handler, whose frames hold the memory.
        passes[:0] = [chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]]
    return numbers


def _passes(replies: Sequence[GivenReply], numbers: Sequence[int], most: int) -> list[list[int]]:
    """Numbers of replies in groups of like length, each of at most ``most`` tokens after padding."""
    lengths = [len(given.prompt) + len(given.reply) for given in replies]
    groups = list[list[int]]()
    for i in sorted(numbers, key=lambda i: (lengths[i], i)):
        if not groups or lengths[i] * (len(groups[-1]) + 1) > most:
            groups.append([])
        groups[-1].append(i)
    return groups


def _pass(model: PreTrainedModel, replies: Sequence[GivenReply], temperature: float) -> list[list[float]]:
    # Padding on the right: what comes before never sees it. The last token is said and not read.
    rows = [torch.tensor([*given.prompt, *given.reply[:-1]]) for given in replies]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(model.device)
    targets = torch.tensor([token for given in replies for token in given.reply], device=model.device)
    counts = [len(given.reply) for given in replies]
    row = torch.tensor([number for number, count in enumerate(counts) for _ in range(count)])
    column = torch.tensor([len(given.prompt) - 1 + k for given in replies for k in range(len(given.reply))])
    with _reading(model):
        states = model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state[row, column]
        head, pieces = output_head(model), list[torch.Tensor]()
        piece = max(_LOGITS // head.weight.shape[0], 1)
        for some, tokens in zip(states.split(piece), targets.split(piece), strict=True):
            logits = head(some)
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32)) / (temperature or 1.0)
            pieces.append(torch.log_softmax(logits, -1).gather(-1, tokens[:, None])[:, 0].double())
        numbers = torch.cat(pieces)
    if not numbers.isfinite().all():
        raise EngineError(
            "the model computed NaN or infinite logits: its weights are damaged (a learning rate too high?)"
        )
    return [part.tolist() for part in numbers.split(counts)]


@contextmanager
def _reading(model: PreTrainedModel) -> Iterator[None]:
    """A model as it is while it reads; a learner that shares it finds it as it was."""
    was_training = model.training
    if was_training:
        model.eval()
    try:
        # In float32 or its own type, under any autocast of the caller, as where it draws.
        with torch.inference_mode(), torch.autocast(model.device.type, enabled=False):
            yield
    finally:
        if was_training:
            model.train()
