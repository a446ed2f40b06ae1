"""A full-text index with the ranking of Lucene's BM25 similarity, in NumPy arrays."""

import math
from array import array
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from manyturn.envs.shop.analyzer import terms

_K1, _B, _ONE = np.float32(0.9), np.float32(0.4), np.float32(1)
_EXACT = 24  # lengths up to 40 are kept, longer ones with four significant bits


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
        texts: id -> text. Documents of equal score are ranked by id.
    """

    def __init__(self, texts: Mapping[str, str]):
        self.ids = sorted(texts)
        postings: dict[str, tuple[array, array]] = {}
        lengths = np.zeros(len(self.ids), np.int64)
        for number, name in enumerate(self.ids):
            found = terms(texts[name])
            lengths[number] = len(found)
            for term, count in Counter(found).items():
                numbers, counts = postings.setdefault(term, (array("i"), array("i")))
                numbers.append(number)
                counts.append(count)
        self._place = {term: place for place, term in enumerate(postings)}
        self._start = np.zeros(len(postings) + 1, np.int64)
        np.cumsum([len(numbers) for numbers, _ in postings.values()], out=self._start[1:])
        self._numbers = _joined([numbers for numbers, _ in postings.values()])
        counts = _joined([counts for _, counts in postings.values()])
        kept = np.array([kept_length(int(length)) for length in lengths], np.float32)
        mean = np.float32(lengths.sum() / max(np.count_nonzero(lengths), 1) or 1)
        inverse = _ONE / (_K1 * ((_ONE - _B) + _B * kept / mean))
        self._below = _ONE + counts.astype(np.float32) * inverse[self._numbers]
        frequencies = np.diff(self._start)
        total = np.count_nonzero(lengths)
        self._rarity = np.array([math.log(1 + (total - n + 0.5) / (n + 0.5)) for n in frequencies], np.float32)

    def search(self, query: str, limit: int) -> list[tuple[str, float]]:
        """The best documents that share a term with the query, best first: id and score."""
        scores = np.zeros(len(self.ids))
        for term, count in Counter(terms(query)).items():
            place = self._place.get(term)
            if place is not None:
                span = slice(self._start[place], self._start[place + 1])
                weight = np.float32(count) * self._rarity[place]
                scores[self._numbers[span]] += weight - weight / self._below[span]
        ranked = scores.astype(np.float32)
        found = np.flatnonzero(ranked)
        if len(found) > limit:
            found = found[ranked[found] >= np.partition(ranked[found], -limit)[-limit]]
        best = found[np.argsort(-ranked[found], kind="stable")][:limit]
        return [(self.ids[number], float(ranked[number])) for number in best]


def _joined(parts: list[array]) -> NDArray[np.int32]:
    return np.frombuffer(b"".join(part.tobytes() for part in parts), np.int32) if parts else np.zeros(0, np.int32)
