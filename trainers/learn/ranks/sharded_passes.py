"""Passes that several ranks share, over weights of which each rank holds a shard (FSDP2).

Each rank reads its rows of a minibatch and goes back through them. The loss of a row has the denominators of the whole
minibatch, so that the sum of the ranks' gradients is that of one process, up to the order of sums. All ranks gather
the weights of a layer together, so all make equally many passes: one that has no rows left reads a row for nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import PreTrainedModel

from manyturn.agents.engine.decoding.memory import ran_out
from manyturn.agents.model.model_internals import layers_of
from manyturn.trainers.learn.passes.forward import Reader, Watch
from manyturn.trainers.learn.passes.gradient_passes import Loss, Passes
from manyturn.trainers.learn.passes.optimizer_state import complete
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.learn.passes.samples import Rows, Sample
from manyturn.trainers.learn.passes.trie.packing import LEAST
from manyturn.trainers.learn.ranks.process_group import Ranks
from manyturn.trainers.learn.ranks.row_shares import shares


class Sharded(torch.nn.Module):
    """A model in shards, one for each rank.

    Its weights are whole inside of a call alone, layer by layer. They are in float32 where they are of several types,
    since a shard is of one.

    Args:
        model: the same in every rank, on the CPU; it is changed in place.
        device: where the shards go.
    """

    def __init__(self, model: PreTrainedModel, ranks: Ranks, device: torch.device):
        super().__init__()
        self.model, self._device = model, device
        if len({weights.dtype for weights in model.parameters()}) > 1:
            model.float()
        mesh = ranks.mesh(device)
        for layer in layers_of(model.get_decoder())[1]:
            fully_shard(layer, mesh=mesh)
        fully_shard(self, mesh=mesh)

    def forward(self, work: Callable[[], Any]) -> Any:
        """The result of ``work``, which computes with the model."""
        return work()

    def close(self) -> None:
        """After calls without a backward pass: the outermost weights would stay as they are while the shards change."""
        assert isinstance(self, FSDPModule), "its constructor has made it one"
        self.reshard()

    @torch.no_grad()
    def take(self, full_model: PreTrainedModel | None) -> None:
        """Become rank 0's model, which the others do not have."""
        theirs = list(full_model.parameters()) if full_model is not None else None
        for number, shard in enumerate(self.parameters()):
            spread(shard, None if theirs is None else theirs[number], self._device)

    @torch.no_grad()
    def give(self, full_model: PreTrainedModel | None) -> None:
        """The opposite: rank 0's model becomes this one, in what is trained."""
        theirs = list(full_model.parameters()) if full_model is not None else None
        for number, shard in enumerate(self.parameters()):
            if shard.requires_grad:
                tensor = complete(shard)
                if theirs is not None:
                    theirs[number].copy_(tensor)


def spread(shard: torch.Tensor, full: torch.Tensor | None, device: torch.device) -> None:
    """Fill every rank's shard from rank 0's whole tensor; the others give None."""
    assert isinstance(shard, DTensor), "weights are in shards once the model is"
    source = torch.empty(shard.shape, dtype=shard.dtype, device=device) if full is None else full.detach()
    distributed = distribute_tensor(source.to(device, shard.dtype), shard.device_mesh, shard.placements)
    shard.to_local().copy_(distributed.to_local())


