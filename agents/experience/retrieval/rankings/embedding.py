"""Retrieval by embeddings: the cosine of the vectors of first observations.

    model "openai:MODEL"    vectors of an endpoint's /embeddings, at OPENAI_BASE_URL or base_url
    model "FOLDER"          hidden states of the last layer of a Hugging Face model, their mean over the tokens

Source: the dense retrieval of Memento (AgentFly), arXiv 2508.16153, section 4.2, which ranks by cosine of sentence
embeddings; the mean over tokens is that of Reimers and Gurevych 2019, "Sentence-BERT", arXiv 1908.10084, section 3.

Differences: a folder's own recipe for sentences, such as a pooling other than the mean or a prefix, is not read.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from manyturn.agents.experience.retrieval.endpoint_embeddings import EndpointEmbeddings
from manyturn.agents.experience.retrieval.model_embeddings import ModelEmbeddings
from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, Ranking, RetrievalConfig, Search
from manyturn.agents.experience.retrieval.vectors import Embeddings, Vectors
from manyturn.agents.play.endpoint.options import Endpoint

_ENDPOINT = "openai:"
_OF_ENDPOINT = ("base_url", "timeout", "attempts", "price")


class EmbeddingConfig(RetrievalConfig):
    name: Literal["embedding"] = "embedding"
    model: str = Field(min_length=1)
    """openai:MODEL for an endpoint's embeddings, or the folder of a Hugging Face model."""
    longest: int = Field(default=2000, ge=1)
    """Longest text that is compared, in characters; the rest of a longer one is left out."""
    base_url: str | None = None
    """Address of the endpoint, such as http://127.0.0.1:8000/v1. Default: OPENAI_BASE_URL."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds that one request to the endpoint may take."""
    attempts: int = Field(default=6, ge=1)
    """Tries of a request to the endpoint before the episode ends in an error."""
    price: float | None = Field(default=None, ge=0)
    """USD for a million tokens at the endpoint."""

    @classmethod
    def of_word(cls, word: str) -> dict[str, Any] | None:
        return {"model": word} if word.startswith(_ENDPOINT) or "/" in word else None

    @property
    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "model": self.model, "longest": self.longest}

    @model_validator(mode="after")
    def _asks_an_endpoint(self) -> "EmbeddingConfig":
        if self.model == _ENDPOINT:
            raise ValueError("which model of the endpoint? Write openai:MODEL, such as openai:text-embedding-3-small")
        for name in _OF_ENDPOINT:
            if not self.model.startswith(_ENDPOINT) and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no effect: only model = openai:MODEL asks an endpoint; leave it out")
        return self


@RETRIEVALS.register(EmbeddingConfig)
class Embedding(Ranking):
    """Rank by the cosine of embeddings of first observations."""

    def __init__(self, config: EmbeddingConfig):
        if config.model.startswith(_ENDPOINT):
            self.price = config.price
            limits: dict[str, Any] = {"base_url": config.base_url, "timeout": config.timeout}
            limits |= {} if config.price is None else {"price_in": config.price, "price_out": 0.0}
            endpoint = Endpoint(**limits, attempts=config.attempts)
            source: Embeddings = EndpointEmbeddings(config.model.removeprefix(_ENDPOINT), endpoint)
        else:
            source = ModelEmbeddings(config.model)
        self.name, self._vectors = f"by {source.name}", Vectors(source, config.longest)
        self.vectors = self._vectors

    def over(self, texts: Mapping[str, str]) -> Search:
        names = [name for name, text in texts.items() if text.strip()]

        async def search(query: str, most: int) -> list[str]:
            if not (names and query.strip()):
                return []
            *stored, vector = await self._vectors.of([*(texts[name] for name in names), query])
            likeness = [-float(other @ vector) for other in stored]
            return [names[place] for place in sorted(range(len(names)), key=likeness.__getitem__)[:most]]

        return search
