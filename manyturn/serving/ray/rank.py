"""A rank of a run in an actor of Ray: it does what the ranks of ``torchrun`` do, and finds the first by an address."""

import os
from importlib import import_module
from typing import Any

from manyturn.serving.ray.host import OTHERS, is_same_machine
from manyturn.terminal.command_exit import innermost, line_of


class RayRank:
    """One rank.

    Args:
        rank, size: which it is, and how many there are.
        folder: that the run was started in, from which paths of its configuration go.
        home: address of the driver's node, and then this one may be nowhere else; None for any node.
    """

    def __init__(self, rank: int, size: int, folder: str, home: str | None):
        self._rank, self._size, self._folder, self._home = rank, size, folder, home
        self._program: Any = None

    def prepare(self) -> None:
        """Have all that learning needs. Raises ValueError at a node where that is not allowed."""
        node = import_module("ray").util.get_node_ip_address()
        if self._home is not None and not is_same_machine(node, self._home):
            raise ValueError(f"Ray has placed a rank at {node}: {OTHERS}")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # rank 0 learns on a CPU, and so do all
        if os.path.isdir(self._folder):
            os.chdir(self._folder)
        self._program = import_module("manyturn.trainers.run.setup.ranks.rank_startup")

    def learn(self, address: str, port: int) -> str:
        """Learn until the run is over, with the rank 0 that listens at this address.

        Returns:
            Why it had to end before; empty where it had not.
        """
        try:
            self._program.follow_at(self._rank, self._size, address, port, all_here=self._home is not None)
        except Exception as error:  # the driver says it, for what is printed here nobody reads
            return line_of(innermost(error))
        return ""
