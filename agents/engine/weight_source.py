"""Sources of new weights for an engine: a module of this process, a folder, a channel."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


class Weights(Protocol):
    """A policy's weights at one version, as a source to copy from.

    An engine in this process may draw with ``module`` itself where there is one. Every other copies ``tensors``, or
    takes the source for a class that it knows, such as a folder that its server can read by itself. A source is valid
    only during ``Engine.load``, since the learner then changes what it refers to.
    """

    @property
    def module(self) -> "PreTrainedModel | None":
        """The learner's own module, if it is in this process; only the learner may change it."""
        ...

    def tensors(self) -> Iterator[tuple[str, "torch.Tensor"]]:
        """Name and values of each tensor as in a checkpoint, on the device and in the type that they have now.

        Tensors that are tied come once. Of a model with adapters only the adapters come.
        """
        ...


class ModuleWeights:
    """The weights of a module in this process."""

    def __init__(self, module: "PreTrainedModel"):
        self.module = module

    def tensors(self) -> Iterator[tuple[str, "torch.Tensor"]]:
        from peft import PeftModel, get_peft_model_state_dict

        if isinstance(self.module, PeftModel):
            yield from get_peft_model_state_dict(self.module).items()
            return
        for name, parameter in self.module.named_parameters():
            yield name, parameter.detach()
