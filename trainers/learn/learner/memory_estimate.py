"""Memory that an update takes, estimated before the first one.

    held       weights, their gradients, AdamW's two moments, float32 masters of bfloat16 weights, the reference's copy
    passing    what a forward and a backward pass hold on top of that, at their peak

What is passing follows from the model and the sizes of a pass, and from nothing else. So a pass is made with tensors
that have a shape and a type and no numbers, and whatever would be alive is counted. That costs a second or two, no
memory, and holds for every model, with checkpointing or adapters.
"""

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from manyturn.agents.engine.card.device_memory import main_memory, size
from manyturn.agents.engine.decoding.memory import device_bytes
from manyturn.agents.model.model_internals import output_head
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.heads.scalar_model import OwnBody
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.passes.forward import Reader, precision
from manyturn.trainers.learn.passes.token_logprobs import free_scores
from manyturn.trainers.learn.passes.trie.attention import ATTENTION, tree_inputs
from manyturn.trainers.learn.passes.trie.tree import Tree

_SAFE = 0.9  # of the tokens that would fit by proportion
_WIDTHS, _INNER, _BLOCKS = 60, 16, 1e9  # numbers of a token and layer; bytes of the head's blocks: more than there are
_HOST_BYTES = 16  # of a weight that is trained: itself, its gradient and AdamW's moments, in float32
_CAUSAL = "manyturn_causal"
AttentionInterface.register(_CAUSAL, sdpa_attention_forward)
AttentionMaskInterface.register(_CAUSAL, lambda *_, **__: None)


class UpdateMemory(NamedTuple):
    """Bytes at the peak of an update.

    Attributes:
        held: from update to update.
        passing: during a pass of the learner's budget.
    """

    held: float
    passing: float

    @property
    def peak(self) -> float:
        """All of it."""
        return self.held + self.passing


