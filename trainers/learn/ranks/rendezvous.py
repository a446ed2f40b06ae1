"""Meeting of ranks that torchrun did not start: a store of names and addresses in rank 0's process."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from manyturn.envs.web.server_socket import listening

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

RESUME = (
    "go on from the last checkpoint with manyturn train --resume RUN; placement.learners in its config.toml may be "
    "another number"
)


@dataclass(frozen=True)
class Meeting:
    """The data that a rank needs to reach the others.

    Args:
        rank, size: which it is, and how many there are.
        all_here: whether all of them are on one machine.
        store: that all of them reach.
        port: that the store listens on.
        own_machine: whether the run has started them itself, where they may use the GPUs.
    """

    rank: int
    size: int
    all_here: bool
    store: "Store"
    port: int
    own_machine: bool = False

    @classmethod
    def begun(cls, size: int, *, all_here: bool, own_machine: bool = False) -> Self:
        """The rendezvous of rank 0, which has the store."""
        socket = listening(0, "127.0.0.1" if all_here else "0.0.0.0")
        port = socket.getsockname()[1]
        descriptor = socket.detach()  # given a port alone, PyTorch would listen on every address
        store = _store("127.0.0.1", port, is_master=True, wait_for_workers=False, master_listen_fd=descriptor)
        return cls(0, size, all_here, store, port, own_machine)

    @classmethod
    def joined(
        cls, rank: int, size: int, address: str, port: int, *, all_here: bool, own_machine: bool = False
    ) -> Self:
        """The rendezvous of another rank. Raises RuntimeError if rank 0 does not answer there."""
        return cls(rank, size, all_here, _store(address, port, is_master=False), port, own_machine)


def _store(*args: Any, **named: Any) -> "Store":
    from torch._C._distributed_c10d import TCPStore  # which only a PyTorch that knows of ranks has

    return TCPStore(*args, **named)
