"""EPO's regulariser as a term of TRL's loss, run with trl 1.16.0: entropy is held near the mean of its history.

``trainers/learn/objective/epo.py`` has the formula. TRL computes the entropy of each token with its gradient, at the
sampling temperature. A step is a generation of TRL's: as long as each is learnt from in one update, the history holds
what our own learner's holds, the mean entropy of a token before the update. With more updates it holds the mean over
all of them. The released form is refused: it wants a generation's entropies before its first update.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from manyturn.trainers.learn.objective.epo import EntropyHistory, EntropyRange, EpoConfig, epo, turn_mean

Reduce = Callable[[torch.Tensor], torch.Tensor]  # sums a tensor over processes


class EntropyTerm:
    """The term, and the history that its range is made of.

    Attributes:
        now: the range of the present generation.
    """

    def __init__(self, config: EpoConfig):
        if config.form == "released":
            raise ValueError(
                "EPO's form = 'released' wants entropies before a generation's first update, which TRL does not "
                "compute: take form = 'paper'"
            )
        self.config = config
        self.now = EntropyRange()
        self._history = EntropyHistory()
        self._met: torch.Tensor | None = None  # sum of entropies, and number of tokens, in this process

    def begin(self, generations: int, reduce: Reduce) -> dict[str, float]:
        """Close the last generation and begin the next; figures for a log.

        Args:
            generations: of the run, which the schedule has where no other length is set.
        """
        if self.config.horizon is not None and self.config.horizon > generations:
            raise ValueError(
                f"EPO's horizon = {self.config.horizon} is a schedule of {self.config.horizon} generations, of which a "
                f"run of {generations} sees the start alone: leave it out, and the schedule is the run's"
            )
        self._close(reduce)
        config = self.config.model_copy(update={"horizon": self.config.horizon or generations})
        self.now = self._history.range(config)
        figures = {"epo/weight": self.now.weight}
        return figures | ({"epo/reference": self.now.reference[0]} if self.now.reference else {})

    def term(
        self, entropy_BT: torch.Tensor, reply_BT: torch.Tensor, episodes: torch.Tensor
    ) -> tuple[torch.Tensor, float]:
        """These rows' share of the term, and which part of their tokens is out of the range.

        Args:
            entropy_BT: with the gradient.
            reply_BT: number of the token's turn in its row, -1 where nothing is learnt.
            episodes: learnt from in the update, of which each process adds its own.
        """
        said_BT = reply_BT >= 0
        met = torch.stack([entropy_BT.detach()[said_BT].sum().double(), said_BT.sum().double()])
        self._met = met if self._met is None else self._met + met
        mean = partial(turn_mean, reply=reply_BT, turns=None, episodes=episodes)
        term, outside_BT = epo(self.config, entropy_BT, reply_BT, mean, self.now)
        return term, float(outside_BT[said_BT].mean()) if said_BT.any() else 0.0

    def _close(self, reduce: Reduce) -> None:
        if self._met is None:
            return
        total, tokens = reduce(self._met).tolist()
        self._met = None
        if tokens:
            self._history.add(np.array([total / tokens]), np.zeros(1, np.int64))

    def plain(self, reduce: Reduce) -> dict[str, Any]:
        """JSON values for a checkpoint, which closes the present generation."""
        self._close(reduce)
        return vars(self._history) | {"turns": list(self._history.turns)}

    def load_plain(self, state: Mapping[str, Any]) -> None:
        """The inverse of ``plain``."""
        self._history = EntropyHistory(**state)
