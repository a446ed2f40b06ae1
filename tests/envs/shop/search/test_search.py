"""A search must rank as Lucene does, whatever is searched for."""

import math
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.shop.catalogue.catalogue import FOUND, Catalogue
from manyturn.envs.shop.search.analyzer import terms, words
from manyturn.envs.shop.search.bm25_index import Index, kept_length
from manyturn.envs.shop.search.porter_stemmer import stem
from manyturn.envs.shop.webshop.official_shop import load

VOCABULARY = "lamp lamps red soft boots rainy rain table easily the 7.5 men's x-large ★"
WORDS = st.sampled_from(VOCABULARY.split())
TEXTS = st.lists(st.lists(WORDS, max_size=40).map(" ".join), min_size=1, max_size=12)
HOSTILE = ("_" * 100_000, "a'" * 50_000, "9," * 50_000, "e\u0301" * 50_000, "漢" * 50_000, "y" * 100_000, "🇩" * 50_000)

# Examples of Porter's paper, of his two later rules, and of words that stems leave hardly anything of.
STEMS = """
caresses:caress ponies:poni cats:cat feed:feed agreed:agre plastered:plaster bled:bled motoring:motor sing:sing
conflated:conflat sized:size hopping:hop falling:fall hissing:hiss failing:fail filing:file happy:happi sky:sky
relational:relat conditional:condit rational:ration valenci:valenc digitizer:digit radicalli:radic vileli:vile
analogousli:analog operator:oper feudalism:feudal sensibiliti:sensibl triplicate:triplic formative:form
electrical:electr hopeful:hope revival:reviv allowance:allow adjustment:adjust adoption:adopt homologou:homolog
effective:effect bowdlerize:bowdler probate:probat rate:rate cease:ceas controll:control roll:roll possibly:possibl
analogies:analog analogy:analog by:by is:is toy:toi yes:ye ion:ion aed:a eing:e 7.5:7.5 ★★★:★★★"""


def test_rankings_equal_lucenes(recorded, golden) -> None:
    catalogue = load(recorded, "synthetic").catalogue
    for case in golden("webshop_lucene_search")["queries"]:
        found = catalogue.index.search(case["query"], FOUND)
        assert [name for name, _ in found] == [name for name, _ in case["hits"]], case["query"]
        for (_, ours), (_, theirs) in zip(found, case["hits"], strict=True):
            assert ours == pytest.approx(theirs, abs=5.1e-5)  # recorded with four decimals


def test_terms_equal_lucenes(recorded, golden) -> None:
    catalogue = load(recorded, "synthetic").catalogue
    texts = {product.id: product.document() for product in catalogue.products}
    tokens = golden("webshop_lucene_search")["tokens"]
    assert tokens.keys() & texts.keys()
    for name, expected in ((name, tokens[name]) for name in tokens.keys() & texts.keys()):
        assert terms(texts[name]) == expected


def plain_bm25(texts: dict[str, str], query: str) -> dict[str, float]:
    """The formula in double precision, document by document."""
    documents = {name: Counter(terms(text)) for name, text in texts.items()}
    lengths = {name: sum(counts.values()) for name, counts in documents.items()}
    full = [length for length in lengths.values() if length]
    scores = {}
    for name, counts in documents.items():
        for term, weight in Counter(terms(query)).items():
            having = sum(term in other for other in documents.values())
            if counts[term]:
                rarity = math.log(1 + (len(full) - having + 0.5) / (having + 0.5))
                norm = 0.9 * (0.6 + 0.4 * kept_length(lengths[name]) / (sum(full) / len(full)))
                scores[name] = scores.get(name, 0.0) + weight * rarity * counts[term] / (counts[term] + norm)
    return scores


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.lists(WORDS, max_size=6).map(" ".join), st.integers(1, 12))
def test_scores_are_those_of_the_formula_and_a_limit_only_cuts(texts: list[str], query: str, limit: int) -> None:
    named = {f"D{number:02}": text for number, text in enumerate(texts)}
    index, expected = Index(named), plain_bm25(named, query)
    found = index.search(query, 50)
    assert {name for name, _ in found} == set(expected)
    for name, score in found:
        assert score == pytest.approx(expected[name], rel=1e-5)
    assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))
    assert index.search(query, limit) == found[:limit]


@given(st.integers(0, 100_000))
def test_a_kept_length_loses_less_than_an_eighth(length: int) -> None:
    kept = kept_length(length)
    assert kept <= length < kept * 9 / 8 + 1 and kept_length(kept) == kept and (length > 40 or kept == length)


def test_stems_are_porters() -> None:
    pairs = [pair.split(":") for pair in STEMS.split()]
    assert [(word, stem(word)) for word, _ in pairs] == [(word, expected) for word, expected in pairs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7.5 wide, 1,000.50 a.b", ["7.5", "wide", "1,000.50", "a.b"]),
        ("don't men's it’s", ["don't", "men's", "it’s"]),
        ("52\"w x 84'l 3.x x.3", ["52", "w", "x", "84", "l", "3", "x", "x", "3"]),
        ("snake_case __ _a_ a:b a;b", ["snake_case", "_a_", "a:b", "a", "b"]),
        ("Café™ e\u0301te\u0301 ½ m²", ["Café", "™", "e\u0301te\u0301", "m"]),
        ("漢字 かな カタカナ 한국어 ไทย", ["漢", "字", "か", "な", "カタカナ", "한국어", "ไทย"]),
        ("★👍🏽🇩🇪🇫", ["★", "👍🏽", "🇩🇪"]),
    ],
)
def test_words_are_unicodes(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(max_size=300))
def test_words_stand_in_the_text_in_order(text: str) -> None:
    spot = 0
    for word in words(text):
        spot = text.index(word, spot) + len(word)


@pytest.mark.parametrize("query", HOSTILE, ids=lambda text: f"{text[:2]!r}")
def test_a_long_query_takes_no_longer_than_its_length(query: str, small) -> None:
    catalogue = load(small, "synthetic").catalogue
    start = time.process_time()
    catalogue.search(query)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("query", "count"),
    [("<r>", 24), ("<a> soft", 12), ("<c> home", 24), ("<q> herbal tea", 6), ("<c>", 0), ("<q> no", 0)],
)
def test_browsing_finds_all_that_are_so(query: str, count: int, small) -> None:
    catalogue = load(small, "synthetic").catalogue
    found = catalogue.search(query)
    assert len({product.id for product in found}) == len(found) == count
    tests = {"<a>": lambda product: "soft" in product.attributes, "<q>": lambda product: product.kind == "herbal tea"}
    assert all(tests.get(query[:3], bool)(product) for product in found)
    assert tuple(Catalogue(catalogue.products).search(query)) == tuple(found)
    assert (tuple(found) == catalogue.products) == (query == "<c> home")  # by lot comes in another order
