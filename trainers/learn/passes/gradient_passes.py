"""Gradient of an update: forward and backward passes over its samples, in groups that fit.

One process makes them all. Several ranks share them out; see ``ranks/sharded_passes.py``.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import torch

from manyturn.trainers.learn.passes.forward import Reader, Reading
from manyturn.trainers.learn.passes.samples import Sample

Measured = dict[str, torch.Tensor]
Loss = Callable[[list[int], Reading], tuple[torch.Tensor, Measured]]


class Passes:
    """Passes in one process."""

    def over(
        self,
        reader: Reader,
        samples: Sequence[Sample],
        indices: Sequence[int],
        loss: Loss,
        undo: Callable[[], object],
    ) -> dict[str, float]:
        """The gradient of a loss, in the weights' own places.

        Args:
            indices: of the samples that the loss is over.
            loss: a group's share of it, and of its figures, from the group's indices and reading.
            undo: takes back what the passes have left so far.

        Returns:
            The sums of the figures.
        """

        def all_groups() -> dict[str, float]:
            sums = defaultdict[str, float](float)
            for chosen, reading in reader.readings(samples, indices):
                value, measured = loss(chosen, reading)
                value.backward()
                for name, figure in measured.items():
                    sums[name] += float(figure)
            return dict(sums)

        return reader.budget.within(all_groups, undo)

    def counted(self, reader: Reader) -> tuple[int, int]:
        """Tokens that were asked for and computed since these counts of the reader were set to 0."""
        return reader.requested, reader.computed
