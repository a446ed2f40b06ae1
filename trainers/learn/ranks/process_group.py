"""The ranks of a run, whoever has started them: how they find each other, talk, and notice that one has ended.

Rank 0 drives: it tells the others what to do, and they do it with it. Between two of these they wait, for as long as
the environments take. Where a process ends its connections close, and whoever waits for it hears of that.
"""

import json
import os
import signal
import socket
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from typing import Self

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from manyturn.envs.hosting.local.shutdown_watchdog import SIGNALS
from manyturn.trainers.learn.ranks.message import RankMessage
from manyturn.trainers.learn.ranks.rendezvous import RESUME, Meeting

RANKS_DRAIN_SECONDS = 10.0  # for episodes after a signal: torchrun kills what has not ended after 30 s
_WAITING = timedelta(days=30)  # for what rank 0 says next; of a rank that ends the others hear immediately
_INTERFACE = "GLOO_SOCKET_IFNAME"
_RESUME = (
    "go on from the last checkpoint with torchrun --nproc-per-node N -m manyturn train --resume RUN, on any number of "
    "processes"
)
_END = "end"


class RankLost(RuntimeError):
    """Another process of the run has ended, without which none can go on."""


def started_ranks() -> int:
    """The number of processes that torchrun has started; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def own_rank() -> int:
    """The number of this rank."""
    return int(os.environ.get("RANK", "0")) if started_ranks() > 1 else 0


@contextmanager
def _staying_here(*, all_here: bool) -> Iterator[None]:
    """Accept connections from this machine only while the context is open, where all ranks are on it."""
    names = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if not names or not all_here or _INTERFACE in os.environ:
        yield
        return
    os.environ[_INTERFACE] = names[0]
    try:
        yield
    finally:
        del os.environ[_INTERFACE]


class Ranks:
    """All processes of a run, as a context manager in each of them.

    Args:
        meeting: where they find each other; None where the variables of torchrun say that.

    Attributes:
        rank, size: number of this process, and how many there are.
    """

    def __init__(self, meeting: Meeting | None = None) -> None:
        environ = os.environ
        if meeting is None:
            local = int(environ.get("LOCAL_WORLD_SIZE", "1"))
            self._is_here = environ.get("LOCAL_WORLD_SIZE") == environ.get("WORLD_SIZE")
        else:
            local, self._is_here = meeting.size if meeting.all_here else 1, meeting.all_here
        self._local, self._own_process = local, meeting is None
        has_gpus = (meeting is None or meeting.own_machine) and torch.cuda.is_available()
        cuda = has_gpus and dist.is_nccl_available()
        if has_gpus:
            torch.cuda.set_device(int(environ.get("LOCAL_RANK", "0")) if meeting is None else meeting.rank)
        backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
        self._at_work = False
        with self.together(), _staying_here(all_here=self._is_here):
            if meeting is None:
                dist.init_process_group(backend)
            else:
                dist.init_process_group(backend, store=meeting.store, rank=meeting.rank, world_size=meeting.size)
            talk = dist.new_group(backend="gloo", timeout=_WAITING)
        assert isinstance(talk, dist.ProcessGroup), "every rank is in the group of all"
        self._talk = talk
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._meshes = dict[str, DeviceMesh]()

    def __enter__(self) -> Self:
        if self.rank:
            for number in SIGNALS:  # rank 0 hears them too, and says when to end
                signal.signal(number, signal.SIG_IGN)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not (self._at_work or self.rank or isinstance(error, RankLost)):
            with suppress(RankLost) if error else nullcontext():  # what ended this rank first says more
                self.tell(RankMessage(_END))
        if not (self._at_work and self._own_process):
            dist.destroy_process_group()
        # Otherwise the others are inside of something: they hear of it when this process ends.

    @contextmanager
    def together(self) -> Iterator[None]:
        """Do something that all ranks do at once. Raises RankLost where another one ends meanwhile."""
        before, self._at_work = self._at_work, True
        try:
            yield
        except RuntimeError as error:
            if not (isinstance(error, dist.DistError) or "gloo" in str(error).lower()):
                raise
            raise RankLost(
                "another process of this run has ended, and said why if it could: "
                + (_RESUME if self._own_process else RESUME)
            ) from error
        self._at_work = before

    def mesh(self, device: torch.device) -> DeviceMesh:
        """All ranks in a row, for shards on this kind of device."""
        if device.type not in self._meshes:
            with _staying_here(all_here=self._is_here):
                self._meshes[device.type] = init_device_mesh(device.type, (self.size,))
        return self._meshes[device.type]

    def tell(self, message: RankMessage) -> None:
        """Say something to all others. Rank 0 alone does."""
        with self.together():
            data = torch.frombuffer(bytearray(message.encoded()), dtype=torch.uint8)
            dist.broadcast(torch.tensor([len(data)]), 0, group=self._talk)
            dist.broadcast(data, 0, group=self._talk)

    def messages(self) -> Iterator[RankMessage]:
        """Messages of rank 0, until its last."""
        while True:
            with self.together():
                length = torch.zeros(1, dtype=torch.int64)
                dist.broadcast(length, 0, group=self._talk)
                data = torch.empty(int(length), dtype=torch.uint8)
                dist.broadcast(data, 0, group=self._talk)
            message = RankMessage.decoded(data.numpy().tobytes())
            if message.what == _END:
                return
            yield message

    def most(self, number: int) -> int:
        """The largest of the ranks' numbers."""
        maximum = torch.tensor([number])
        dist.all_reduce(maximum, dist.ReduceOp.MAX, group=self._talk)
        return int(maximum)

    def summed(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Each figure's sum over the ranks, in their order."""
        sums = defaultdict[str, float](float)
        text = torch.frombuffer(bytearray(json.dumps(figures).encode()), dtype=torch.uint8)
        for message in self._all(text):
            for name, value in json.loads(message.numpy().tobytes()).items():
                sums[name] += value
        return dict(sums)

    def of(self, own: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Tensors of every rank, one after the other along the first dimension; they differ in that alone."""
        return [torch.cat([part.to(tensor.device) for part in self._all(tensor)]) for tensor in own]

    def to_rank_0(self, own: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """As ``of``, on the CPU, for rank 0; None for the others."""
        parts = [self._all(tensor, for_all=False) for tensor in own]
        return None if self.rank else [torch.cat(tensors) for tensors in parts]

    def share_of(self, device: torch.device) -> float:
        """A device's share of what all ranks hold: a GPU that of its rank, a CPU that of all ranks around it."""
        here = self._local if device.type == "cpu" else 1
        return here / self.size

    def add(self, sums: Sequence[torch.Tensor]) -> None:
        """Sum tensors of one shape, in place."""
        for tensor in sums:
            dist.all_reduce(tensor)

    def add_gradients(self, weights: Sequence[torch.Tensor]) -> None:
        """The mean over ranks of the gradients of weights that each of them has whole; of shards FSDP takes it."""
        for tensor in weights:
            if tensor.grad is None:
                tensor.grad = torch.zeros_like(tensor)
            self.add([tensor.grad])
            tensor.grad /= self.size

    def _all(self, own: torch.Tensor, *, for_all: bool = True) -> list[torch.Tensor]:
        """The tensor of every rank, on the CPU.

        Args:
            for_all: False: for rank 0; the others get nothing.
        """
        counts = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(counts, torch.tensor([len(own)]), group=self._talk)
        longest = max(map(int, counts))
        mine = own.detach().cpu()
        mine = torch.cat([mine, mine.new_zeros(longest - len(mine), *mine.shape[1:])])
        if self.rank and not for_all:
            dist.gather(mine, None, 0, group=self._talk)
            return []
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        if for_all:
            dist.all_gather(parts, mine, group=self._talk)
        else:
            dist.gather(mine, parts, 0, group=self._talk)
        return [rows[: int(count)] for rows, count in zip(parts, counts, strict=True)]
