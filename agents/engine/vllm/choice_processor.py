"""Choice decoding in vLLM: each token is drawn among those that lead on to one of the replies that a request names.

vLLM makes ``LimitedReplies`` in the process that draws, by its name. A request names its replies in its extra
arguments; one without them is not limited. What is impossible gets minus infinity before the temperature is applied. So
log-probabilities are those of the distribution over what is possible, and 0 for a forced token.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor  # pyright: ignore[reportMissingImports]

from manyturn.agents.engine.vllm.reply_request import REPLIES
from manyturn.agents.text.choice_decoding import Choices

if TYPE_CHECKING:
    from vllm.sampling_params import SamplingParams  # pyright: ignore[reportMissingImports]


class LimitedReplies(AdapterLogitsProcessor):
    """Limits those rows of vLLM's batch whose requests name replies."""

    @classmethod
    def validate_params(cls, sampling_params: "SamplingParams") -> None:
        """Raises ValueError for replies that are no choice, before the request is taken."""
        if (replies := _replies(sampling_params)) is not None:
            Choices(replies)

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(
        self, params: "SamplingParams"
    ) -> Callable[[list[int], torch.Tensor], torch.Tensor] | None:
        replies = _replies(params)
        return None if replies is None else _Limit(replies)


def _replies(params: Any) -> Sequence[Sequence[int]] | None:
    return (params.extra_args or {}).get(REPLIES)


class _Limit:
    """The limit of one reply. vLLM gives the same growing list of its tokens each time."""

    def __init__(self, replies: Sequence[Sequence[int]]):
        self._place, self._drawn_count = Choices(replies).first, 0

    def __call__(self, ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        for token in ids[self._drawn_count :]:
            self._place = self._place.after(token)
        self._drawn_count = len(ids)
        if not self._place.allowed:  # the reply is complete: what this pass draws is not taken
            return logits
        allowed = torch.tensor(self._place.allowed, device=logits.device)
        limited = torch.full_like(logits, -torch.inf)
        limited[allowed] = logits[allowed]
        return limited
