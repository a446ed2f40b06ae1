"""Budget of one pass of the learner, and a smaller one once memory has run out."""

from collections.abc import Callable
from typing import TypeVar

import torch

from manyturn.agents.engine.decoding.memory import ran_out

Result = TypeVar("Result")


class LearningFailed(RuntimeError):
    """Training that cannot teach anything any more; the text names the reason and the fix."""


class PassBudget:
    """The tokens of a pass, of all models of a learner together.

    Args:
        tokens: most tokens at first.

    Attributes:
        tokens: most tokens now.
        times: how often memory ran out since ``begin_step``.
    """

    def __init__(self, tokens: int):
        self.tokens, self.times = tokens, 0
        self._rows, self._size = 0, 0

    def begin_step(self) -> None:
        """Count from 0."""
        self.times = 0

    def passing(self, rows: int, tokens: int) -> None:
        """A pass over so many sequences and tokens begins."""
        self._rows, self._size = rows, tokens

    def within(self, work: Callable[[], Result], undo: Callable[[], object] = lambda: None) -> Result:
        """Run the work; where memory runs out, begin it again from the start in smaller passes.

        Args:
            work: makes passes, each announced by ``passing``.
            undo: takes back what the work has changed until then.

        Raises:
            LearningFailed: a pass over a single sequence is too large.
        """
        while True:
            try:
                return work()
            except Exception as error:
                if not ran_out(error):
                    raise
                if self._rows <= 1:
                    raise LearningFailed(
                        f"memory ran out in a pass over a single sequence of {self._size} tokens, so the run stops at "
                        "its last checkpoint: begin another one with learner.gradient_checkpointing = true, with "
                        "learner.lora_rank, or with a lower agent.max_context"
                    ) from error
            # Outside of the handler: the error holds the frames of the pass, and with them what it had computed.
            undo()
            self.tokens = min(self.tokens, self._size) // 2
            self.times += 1
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
