"""Embeddings of an endpoint that speaks the OpenAI protocol: POST /embeddings, with patience as for completions."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from manyturn.agents.engine.engine import EngineRefused
from manyturn.agents.experience.retrieval.vectors import Embedded
from manyturn.agents.play.endpoint.client import Client, Service
from manyturn.agents.play.endpoint.completion import NoCompletion
from manyturn.agents.play.endpoint.options import Endpoint
from manyturn.agents.play.endpoint.retries import Asking
from manyturn.agents.play.endpoint.token_counts import TokenCount
from manyturn.agents.play.episode import ContextFull

SERVICE = Service("/embeddings", "embeddings", "--retrieval")
_BATCH = 32  # texts of a request; vectors of 3072 numbers then fit twice into the longest answer that is read


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
        base = endpoint.base_url or os.environ.get("OPENAI_BASE_URL", "")
        client = Client(endpoint, base, os.environ.get("OPENAI_API_KEY", "").strip(), SERVICE)
        self._asking = Asking(client, endpoint, _read)

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
