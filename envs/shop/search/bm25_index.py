"""A full-text index with the ranking of Lucene's BM25 similarity, in NumPy arrays, in memory or on disk."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyturn.envs.shop.search import posting_lists
from manyturn.envs.shop.search.analyzer import terms
from manyturn.envs.shop.search.json_lines import SortedTexts, load_array, write_lines
from manyturn.envs.shop.search.posting_lists import Postings, PostingsBuilder

_ONE = np.float32(1)
_EXACT = 24  # lengths up to 40 are kept, longer ones with four significant bits
_BLOCK = 4_000_000  # postings that are weighed at a time


def kept_length(length: int) -> int:
    """The document length that Lucene's norm of one byte keeps.

    >>> [kept_length(n) for n in (40, 41, 42, 100)]
    [40, 40, 42, 96]
    """
    above = length - _EXACT
    drop = max(above.bit_length() - 4, 0)
    return length if above < 0 else _EXACT + (above >> drop << drop)


class Index:
    """Texts by the words in them.

    A document's score is the sum over the query's terms of ``w - w / (1 + f / (k1 (1 - b + b L / mean L)))``, with
    ``w`` the term's inverse document frequency times its count in the query, ``f`` its count in the document and ``L``
    the document's kept length. Terms are computed in single precision and summed in double precision, as Lucene does,
    so that ties fall alike.

    Args:
        texts: id -> text, or such pairs; a document's number is its place among them. Documents of equal score are
            ranked by id.
        folder: to be made, for the index; default: memory.
        k1, b: of BM25; the defaults are WebShop's.
    """

    def __init__(
        self,
        texts: Mapping[str, str] | Iterable[tuple[str, str]],
        folder: Path | None = None,
        k1: float = 0.9,
        b: float = 0.4,
    ):
        gatherer, names, lengths = PostingsBuilder(folder), [], array("q")
        for number, (name, text) in enumerate(texts.items() if isinstance(texts, Mapping) else texts):
            query_terms = terms(text)
            names.append(name)
            lengths.append(len(query_terms))
            gatherer.add(number, Counter(query_terms))
        self._postings = gatherer.finish()
        self._rarity = _weigh(self._postings, np.array(lengths, np.int64), np.float32(k1), np.float32(b))
        order = sorted(range(len(names)), key=names.__getitem__)
        self._order = np.array(order, np.int32)
        self._rank = np.empty_like(self._order)
        self._rank[self._order] = np.arange(len(order), dtype=np.int32)
        self.ids: Sequence[str] = [names[number] for number in order]
        self._places: Mapping[str, int] | SortedTexts = {name: place for place, name in enumerate(self.ids)}
        if folder:
            for what, array_ in (("rarity", self._rarity), ("order", self._order), ("rank", self._rank)):
                np.save(folder / f"{what}.npy", array_)
            write_lines(folder / "ids", self.ids)

    @classmethod
    def opened(cls, folder: Path) -> "Index":
        """The index that lies in a folder, mapped."""
        index = cls.__new__(cls)
        index._postings = posting_lists.opened(folder)
        index._rarity, index._order, index._rank = (load_array(folder / name) for name in ("rarity", "order", "rank"))
        index._places = SortedTexts(folder / "ids")
        index.ids = index._places.texts
        return index

    def number(self, name: str) -> int | None:
        """The number of the document with an id, or None."""
        place = self._places.get(name)
        return None if place is None else int(self._order[place])

    def search(self, query: str, limit: int) -> list[tuple[str, float]]:
        """The best documents that share a term with the query, best first: id and score."""
        numbers, scores = self.ranked(query, limit)
        return [(self.ids[int(self._rank[n])], float(score)) for n, score in zip(numbers, scores, strict=True)]

    def ranked(self, query: str, limit: int) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
        """Numbers and scores of the best documents that share a term with the query, best first."""
        scores = np.zeros(len(self.ids))
        for term, count in Counter(terms(query)).items():
            place = self._postings.places.get(term)
            if place is not None:
                span = self._postings.span(place)
                weight = np.float32(count) * self._rarity[place]
                scores[self._postings.numbers[span]] += weight - weight / self._postings.weights[span]
        ranked = scores.astype(np.float32)
        hits = np.flatnonzero(ranked)
        if len(hits) > limit:
            hits = hits[ranked[hits] >= np.partition(ranked[hits], -limit)[-limit]]
        best = hits[np.lexsort((self._rank[hits], -ranked[hits]))][:limit]
        return best, ranked[best]


def _weigh(postings: Postings, lengths: NDArray[np.int64], k1: np.float32, b: np.float32) -> NDArray[np.float32]:
    """Turn the weights of postings, which are counts, into ``1 + f / norm``, and return each term's rarity.

    Args:
        postings: of the terms.
        lengths: [documents] in terms.
        k1, b: of BM25.
    """
    stored = np.array([kept_length(int(length)) for length in lengths], np.float32)
    total = np.count_nonzero(lengths)
    mean = np.float32(lengths.sum() / max(total, 1) or 1)
    inverse = _ONE / (k1 * ((_ONE - b) + b * stored / mean))
    for start in range(0, len(postings.weights), _BLOCK):
        block = slice(start, start + _BLOCK)
        postings.weights[block] = _ONE + postings.weights[block] * inverse[postings.numbers[block]]
    frequencies = np.diff(postings.starts)
    return np.array([math.log(1 + (total - n + 0.5) / (n + 0.5)) for n in frequencies], np.float32)
