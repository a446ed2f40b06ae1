"""Weights that an engine copies from a learner, and adapters that it adds to the weights below them.

LoRA computes ``W x + s B (A x)`` for each linear layer, which takes more than twice the operations of ``W x``. While
replies are drawn A and B do not change. So an engine can draw with ``W + s B A``, which it adds up at each load, in
float32, and rounds to the type of W (Hu et al., arXiv 2106.09685, section 4.1, "no additional inference latency").
"""

import copy
from typing import TYPE_CHECKING, Any, cast

import torch

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.weight_source import Weights
from manyturn.agents.model.model_internals import without_peft_warning

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel


def copy_weights(model: torch.nn.Module, weights: Weights) -> None:
    """Copy a source into a model: all weights, or of a model with adapters these.

    Raises:
        EngineError: the source is of another model, or incomplete.
    """
    if hasattr(model, "peft_config"):
        from peft import get_peft_model_state_dict  # which takes a second

        missing = {name: value.data for name, value in get_peft_model_state_dict(cast(Any, model)).items()}
    else:
        missing = {name: value.data for name, value in model.named_parameters()}
    with torch.no_grad():
        for name, tensor in weights.tensors():
            mine = missing.pop(name, None)
            if mine is None or mine.shape != tensor.shape:
                raise EngineError(f"the new weights are of another model: {name} of shape {tuple(tensor.shape)}")
            mine.copy_(tensor)
    if missing:
        raise EngineError(f"the new weights are incomplete: there is no {next(iter(missing))}")


class MergedAdapters:
    """A plain copy of a model with adapters, with the adapters added to its weights.

    Args:
        learnt: the learner's model; its frozen weights are read at each load and never copied.

    Attributes:
        model: the copy, without adapters.
    """

    def __init__(self, learnt: "PreTrainedModel"):
        frozen = {id(tensor): tensor for name, tensor in learnt.named_parameters() if ".lora_" not in name}
        self._own: PeftModel = cast(Any, copy.deepcopy(learnt, frozen))  # the adapters of the version that draws
        with without_peft_warning():
            self.model: PreTrainedModel = cast(Any, copy.deepcopy(learnt)).merge_and_unload()

    def load(self, weights: Weights) -> None:
        """Add other adapters to the weights. Raises EngineError if they are of another model."""
        from peft.tuners.lora import LoraLayer

        copy_weights(self._own, weights)
        with torch.no_grad():
            for name, layer in self._own.get_base_model().named_modules():
                if not isinstance(layer, LoraLayer):
                    continue
                below = cast(Any, layer.get_base_layer()).weight
                merged = below.float() + cast(Any, layer).get_delta_weight("default").float()
                cast(Any, self.model.get_submodule(name)).weight.copy_(merged)