class SharedPasses(Passes):
    """Passes of a rank."""

    def __init__(self, ranks: Ranks, sharded: Sharded):
        self._ranks, self._sharded = ranks, sharded

    def over(
        self,
        reader: Reader,
        samples: Sequence[Sample],
        indices: Sequence[int],
        loss: Loss,
        undo: Callable[[], object],
    ) -> dict[str, float]:
        sums = defaultdict[str, float](float)
        for chosen, shortest in self._groups(reader, samples, indices):
            for name, figure in self._pass(reader, samples, chosen, shortest, loss).items():
                sums[name] += float(figure)
        return self._ranks.summed(sums)

    def counted(self, reader: Reader) -> tuple[int, int]:
        sums = self._ranks.summed({"requested": reader.requested, "computed": reader.computed})
        return int(sums["requested"]), int(sums["computed"])

    def _pass(
        self, reader: Reader, samples: Sequence[Sample], chosen: list[int], shortest: int, loss: Loss
    ) -> Mapping[str, torch.Tensor]:
        def work() -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
            reading = reader.read([samples[i] for i in chosen or [shortest]])
            nothing = 0 * reading.logprob.sum()  # so that every weight has a gradient in every rank
            if not chosen:
                return nothing, {}
            value, measured = loss(chosen, reading)
            return value + nothing, measured

        with self._in_memory(samples, chosen or [shortest]):
            value, measured = self._sharded(work)
            (value * self._ranks.size).backward()  # of gradients the mean over ranks is taken
        return measured

    @torch.no_grad()
    def read(self, reader: Reader, samples: Sequence[Sample], watches: Mapping[str, Watch]) -> dict[str, Rows]:
        """As ``Reader.over``, each rank reading its share; rank 0 has what all have found, and the others nothing."""
        gathered: dict[str, Rows] = {name: [] for name in watches}
        blank, numbers = dict[str, torch.Tensor](), list[int]()
        for chosen, shortest in self._groups(reader, samples, range(len(samples))):
            with self._in_memory(samples, chosen or [shortest]):
                rows = self._sharded(partial(_watched, reader, [samples[i] for i in chosen or [shortest]], watches))
            blank = {
                name: values[0][:0].cpu() for name, values in rows.items()
            }  # of what a rank has that reads nothing
            numbers += chosen
            for name, values in rows.items():
                gathered[name] += [row[: len(samples[i])].cpu() for i, row in zip(chosen, values, strict=False)]
        self._sharded.close()
        return {name: self._gathered(numbers, rows, blank[name], len(samples)) for name, rows in gathered.items()}

    def _gathered(self, numbers: Sequence[int], rows: Rows, blank: torch.Tensor, count: int) -> Rows:
        """For rank 0 the rows of all samples, from each rank's own and their numbers."""
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
        own = [torch.tensor(numbers, dtype=torch.int64), lengths, torch.cat([blank, *rows])]
        gathered = self._ranks.to_rank_0(own)
        if gathered is None:
            return []
        places, lengths, values = gathered
        ordered = [blank] * count
        for place, row in zip(places.tolist(), values.split(lengths.tolist()), strict=True):
            ordered[place] = row
        return ordered

    def _groups(
        self, reader: Reader, samples: Sequence[Sample], indices: Sequence[int]
    ) -> Iterator[tuple[list[int], int]]:
        """This rank's groups of samples, and then empty ones until every rank is done; and the shortest of all."""
        rows, listed = [samples[i].ids for i in indices], [samples[i].listed for i in indices]
        shared = shares(rows, self._ranks.size, LEAST.get(reader.packing), listed)
        own = [indices[i] for i in shared[self._ranks.rank]]
        groups = reader.groups(samples, own) if own else []
        shortest = min(indices, key=lambda i: len(samples[i]))
        for number in range(self._ranks.most(len(groups))):
            yield groups[number] if number < len(groups) else [], shortest

    @contextmanager
    def _in_memory(self, samples: Sequence[Sample], chosen: Sequence[int]) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not ran_out(error):
                raise
            raise LearningFailed(
                f"memory ran out in a pass of rank {self._ranks.rank} over {len(chosen)} sequences of "
                f"{sum(len(samples[i]) for i in chosen)} tokens, so the run stops at its last checkpoint: begin "
                "another one with a lower learner.micro_tokens, with learner.gradient_checkpointing = true, or on more "
                "processes"
            ) from error


def _watched(reader: Reader, samples: Sequence[Sample], watches: Mapping[str, Watch]) -> dict[str, Rows]:
    reading = reader.read(samples)
    return {name: list(watch(reading)) for name, watch in watches.items()}
