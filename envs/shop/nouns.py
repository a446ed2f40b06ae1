"""The nouns of a product's title, by which the reward tells types of products.

WebShop asks spaCy's model ``en_core_web_sm`` for them. ``spacy_nouns`` does so too. ``plain_nouns`` needs no model:
in titles nearly every word is tagged as a noun, so it takes every word that is no function word.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache

Nouns = Callable[[str], tuple[str, ...]]

_FUNCTION_WORDS = """
a about above after all an and any are as at be before below best between big both but by can compatible each easily
every extra for from fully how if in into is it its more most new no not of off officially on only open or other our
out over per required so such than that the their them these this those through to under up use very we what when which
while will with without you your"""
_LEFT_OUT = frozenset(_FUNCTION_WORDS.split())
_WORD = re.compile(r"[^\W\d_]{2,}")


@lru_cache(maxsize=8192)
def plain_nouns(title: str) -> tuple[str, ...]:
    """Words of two letters and more that are no function words, in small letters, repeats kept.

    >>> plain_nouns("Men's Slim-Fit Shirt with 2 Pockets")
    ('men', 'slim', 'fit', 'shirt', 'pockets')
    """
    return tuple(word for word in _WORD.findall(title.lower()) if word not in _LEFT_OUT)


@cache
def spacy_nouns() -> Nouns:
    """The original's nouns, remembered for each title. Raises ValueError where spaCy or its model is not installed."""
    try:
        import spacy  # type: ignore[import-not-found]

        model = spacy.load("en_core_web_sm", exclude=["parser", "ner", "lemmatizer"])
    except (ImportError, OSError) as error:
        raise ValueError(
            f'reward "spacy" needs spaCy and its model ({error}): install spacy, run '
            '"python -m spacy download en_core_web_sm", or take reward "official"'
        ) from None

    @lru_cache(maxsize=8192)
    def nouns(title: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in model(title) if token.pos_ in ("NOUN", "PROPN"))

    return nouns
