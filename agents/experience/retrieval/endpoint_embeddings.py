"""Embeddings of an endpoint that speaks the OpenAI protocol: POST /embeddings, with patience as for completions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from manyturn.agents.engine.engine import EngineRefused
from manyturn.agents.experience.retrieval.vectors import Embedded
from manyturn.agents.play.endpoint.client import Client
from manyturn.agents.play.endpoint.completion import NoCompletion
from manyturn.agents.play.endpoint.options import Endpoint
from manyturn.agents.play.endpoint.retries import Asking
from manyturn.agents.play.endpoint.token_counts import TokenCount
from manyturn.agents.play.episode import ContextFull
from manyturn.envs.users.endpoint.protocols.event_stream import Assembly
from manyturn.envs.users.endpoint.protocols.registry import OPENAI, PROTOCOLS
from manyturn.envs.users.endpoint.protocols.service import EndpointService, Manner

_BATCH = 32  # texts of a request; vectors of 3072 numbers then fit twice into the longest answer that is read


class EmbeddingsService(EndpointService):
    """Embeddings at ``/embeddings``."""

    title, path, section = "embeddings", "/embeddings", "--retrieval"

    def base(self, written: str) -> str:
        return PROTOCOLS[OPENAI].base(super().base(written))  # the policy may have its address from the same variable

    def request(self, body: Mapping[str, Any], manner: Manner) -> dict[str, Any]:
        return dict(body)

    def assembly(self, longest: int) -> Assembly:
        return _NoEmbeddings(longest)


class _NoEmbeddings(Assembly):
    """The answer in a stream of events: embeddings come in one piece, so its first event ends it."""

    def add(self, event: dict[str, Any]) -> None:
        self.done = True

    def answer(self) -> dict[str, Any]:
        return {}


class EndpointEmbeddings:
    """Vectors of an endpoint's model.

    Args:
        model: its name there.
        endpoint: address, patience and prices.

    Raises:
        ValueError: no address is known, or it cannot be right.
    """

    batch = _BATCH

    def __init__(self, model: str, endpoint: Endpoint):
        self.name, self._model, self._endpoint = f"openai:{model}", model, endpoint
        self._asking = Asking(Client(endpoint, EmbeddingsService()), endpoint, _read, Manner())

    async def embed(self, texts: Sequence[str]) -> Embedded:
        sound = [text.encode("utf-8", "replace").decode() for text in texts]  # lone surrogates have no encoding
        body = {"model": self._model, "input": sound}
        try:
            answer = await self._asking.ask(body, lambda attempt: 0.5)
        except ContextFull as error:
            raise EngineRefused(f"{error}: give --retrieval.longest less") from error
        return Embedded(answer.vectors, self._endpoint.usage(answer.charged))


class _Answer(NamedTuple):
    vectors: list[list[float]]
    counted: TokenCount | None
    charged: TokenCount | None = None

    def paid(self, charged: TokenCount | None) -> Self:
        return self._replace(charged=charged)


def _read(raw: bytes, body: Mapping[str, Any]) -> _Answer:
    """The vectors in the body of an answer. Raises NoCompletion where it holds none, or another number of them.

    >>> _read(b'{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}', {"input": "ab"}).vectors
    [[1.0], [2.0]]
    """
    try:
        answer = json.loads(raw)
        rows = sorted(answer["data"], key=lambda row: row["index"])
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
        places = [row["index"] for row in rows]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NoCompletion("no embeddings") from None
    if places != list(range(len(body["input"]))) or len({len(vector) for vector in vectors}) != 1:
        raise NoCompletion(f"embeddings of {len(vectors)} texts for {len(body['input'])}")
    usage = answer.get("usage")
    counts = {**usage, "completion_tokens": 0} if isinstance(usage, dict) else None
    return _Answer(vectors, TokenCount.read(counts))