def update_memory(learner: Learner, length: int) -> UpdateMemory:
    """The memory that an update of a learner takes at its peak, without engines.

    Sequences that share beginnings are taken for ones that share nothing: with ``trie``, the copies of what they share
    come on top.

    Args:
        length: tokens of the longest sequence.
    """
    tokens = learner.budget.tokens
    rows = max(1, tokens // length)
    held = _held_bytes(
        learner.model,
        has_reference=bool(learner.reference),
        moments=not learner.config.offload_optimizer,
        masters=learner.config.has_device_masters,
    )
    passing = passing_bytes(learner.reader, rows, length)
    for head in learner.heads:
        if isinstance(head.fit, OwnBody):  # whose pass is held until the policy's goes backwards
            held += _held_bytes(head.fit.reader.model, has_reference=False)
            passing += passing_bytes(head.fit.reader, rows, length)
    return UpdateMemory(held, passing)


def check_fits(learner: Learner, length: int, beside: float) -> str | None:
    """Have a learner's updates fit into its device's memory, or refuse it.

    Where nobody has decided on ``gradient_checkpointing``, activations are computed again if updates fit only then.

    Args:
        length: tokens of the longest sequence.
        beside: bytes that are held next to it.

    Returns:
        What to tell the user, if activations are computed again for that reason.

    Raises:
        ConfigError: they cannot fit; it says what would.
    """
    config, total = learner.config, device_bytes(learner.model.device)
    check_offloaded(learner)
    if _at_most(learner) + beside <= total:
        return None
    try:
        memory = update_memory(learner, length)
        if memory.peak + beside <= total:
            return None
        without = memory.peak + beside
        if config.gradient_checkpointing is None and not config.compile:
            learner.recompute()
            memory = update_memory(learner, length)
    except RuntimeError as error:  # what a model does with numbers that are not there; the run itself may be fine
        warnings.warn(f"what an update takes in memory is not known ({error})", stacklevel=2)
        return None
    if memory.peak + beside <= total:
        return (
            f"activations are computed again in backward passes: an update would take {size(without)} of memory "
            f"otherwise, and the device has {size(total)}; with that it takes {size(memory.peak + beside)}"
        )
    fits = int((total - memory.held - beside) / memory.passing * config.micro_tokens * _SAFE)
    if fits >= length:
        fix = f"set learner.micro_tokens to {fits}"
    elif config.compile:
        fix = "leave learner.compile out, so that activations can be computed again"
    elif config.gradient_checkpointing is False:
        fix = "set learner.gradient_checkpointing to true"
    else:
        fix = "lower agent.max_context, set learner.lora_rank to 16, or take a smaller model"
    raise ConfigError(
        f"an update takes {size(memory.peak + beside)} of memory, {size(memory.passing)} of it for passes of "
        f"{max(config.micro_tokens, length)} tokens, and the device has {size(total)}: {fix}"
    )


def _at_most(learner: Learner) -> float:
    """A bound on what ``update_memory`` says, without a pass: tiny models are not worth one."""
    text = learner.model.config.get_text_config()
    width, inner = text.hidden_size, getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    token = text.num_hidden_layers * (_WIDTHS * width + _INNER * inner) * 4
    models = 1 + sum(isinstance(head.fit, OwnBody) for head in learner.heads)
    held = _held_bytes(learner.model, has_reference=True, masters=learner.config.has_device_masters)
    return models * (held + learner.budget.tokens * token + _BLOCKS)


def _held_bytes(model: torch.nn.Module, *, has_reference: bool, moments: bool = True, masters: bool = False) -> float:
    """Weights, gradients, and where they are on the device too, AdamW's moments, the masters and the reference."""
    own = sum(weights.nbytes for weights in model.parameters())
    trained = [weights for weights in model.parameters() if weights.requires_grad]
    copy = sum(weights.nbytes for weights in trained)
    learning = sum(4 * weights.numel() for weights in trained) if masters else copy
    return own + learning * (1 + 2 * moments + masters) + copy * has_reference


def check_offloaded(learner: Learner) -> None:
    """Raise ConfigError where the host has not the memory for what ``offload_optimizer`` keeps there."""
    if not learner.config.offload_optimizer:
        return
    needed = _HOST_BYTES * sum(p.numel() for p in learner.model.parameters() if p.requires_grad)
    if needed > (total := main_memory()[0]):
        raise ConfigError(
            f"learner.offload_optimizer keeps {size(needed)} in the host's memory, which has {size(total)}: leave it "
            "out, or set learner.lora_rank to 16"
        )


def passing_bytes(reader: Reader, rows: int, length: int) -> float:
    """Bytes that a pass with gradient holds beyond weights and gradients, at its peak.

    Args:
        rows, length: its sequences, and the tokens of each.
    """
    model, device = reader.model, reader.model.device
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    alive = LiveBytes()
    work = _Work(model, lambda: _pass(reader, rows, length, device))
    with torch.enable_grad():
        own = [*work.named_parameters(), *work.named_buffers()]
        weights: dict[str, torch.Tensor] = {name: fake.from_tensor(value) for name, value in own}
        with fake, _without_masks(model), alive:
            torch.func.functional_call(work, weights, ())
    gradients = sum(value.grad.nbytes for value in weights.values() if value.grad is not None)
    return float(alive.peak - gradients)


@contextlib.contextmanager
def _without_masks(model: PreTrainedModel) -> Iterator[None]:
    """Attention as it is with numbers. Without them a mask would be made: nobody can see that it hides nothing."""
    config = model.config.get_text_config()
    own = getattr(config, ATTENTION)
    if own == "sdpa":
        setattr(config, ATTENTION, _CAUSAL)
    try:
        yield
    finally:
        setattr(config, ATTENTION, own)


class _Work(torch.nn.Module):
    """Two passes, forwards and backwards: the second finds gradients that are there, as all but the first do.

    Backwards too, since what is checkpointed is computed again there, with the weights that stand in for the model's.
    """

    def __init__(self, model: torch.nn.Module, work: Callable[[], torch.Tensor]):
        super().__init__()
        self.model, self._work = model, work

    def forward(self) -> None:
        for _ in range(2):
            self._work().backward()


def _pass(reader: Reader, rows: int, length: int, device: torch.device) -> torch.Tensor:
    ids = torch.zeros(rows, length, dtype=torch.long, device=device)
    inputs: dict[str, Any] = {"input_ids": ids}
    if reader.packing != "padding":
        inputs = tree_inputs(Tree.of(_sequences(rows, length), length), device)
    with precision(reader.model):
        hidden = reader.hidden(inputs)
        at = torch.arange(rows * length, device=device)
        states = hidden.flatten(0, 1)[at]  # a copy of those that were said: at most all
        if reader.body is reader.model:
            return states.sum()
        logprob, entropy = free_scores(output_head(reader.model), states, ids.flatten(), 1.0)
    return (logprob + entropy).sum()


def _sequences(rows: int, length: int) -> Sequence[np.ndarray]:
    """Sequences that share nothing."""
    return [np.full(length, row) for row in range(rows)]


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of what is made and not yet forgotten.

    Attributes:
        peak: the most at any time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sizes = dict[int, int]()
        self._now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key = id(storage)  # one Python object stands for a storage as long as it lives
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self._now += self._sizes[key]
            self.peak = max(self.peak, self._now)
            weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self._now -= self._sizes.pop(key)
