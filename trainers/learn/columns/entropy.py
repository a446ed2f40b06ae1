"""The column "entropy" (T): of the distribution that the engine drew each reply token from, in nats."""

from typing import Literal

import numpy as np

from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class EntropyColumnConfig(ColumnConfig):
    name: Literal["entropy"] = "entropy"


@COLUMNS.register(EntropyColumnConfig)
def entropy(step: PlayedStep, config: EntropyColumnConfig) -> Supplied:
    """Out of the ledgers; NaN where the engine gave none."""
    ledgers = [episode.ledger for episode in step.episodes if episode.ledger is not None]
    entropies = [ledger.reply_entropies(turn) for ledger in ledgers for turn in range(len(ledger.spans))]
    return Supplied(token_columns={"entropy": np.concatenate(entropies)})
