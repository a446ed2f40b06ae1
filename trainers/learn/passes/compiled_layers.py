"""Decoder layers that PyTorch compiles, for the learner's passes alone; engines draw with the layers as they are.

All layers of a model are one function of their weights. So they share what is compiled: once for passes with gradient
and once for those without, for any number of rows and tokens, and again where there is a single row or token.
"""

import contextlib
from collections.abc import Iterator

import torch
from transformers import PreTrainedModel

from manyturn.agents.model.model_internals import layers_of
from manyturn.envs.contract.options.options import ConfigError


class CompiledLayers:
    """The layers of a decoder, compiled when they are first used.

    Raises:
        ConfigError: nothing can be compiled on this machine.
    """

    def __init__(self, decoder: PreTrainedModel):
        check_compiles(decoder.device)
        self._layers = list(layers_of(decoder)[1])
        self._compiled = [torch.compile(layer.forward, dynamic=True) for layer in self._layers]

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """While the decoder is called."""
        for layer, compiled in zip(self._layers, self._compiled, strict=True):
            vars(layer)["forward"] = compiled
        try:
            yield
        finally:
            for layer in self._layers:
                del vars(layer)["forward"]


def check_compiles(device: torch.device) -> None:
    """Compile a sum. Raises ConfigError where that fails, whatever is missing."""
    ones = torch.ones(3, device=device)
    try:
        torch.compile(_one_more, dynamic=True)(ones)
    except Exception as error:  # a compiler, its headers, or Triton
        first = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"learner.compile = true, and PyTorch cannot compile here ({type(error).__name__}: {first}): install a C++ "
            "compiler such as g++, on a GPU Triton too, or leave learner.compile out"
        ) from error


def _one_more(numbers: torch.Tensor) -> torch.Tensor:
    return numbers.sin() + 1
