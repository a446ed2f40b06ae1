"""Policy shaping: in guided episodes, tokens that the policy neither expects nor excludes count most.

    A'_t = A_t gamma p / (p + gamma)^2 at the tokens of guided turns, A_t elsewhere

p is the policy's probability of the token after the prompt without the text. This is the gradient of p / (p + gamma),
which takes the place of the ratio there.

Shapes: (turns K, advantage_T) -> advantage_T. T: reply tokens.
Source: Critique-GRPO, arXiv 2506.03106, and the authors' code (zhangxy-2019/critique-GRPO, ``p_div_p_0.1``); LUFFY,
arXiv 2504.14945, equation 6.

Implementation:
1. The factor is at most 1/4, at p = gamma, and 0 at p = 0 and small at p = 1: unlikely tokens count by p / gamma.
2. The ratio to the probability before the step's updates stays, and is 1 at the first of them.

Differences: theirs has p of the policy that is being updated, which is the same with one update a step, and no ratio.

Watch: ``guided_likelihood``: far below gamma, guided tokens are hardly learnt from.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import FloatT, TurnBatch
from manyturn.trainers.credit.stages import MODULATIONS, StageConfig


class PolicyShapingConfig(StageConfig):
    order: ClassVar[int | None] = 31
    name: Literal["policy_shaping"] = "policy_shaping"
    by_token: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"guided", "likelihood"})
    gamma: float = Field(default=0.1, gt=0)
    """Probability of a token at which it counts most."""


@MODULATIONS.register(PolicyShapingConfig)
def policy_shaping(batch: TurnBatch, advantage_T: FloatT, config: PolicyShapingConfig) -> FloatT:
    """The advantage of each token, times the factor where its turn is guided.

    >>> columns = {"columns": {"guided": [[0], [1]]}, "token_columns": {"likelihood": [[[0.1]], [[0.1]]]}}
    >>> batch = TurnBatch.from_episodes([[1], [0]], groups=[0, 0], tokens=[[1], [1]], **columns)
    >>> policy_shaping(batch, np.array([1.0, 1.0]), PolicyShapingConfig())
    array([1.  , 0.25])
    """
    p_T, guided_T = batch.token_column("likelihood"), batch.column("guided")[batch.turn_of_T] > 0
    return advantage_T * np.where(guided_T, config.gamma * p_T / (p_T + config.gamma) ** 2, 1.0)
