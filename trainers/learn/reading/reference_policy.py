"""The reference policy: the weights at the end of the warm-up, which the model takes on for a pass and gives back."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import torch

from manyturn.trainers.learn.passes.forward import Reader, Watch
from manyturn.trainers.learn.passes.optimizer_state import at_rank_0
from manyturn.trainers.learn.passes.samples import Rows, Sample


class ReadsReference(Protocol):
    """A reader with the weights of a reference."""

    def over(self, reader: Reader, samples: Sequence[Sample], watches: Mapping[str, Watch]) -> dict[str, Rows]:
        """As ``Reader.over``."""
        ...


class Reference:
    """Copies of the weights that are trained; nothing is kept before ``keep``.

    Args:
        trained: the model's own tensors.
    """

    def __init__(self, trained: Sequence[torch.Tensor]):
        self._trained = trained
        self._weights: list[torch.Tensor] = []

    def keep(self) -> None:
        """Take the present weights for the reference."""
        self._weights = [weights.detach().clone() for weights in self._trained]

    def over(self, reader: Reader, samples: Sequence[Sample], watches: Mapping[str, Watch]) -> dict[str, Rows]:
        """Read the samples with the reference's weights."""
        with self.in_place():
            return reader.over(samples, watches)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """The model with the reference's weights."""
        if not self._weights:
            raise RuntimeError("there is no reference policy yet: begin_reinforcement() keeps it")
        own = [weights.detach().clone() for weights in self._trained]
        self._set(self._weights)
        try:
            yield
        finally:
            self._set(own)

    @torch.no_grad()
    def _set(self, values: Sequence[torch.Tensor]) -> None:
        for weights, value in zip(self._trained, values, strict=True):
            weights.copy_(value)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The kept weights by name, for checkpoints."""
        return {name: at_rank_0(weights).cpu().contiguous() for name, weights in self.state().items()}

    def state(self) -> dict[str, torch.Tensor]:
        """The same as they are kept, which may be a rank's shards."""
        return {f"reference.{number}": weights for number, weights in enumerate(self._weights)}

    def load_tensors(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``tensors``; before the end of a warm-up there are none."""
        if "reference.0" in tensors:
            self._weights = [tensors[f"reference.{n}"].to(weights.device) for n, weights in enumerate(self._trained)]
