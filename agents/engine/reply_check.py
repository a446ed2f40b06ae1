"""An engine whose replies are looked at before anything is made of them.

A reply that no sound engine gives, such as a NaN, a token that the model does not have, or weights older than the turn
before, raises EngineError: the episode is tried again, and nothing of it is kept. No engine is trusted here, since
what enters the ledger is what the learner learns from.

There is no deadline: one that draws in this process cannot be interrupted, and waits for other episodes on purpose; one
behind a network knows best how long a request may take.
"""

import math
from collections.abc import Sequence
from typing import Any

from manyturn.agents.engine.engine import Engine, EngineError, EngineLost, GivenReply, Reply, Sampling
from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.agents.text.choice_decoding import Choices
from manyturn.agents.tokens.episode_key import EpisodeKey

_ROUNDING = 1e-4  # nats by which a log-probability may be above 0, or an entropy below
_ENTROPY_ROUNDING = 1e-2  # and an entropy above that of the uniform distribution, which sums the most terms


class Checked:
    """Asks an engine, and raises EngineError for anything else that it raises and for every reply that cannot be right.

    Args:
        engine: computes the replies.
        template: knows the tokens that end a reply.
    """

    def __init__(self, engine: Engine, template: ChatTemplate):
        self._engine, self._ends = engine, template.end_ids
        self.vocabulary, self.capabilities = engine.vocabulary, engine.capabilities
        self._newest: dict[EpisodeKey, int] = {}

    def open(self, key: EpisodeKey) -> None:
        self._engine.open(key)
        self._newest[key] = 0

    def close(self, key: EpisodeKey) -> None:
        self._newest.pop(key, None)
        self._engine.close(key)

    async def generate(
        self,
        key: EpisodeKey,
        turn: int,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        choices: Choices | None = None,
    ) -> Reply:
        """The engine's reply, limited to ``choices`` if there are any."""
        try:
            if choices is None:
                reply = await self._engine.generate(key, turn, prompt_ids, sampling)
            else:
                reply = await self._engine.choose(key, turn, prompt_ids, sampling, choices)
            fault = self._fault(reply, sampling.max_tokens, self._newest.get(key, 0))
            if fault is None and choices is not None and choices.along(reply.ids) is None:
                fault = f"{reply.ids} is none of the {len(choices.replies)} that it was limited to"
        except (EngineError, EngineLost):
            raise
        except Exception as error:
            raise EngineError(f"the engine raised {type(error).__name__}: {error}") from error
        if fault:
            raise EngineError(f"the engine's reply at turn {turn} is refused: {fault}")
        self._newest[key] = reply.version
        return reply

    async def score(self, replies: Sequence[GivenReply], temperature: float = 1.0) -> list[list[float]]:
        """The engine's log-probabilities of given replies."""
        try:
            rows: Any = await self._engine.score(replies, temperature)
        except (EngineError, EngineLost):
            raise
        except Exception as error:
            raise EngineError(f"the engine raised {type(error).__name__}: {error}") from error
        counts = [len(given.reply) for given in replies]
        if not isinstance(rows, list) or [len(row) if isinstance(row, list) else -1 for row in rows] != counts:
            raise EngineError(f"the engine's scores are refused: {len(counts)} replies need a number for each token")
        for value in (value for row in rows for value in row):
            if not (isinstance(value, float) and math.isfinite(value) and value <= _ROUNDING):
                raise EngineError(f"the engine's scores are refused: {value!r:.40} cannot be a log-probability")
        return rows

    def _fault(self, reply: Any, longest: int, newest: int) -> str | None:
        """The fault of a reply; None if it has none."""
        if not isinstance(reply, Reply):
            return f"it is a {type(reply).__name__}, not a Reply"
        if type(reply.version) is not int or reply.version < newest:
            return f"its weights are of version {reply.version!r:.40} after version {newest} before"
        return self._fault_of_ids(reply, longest) or self._fault_of_numbers(reply)

    def _fault_of_ids(self, reply: Reply, longest: int) -> str | None:
        ids = reply.ids
        if not isinstance(ids, list) or not 1 <= len(ids) <= longest:
            size = len(ids) if isinstance(ids, list) else type(ids).__name__
            return f"it should hold a list of 1 to {longest} tokens, not {size}"
        for token in ids:
            if type(token) is not int or not 0 <= token < self.vocabulary:
                return f"the token {token!r:.40} is none of the {self.vocabulary}: is this the tokenizer's model?"
        if any(token in self._ends for token in ids[:-1]):
            return "it goes on after an end token"
        # Cut means that it filled its room: one that was broken off earlier is not what the policy would have said.
        finish = "stop" if ids[-1] in self._ends else "length" if len(ids) == longest else "neither"
        if reply.finish != finish:
            return f"it says {reply.finish!r:.40} after {len(ids)} of {longest} tokens, the last being {ids[-1]}"
        return None

    def _fault_of_numbers(self, reply: Reply) -> str | None:
        count, most = len(reply.ids), math.log(self.vocabulary) + _ENTROPY_ROUNDING
        bounds: tuple[tuple[str, Any, float, float], ...] = (
            ("log-probabilities", reply.logprobs, -math.inf, _ROUNDING),
            ("entropies", reply.entropies, -_ROUNDING, most),
        )
        for name, values, low, high in bounds:
            if values is None and name == "entropies" and not self.capabilities.entropy:
                continue
            if not isinstance(values, list) or len(values) != count:
                size = len(values) if isinstance(values, list) else type(values).__name__
                return f"{count} tokens need a list of {count} {name}, not {size}"
            for value in values:
                if not (isinstance(value, float) and math.isfinite(value) and low <= value <= high):
                    return f"{value!r:.40} cannot be among its {name}"
        return None
