"""State of an episode on the wire: plain JSON values that any client reads."""

import math
from typing import Any, NamedTuple

from manyturn.envs.contract.tasks.env_identity import KEY, EnvIdentity
from manyturn.envs.hosting.handle.env_handle import Answer


class Moment(NamedTuple):
    """Message to a client at the beginning of an episode, or after a turn.

    Attributes:
        episode: the id under which its next turn is played.
        task, split, seed: what it is about; the same three make the same episode in any process.
        turn: turns played so far.
        answer: what the environment said.
        env_identity: of the environment with its wrappers; said at the beginning only.
    """

    episode: str
    task: str
    split: str
    seed: int
    turn: int
    answer: Answer
    env_identity: EnvIdentity

    def place(self) -> dict[str, Any]:
        """Id of the episode, and its ending."""
        return {
            "episode": self.episode,
            "task": self.task,
            "split": self.split,
            "seed": self.seed,
            "turn": self.turn,
            "ended": self.answer.ended,
            "truncated": self.answer.truncated,
        }

    def judged(self) -> dict[str, Any]:
        """Facts of the environment about the turn, without the true answer, which is only for our trainers.

        A reward that is not known is None, as JSON has no NaN, and never 0. Wires that carry no None leave it out, so
        ``scored`` says it too.
        """
        answer = self.answer
        identity = {} if self.turn else {KEY: self.env_identity.plain()}
        return {
            **identity,
            "scored": math.isfinite(answer.reward),
            "reward": _number_or_none(answer.reward),
            "reward_parts": {name: _number_or_none(value) for name, value in answer.parts.items()},
            "success": answer.success,
            "understood": answer.understood,
            "format_valid": answer.format_valid,
            "progress": _number_or_none(answer.progress),
            "anchor": answer.anchor,
            "admissible": answer.admissible,
            "measures": {name: _number_or_none(value) for name, value in answer.measures.items()},
            "role": answer.role,
        }


def _number_or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
