"""Answers must count as SQuAD counts them, and passages rank as BM25 ranks them with these constants."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.search.corpus import K1, B, Corpus
from manyturn.envs.search.scoring import exact, f1, normalised
from manyturn.envs.shop.search.analyzer import terms

WORDS = st.lists(st.sampled_from("the a lamp Lamp, red 1843 an orchard. it's".split()), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("given_text", "answer", "is_exact", "f1_value"),
    [
        ("The Silent Orchard", "silent orchard.", True, 1.0),
        ("a  THE an", "", True, 1.0),
        ("Theo", "o", False, 0.0),  # no article inside a word
        ("in Beldale town", "Beldale", False, 0.5),
        ("red red lamp", "red lamp lamp", False, 2 / 3),
        ("", "Beldale", False, 0.0),
        ("1,843", "1843", True, 1.0),
    ],
)
def test_answers_are_compared_as_in_squad(given_text: str, answer: str, is_exact: bool, f1_value: float) -> None:
    assert exact(given_text, [answer]) is is_exact
    assert f1(given_text, [answer]) == pytest.approx(f1_value)
    assert f1(given_text, ["nothing like it", answer]) == pytest.approx(f1_value)


@given(WORDS, WORDS)
def test_f1_is_symmetric_and_1_for_what_is_exact(one: str, two: str) -> None:
    assert f1(one, [two]) == pytest.approx(f1(two, [one]))
    assert not exact(one, [two]) or f1(one, [two]) == 1.0
    assert normalised(normalised(one)) == normalised(one)


def plain_bm25(texts: dict[str, str], query: str) -> dict[str, float]:
    documents = {name: Counter(terms(text)) for name, text in texts.items()}
    mean = sum(map(Counter.total, documents.values())) / len(documents)
    scores = dict.fromkeys(texts, 0.0)
    for term in terms(query):
        having = sum(term in other for other in documents.values())
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for name, counts in documents.items():
            scores[name] += rarity * counts[term] / (counts[term] + K1 * (1 - B + B * counts.total() / mean))
    return scores


def test_passages_rank_by_bm25_with_k1_of_1_5() -> None:
    texts = {"a": "lamp lamp lamp lamp red", "b": "lamp red boots", "c": "boots " * 9 + "lamp", "d": "red tea " * 3}
    corpus = Corpus(texts)
    for query in ("lamp", "red lamp", "boots", "tea red red"):
        scores = plain_bm25(texts, query)
        found = corpus._index.search(query, 4)
        assert [name for name, _ in found] == [n for n in sorted(scores, key=lambda n: (-scores[n], n)) if scores[n]]
        for name, score in found:
            assert score == pytest.approx(scores[name], rel=1e-5)
