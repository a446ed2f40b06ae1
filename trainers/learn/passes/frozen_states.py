"""Hidden states below the lowest layer that learns, computed once for each sequence of tokens.

With adapters on layers F and above, whatever is below F maps the same tokens to the same states for as long as the run
lasts. So a pass is made in two parts:

    below    h_F(tokens) = layers 0 .. F-1 of the embeddings     without gradient; kept
    above    layers F .. of h_F                                  in each pass, with adapters

The pass before a step's updates, the updates, the reference, and a copy of the policy with adapters of its own share
what is below, and so do all updates of a warm-up. The numbers are those of a whole pass, up to rounding: a row may have
been computed next to others.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from manyturn.agents.model.model_internals import layers_of
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.passes.samples import Sample, padded

_OFF = "set learner.states_gb to 0"


class FrozenStates:
    """A cache of hidden states of the layers that nothing changes.

    Args:
        model: the policy with its adapters.
        below: F, the lowest layer that learns, at least 1.
        most_bytes: what does not fit any more is computed again in each pass.

    Raises:
        ConfigError: something below learns, or the model cannot be entered at a layer.
    """

    def __init__(self, model: PreTrainedModel, below: int, most_bytes: float):
        self._below, self._most, self.bytes = below, most_bytes, 0
        self._cache: dict[bytes, torch.Tensor] = {}
        decoder = model.get_decoder()
        _check_frozen(model, decoder, below)
        self._check_entry(decoder)

    def below(self, decoder: PreTrainedModel, samples: Sequence[Sample]) -> list[torch.Tensor]:
        """The states (T, D) of each sample below the lowest layer that learns.

        Args:
            decoder: the policy's own, or a copy with the same frozen layers.
        """
        states = self._states(decoder, samples)
        return [states[_key(sample)] for sample in samples]

    def above(self, decoder: PreTrainedModel, states: torch.Tensor, inputs: Mapping[str, Any]) -> torch.Tensor:
        """The last hidden states (B, T, D) of a pass that goes on from states (B, T, D).

        Args:
            inputs: what the decoder takes for the pass; of ids the shape alone is looked at.
        """
        _, layers = layers_of(decoder)
        with _of_layers(decoder, [_Given(states), *layers[self._below :]]):
            return decoder(**inputs, use_cache=False).last_hidden_state

    def forget(self) -> None:
        """Keep nothing: other sequences come."""
        self._cache.clear()
        self.bytes = 0

    def _states(self, decoder: PreTrainedModel, samples: Sequence[Sample]) -> dict[bytes, torch.Tensor]:
        """The states (T, D) of each sample by its tokens; keeps those that are new while there is room."""
        states = {key: self._cache[key] for sample in samples if (key := _key(sample)) in self._cache}
        missing = {key: sample for sample in samples if (key := _key(sample)) not in states}
        if not missing:
            return states
        ids = padded([torch.from_numpy(sample.ids).long() for sample in missing.values()]).to(decoder.device)
        for (key, sample), row in zip(missing.items(), self._computed(decoder, ids), strict=True):
            states[key] = row[: len(sample)]
            size = states[key].nbytes
            if self.bytes + size <= self._most:
                self._cache[key] = states[key].clone()  # a slice would keep the padding and the other rows
                self.bytes += size
        return states

    @torch.no_grad()
    def _computed(self, decoder: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
        _, layers = layers_of(decoder)
        end = _Seen()
        with _of_layers(decoder, [*layers[: self._below], end]):
            decoder(input_ids=ids, use_cache=False)
        assert end.states is not None, "_check_entry has seen that states come by"
        return end.states

    @torch.no_grad()
    def _check_entry(self, decoder: PreTrainedModel) -> None:
        """A decoder may do more than hand on hidden states from layer to layer; then two parts are not the whole."""
        ids = torch.arange(1, 5, device=decoder.device)[None]
        states = decoder(input_ids=ids, use_cache=False).last_hidden_state
        try:
            parts = self.above(decoder, self._computed(decoder, ids), {"input_ids": ids})
            equal = torch.allclose(states, parts, rtol=1e-3, atol=1e-4)
        except (AssertionError, IndexError, TypeError, RuntimeError):
            equal = False
        if not equal:
            name = type(decoder).__name__
            raise ConfigError(f"{name} cannot be entered at layer {self._below}, so that no states can be kept: {_OFF}")


class _Given(torch.nn.Module):
    """Stands for the layers below: hands on their states, whatever comes in."""

    def __init__(self, states: torch.Tensor):
        super().__init__()
        self._states = states

    def forward(self, hidden: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        return self._states


class _Seen(torch.nn.Module):
    """Stands for the layers above: keeps what comes in."""

    states: torch.Tensor | None = None

    def forward(self, hidden: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        self.states = hidden
        return hidden


@contextlib.contextmanager
def _of_layers(decoder: PreTrainedModel, layers: Sequence[torch.nn.Module]) -> Iterator[None]:
    """A decoder that has other layers for a pass. Its own come back as they were."""
    name, all_layers = layers_of(decoder)
    setattr(decoder, name, torch.nn.ModuleList(layers))
    try:
        yield
    finally:
        setattr(decoder, name, all_layers)


def _key(sample: Sample) -> bytes:
    return sample.ids.tobytes()


def _check_frozen(model: PreTrainedModel, decoder: PreTrainedModel, below: int) -> None:
    """Raise ConfigError where anything learns that is not in a layer from ``below`` on."""
    _, layers = layers_of(decoder)
    above = {id(weights) for layer in layers[below:] for weights in layer.parameters()}
    for name, weights in model.named_parameters():
        if weights.requires_grad and id(weights) not in above:
            raise ConfigError(f"{name} learns below layer {below}, so that no states can be kept there: {_OFF}")
