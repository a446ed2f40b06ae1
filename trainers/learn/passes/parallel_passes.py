"""Passes of a small model side by side, each in a thread of its own.

An operation of a small model is over before a second thread has begun its part of it. So the samples of a pass are
shared out instead: each thread takes some of them forwards and backwards by itself, and the gradients are added in the
order of the samples. The sums are the same bits for the same number of threads, whichever thread is first.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import torch

from manyturn.trainers.learn.passes.forward import Reader
from manyturn.trainers.learn.passes.gradient_passes import Loss, Measured, Passes
from manyturn.trainers.learn.passes.samples import Sample

SMALL = 2**22  # weights; of larger models each operation is shared out among the threads

Gradients = Sequence[torch.Tensor | None]


class ParallelPasses(Passes):
    """Passes of a model on a CPU without anything that a pass would change but the gradient.

    Args:
        threads: passes at once.
        trained: the weights that gradients are of.
    """

    def __init__(self, threads: int, trained: Sequence[torch.Tensor]):
        self._threads, self._trained = threads, trained
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pass")

    def over(
        self,
        reader: Reader,
        samples: Sequence[Sample],
        indices: Sequence[int],
        loss: Loss,
        undo: Callable[[], object],
    ) -> dict[str, float]:
        """As ``Passes.over``; ``loss`` is called by several threads."""

        def read(chosen: list[int]) -> tuple[Gradients, Measured, Reader]:
            own = reader.at(reader.temperature)  # which counts for itself
            value, measured = loss(chosen, own.read([samples[i] for i in chosen]))
            return torch.autograd.grad(value, self._trained, allow_unused=True), measured, own

        def all_groups() -> dict[str, float]:
            sums = defaultdict[str, float](float)
            for group in reader.groups(samples, indices):
                longest = max(len(samples[i]) + samples[i].listed for i in group)
                reader.budget.passing(len(group), longest * len(group))
                begun = [self._pool.submit(read, part) for part in parts(group, samples, self._threads)]
                wait(begun)
                for gradients, measured, own in (work.result() for work in begun):
                    self._add(gradients)
                    reader.requested, reader.computed = reader.requested + own.requested, reader.computed + own.computed
                    for name, figure in measured.items():
                        sums[name] += float(figure)
            return dict(sums)

        return reader.budget.within(all_groups, undo)

    def _add(self, gradients: Gradients) -> None:
        for weights, gradient in zip(self._trained, gradients, strict=True):
            if gradient is not None:
                weights.grad = gradient if weights.grad is None else weights.grad.add_(gradient)


def parts(group: Sequence[int], samples: Sequence[Sample], count: int) -> list[list[int]]:
    """The samples of a group in at most ``count`` parts of about equally many tokens; neighbours stay together.

    >>> rows = [Sample(0, np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)) for n in (5, 3, 2, 2, 8)]
    >>> parts([3, 0, 1, 2, 4], rows, 2), parts([4], rows, 2)
    ([[3, 0, 1], [2, 4]], [[4]])
    """
    tokens = [len(samples[i]) + samples[i].listed for i in group]
    ends = np.cumsum(tokens)
    middles = ends - np.array(tokens) / 2
    places = (count * middles / ends[-1]).astype(int).tolist()
    split = [[i for i, place in zip(group, places, strict=True) if place == part] for part in range(count)]
    return [part for part in split if part]
