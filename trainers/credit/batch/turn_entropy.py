"""Entropy of a turn: the mean over its reply's tokens of the next-token distribution's entropy, as the engine drew."""

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, TurnBatch


def turn_entropies(batch: TurnBatch) -> tuple[FloatK, BoolK]:
    """Entropy of each turn (K) in nats, and whether it counts: scorable, and with a reply that is not empty.

    >>> batch = TurnBatch.from_episodes([[0, 1]], [0], tokens=[[2, 0]], token_columns={"entropy": [[[1, 2], []]]})
    >>> turn_entropies(batch)
    (array([1.5, 0. ]), array([ True, False]))
    """
    entropy_K = np.bincount(batch.turn_of_T, batch.token_column("entropy"), len(batch.turn_K))
    entropy_K = entropy_K / np.maximum(batch.tokens_K, 1)
    counted_K = batch.scorable_K & (batch.tokens_K > 0)
    unknown_K = counted_K & ~np.isfinite(entropy_K)
    if unknown_K.any():
        k = int(unknown_K.argmax())
        raise ValueError(f"the entropy of reply {k} is {entropy_K[k]}: the engine must return entropies with tokens")
    return entropy_K, counted_K
