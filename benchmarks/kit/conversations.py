"""Conversations of random tokens, as a learner's samples."""

import numpy as np

from manyturn.trainers.learn.passes.samples import Sample

_REPLY, _SHARE = 64, 0.25  # tokens of a reply at most; share of all tokens that are the policy's


def conversations(rows: int, length: int, vocabulary: int) -> list[Sample]:
    """Episodes of random tokens: observations and replies of one length, in turns.

    Args:
        rows: episodes.
        length: tokens T of each.
        vocabulary: V, from which ids are drawn evenly.
    """
    rng, samples = np.random.default_rng(0), []
    reply = min(_REPLY, int(length * _SHARE))
    turn = round(reply / _SHARE)
    for episode in range(rows):
        place_T = np.arange(length)
        said_T = place_T % turn >= turn - reply
        number_T = np.where(said_T, place_T // turn, -1)
        logprob_T = np.where(said_T, -np.log(vocabulary), 0.0)
        ids_T = rng.integers(0, vocabulary, length)
        samples.append(Sample(episode, ids_T, said_T, logprob_T, number_T, int(number_T.max()) + 1))
    return samples
