"""80/20 tokens: only the tokens at which the policy hesitated most are learnt from.

    A'_t = A_t T / N at the N tokens of highest entropy, else 0        N = ceil(share T)

Shapes: (turns K, advantage_T) -> advantage_T. T: reply tokens of scorable episodes. H_t is the entropy in nats of the
distribution that token t was drawn from, of the policy that played, without gradient.
Source: Beyond the 80/20 Rule, arXiv 2506.01939; numbers agree with the authors' code
(zhouxiangxin1998/Beyond-the-80-20-Rule-RLVR, ``get_global_entropy_top_mask``), whose share is 0.2.

Implementation:
1. T / N makes the mean over all tokens one over the tokens that count, as in the authors' code. KL and entropy terms
   are over all tokens.
2. Of equal entropies at the border, which a policy with few choices has often, all count, so that the order of tokens
   decides nothing; N is then their number.
3. Tokens are chosen over all turns of the step. A reply without a hesitation may have none of them.
4. Values are learnt at all tokens.

Differences: theirs chooses in each minibatch, by the entropy before its update, and takes ceil(share T) tokens whatever
is equal. Their code has 1 where nothing is left; here one token is, unless no reply has any.

Watch: ``entropy``: near 0, the policy hesitates nowhere, and what counts is chosen among tokens that have hardly a
gradient.
"""

import math
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import FloatT, TurnBatch
from manyturn.trainers.credit.stages import MODULATIONS, StageConfig


class HighEntropyTokensConfig(StageConfig):
    order: ClassVar[int | None] = 30
    name: Literal["high_entropy_tokens"] = "high_entropy_tokens"
    by_token: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"entropy"})
    share: float = Field(default=0.2, gt=0, lt=1)
    """Share of reply tokens that are learnt from."""


@MODULATIONS.register(HighEntropyTokensConfig)
def high_entropy_tokens(batch: TurnBatch, advantage_T: FloatT, config: HighEntropyTokensConfig) -> FloatT:
    """The advantage of the tokens that count, and 0 at all others.

    >>> entropy = {"entropy": [[[0.0, 2.0]], [[1.0, 0.5]]]}
    >>> batch = TurnBatch.from_episodes([[1], [0]], groups=[0, 0], tokens=[[2], [2]], token_columns=entropy)
    >>> high_entropy_tokens(batch, np.array([1.0, 1.0, -1.0, -1.0]), HighEntropyTokensConfig(share=0.5))
    array([ 0.,  2., -2., -0.])
    """
    entropy_T, scorable_T = batch.token_column("entropy"), batch.scorable_K[batch.turn_of_T]
    counted = entropy_T[scorable_T]
    if not len(counted):
        return advantage_T
    if not np.isfinite(counted).all():
        token = int(np.flatnonzero(scorable_T & ~np.isfinite(entropy_T))[0])
        raise ValueError(
            f"the entropy of reply token {token} is {entropy_T[token]}: the engine must return entropies with tokens"
        )
    least = np.partition(counted, -math.ceil(config.share * len(counted)))[-math.ceil(config.share * len(counted))]
    high_T = scorable_T & (entropy_T >= least)
    return advantage_T * high_T * (len(counted) / high_T.sum())
