"""Count of the operations of a learner's pass, without numbers, memory or a card.

A pass is made with tensors that have a shape and a type and nothing else, in the types of a GPU (bfloat16 under
autocast). Each operation that a GPU would launch is noted: its floating-point operations, and the bytes that it reads
and writes. All layers are alike, so two and three of them are counted and the rest follows.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count
from transformers import PreTrainedConfig, PreTrainedModel

from manyturn.agents.model.model_internals import output_head
from manyturn.agents.model.model_shapes import weightless
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.memory_estimate import LiveBytes
from manyturn.trainers.learn.passes.forward import Reader, recompute_activations
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.token_logprobs import free_scores
from manyturn.trainers.learn.passes.trie.attention import ATTENTION, tree_attentions, tree_inputs
from manyturn.trainers.learn.passes.trie.tree import Tree

_LAYERS = (2, 3)  # that are counted
_COUNTED = ("gradient_checkpointing", "lora_rank", "lora_layers", "micro_tokens", "weights")  # that change a pass
_NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "lift_fresh", "detach"}
_CPU_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"


class Operation(NamedTuple):
    """An operation that is launched: floating-point operations, and bytes read and written."""

    flops: float
    moved: float


class PassShape(NamedTuple):
    """The sizes of a pass over rows that begin alike.

    Attributes:
        rows, length: sequences, and tokens of each.
        shared: tokens of their common beginning, which is computed once.
        scored: tokens whose probability is computed.
    """

    rows: int
    length: int
    shared: int
    scored: int

    @property
    def nodes(self) -> int:
        """Tokens that are computed."""
        return self.shared + self.rows * (self.length - self.shared)


class PassCount(NamedTuple):
    """The operations of a pass through a model.

    Attributes:
        layers: of the model.
        fewer, more: operations of the same pass through a model of two and of three layers.
        peaks: bytes that those hold at their peak, weights and gradients apart.
    """

    layers: int
    fewer: Sequence[Operation]
    more: Sequence[Operation]
    peaks: tuple[float, float]

    def total(self, of: Callable[[Operation], float]) -> float:
        """The sum of a number of each operation, over all of the model."""
        fewer, more = sum(map(of, self.fewer)), sum(map(of, self.more))
        return fewer + (self.layers - _LAYERS[0]) * (more - fewer)

    @property
    def launches(self) -> float:
        """Number of operations that are launched."""
        return self.total(lambda operation: 1.0)

    @property
    def flops(self) -> float:
        """Floating-point operations."""
        return self.total(lambda operation: operation.flops)

    @property
    def peak(self) -> float:
        """Bytes at the peak of the pass."""
        return self.peaks[0] + (self.layers - _LAYERS[0]) * (self.peaks[1] - self.peaks[0])


class Counts(Protocol):
    """A count of passes, such as ``count_pass``."""

    def __call__(
        self, config: PreTrainedConfig, shape: PassShape, learner: LearnerConfig, *, learns: bool
    ) -> PassCount: ...


class EachOnce:
    """``count_pass`` for one model, which counts passes that launch the same operations once."""

    def __init__(self) -> None:
        self._counts = dict[tuple[Any, ...], PassCount]()

    def __call__(
        self, config: PreTrainedConfig, shape: PassShape, learner: LearnerConfig, *, learns: bool
    ) -> PassCount:
        options = learner.model_dump_json(include=set(_COUNTED) if learns else set(_COUNTED[1:]))
        key = shape, options, learns
        if key not in self._counts:
            self._counts[key] = count_pass(config, shape, learner, learns=learns)
        return self._counts[key]


def count_pass(config: PreTrainedConfig, shape: PassShape, learner: LearnerConfig, *, learns: bool) -> PassCount:
    """The operations of a pass over a tree of tokens.

    Args:
        config: of the model.
        learns: backwards too; False: log-probabilities are read.
    """
    counts = [_counted(_with_layers(config, layers), shape, learner, learns=learns) for layers in _LAYERS]
    (fewer, low), (more, high) = counts
    return PassCount(config.get_text_config().num_hidden_layers, fewer, more, (low, high))


def _with_layers(config: PreTrainedConfig, layers: int) -> PreTrainedConfig:
    small = copy.deepcopy(config)
    text: Any = small.get_text_config()
    text.num_hidden_layers = layers
    if (kinds := getattr(text, "layer_types", None)) is not None:
        text.layer_types = [kinds[layer % len(kinds)] for layer in range(layers)]
    return small


def _counted(
    config: PreTrainedConfig, shape: PassShape, learner: LearnerConfig, *, learns: bool
) -> tuple[list[Operation], float]:
    """Operations, and bytes at the peak."""
    rows = [np.r_[np.zeros(shape.shared), np.full(shape.length - shape.shared, n + 1)] for n in range(shape.rows)]
    tree = Tree.of([row.astype(np.int64) for row in rows], 1)
    model = model_to_learn(config, learner)
    reader = _reader(model, learner)
    alive, counter = LiveBytes(), OperationCounter()

    def work() -> None:
        ids = torch.zeros(shape.scored, dtype=torch.long)
        with torch.autocast("cpu", torch.bfloat16):
            states = reader.hidden(tree_inputs(tree, torch.device("cpu"))).flatten(0, 1)[: shape.scored]
            logprob, entropy = free_scores(output_head(model), states, ids, 1.0, place="cuda")
        if learns:
            (logprob + entropy).sum().backward()

    with FakeTensorMode(allow_non_fake_inputs=True), torch.set_grad_enabled(learns):
        own = [*model.named_parameters(), *model.named_buffers()]
        weights = {
            f"model.{name}": torch.empty_like(each, device="cpu").requires_grad_(each.requires_grad and learns)
            for name, each in own
        }
        with alive, counter:
            torch.func.functional_call(_Work(model, work), weights, ())
        gradients = sum(each.grad.nbytes for each in weights.values() if each.grad is not None)
    return counter.operations, float(alive.peak - gradients)


def model_to_learn(config: PreTrainedConfig, learner: LearnerConfig) -> PreTrainedModel:
    """A model as it is learnt, with adapters if they are; its tensors have no numbers."""
    bare: Any = _Bare(
        weightless(config, torch.bfloat16 if learner.lora_rank or learner.weights == "bfloat16" else torch.float32)
    )
    if learner.lora_rank:
        with torch.device("meta"):
            add_adapters(bare, learner, 0)
    return bare.model


def _reader(model: PreTrainedModel, learner: LearnerConfig) -> Reader:
    if learner.gradient_checkpointing:
        recompute_activations(model)
    config = model.get_decoder().config.get_text_config()
    setattr(config, ATTENTION, tree_attentions(torch.device("cuda"), config)[0])  # a check with numbers would precede
    return Reader(model, PassBudget(learner.micro_tokens), 1.0, "trie")


class _Bare:
    """A model without a tokenizer, for what asks a ``LanguageModel`` only for its model."""

    def __init__(self, model: PreTrainedModel):
        self.model = model


class _Work(torch.nn.Module):
    """Work with a model, whose tensors others stand in for."""

    def __init__(self, model: torch.nn.Module, work: Callable[[], None]):
        super().__init__()
        self.model, self._work = model, work

    def forward(self) -> None:
        self._work()


class OperationCounter(TorchDispatchMode):
    """Notes each operation that a GPU would launch a kernel for.

    Attributes:
        operations: in their order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = list[Operation]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        made = [each for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
        if made and name not in _NO_KERNEL and not _is_view(name, given, made):
            self.operations.append(Operation(_flops(func, name, args, kwargs, result), _bytes(given) + _bytes(made)))
        return result


def _is_view(name: str, given: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """True if a result is memory that was there, and nothing is written to it."""
    if name.endswith("_"):
        return False
    places = {id(each.untyped_storage()) for each in given}  # one Python object stands for a storage while it lives
    return all(id(each.untyped_storage()) in places for each in made)


def _bytes(tensors: Sequence[torch.Tensor]) -> float:
    return float(sum(each.numel() * each.dtype.itemsize for each in tensors))


def _flops(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> float:
    if name.startswith(_CPU_ATTENTION):
        backwards = name.endswith("backward")
        query, *others = (each.shape for each in (args[1:4] if backwards else args[:3]))
        key, value = ((*each[:1], query[1], *each[2:]) for each in others)  # torch 2.11 counts no shared heads
        return float(sdpa_flop_count(query, key, value)) * (2.5 if backwards else 1.0)
    count = flop_registry.get(func.overloadpacket)
    return float(count(*args, **kwargs, out_val=result)) if count is not None else 0.0
