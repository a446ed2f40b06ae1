"""Retrieval by words: BM25 over the words of first observations; nothing is asked, and nothing costs.

Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond", with k1 = 1.5, b = 0.75.
"""

from collections.abc import Mapping
from typing import Any, Literal

from manyturn.agents.experience.retrieval.ranking import RETRIEVALS, Ranking, RetrievalConfig, Search
from manyturn.envs.shop.search.bm25_index import Index

K1, B = 1.5, 0.75


class Bm25Config(RetrievalConfig):
    name: Literal["bm25"] = "bm25"

    @property
    def facts(self) -> dict[str, Any]:
        return {}


@RETRIEVALS.register(Bm25Config)
class Bm25(Ranking):
    """Rank by BM25 over the words of first observations."""

    def __init__(self, config: Bm25Config):
        self.config = config

    def over(self, texts: Mapping[str, str]) -> Search:
        index = Index(texts, k1=K1, b=B)

        async def search(query: str, most: int) -> list[str]:
            return [name for name, _ in index.search(query, most)]

        return search
