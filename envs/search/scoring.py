"""Scoring of an answer against the right ones, as in SQuAD.

Small letters, without punctuation and articles. Source: Rajpurkar et al. 2016, arXiv 1606.05250.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalised(text: str) -> str:
    """Normalised form of a text for comparison.

    >>> normalised("  The  Silent Orchard. ")
    'silent orchard'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact(given: str, answers: Iterable[str]) -> bool:
    """True if an answer is one of the right ones."""
    return normalised(given) in map(normalised, answers)


def f1(given: str, answers: Iterable[str]) -> float:
    """Harmonic mean of precision and recall over words, in [0, 1], against the nearest of the right answers.

    >>> round(f1("in Beldale", ["Beldale"]), 3)
    0.667
    """
    return max((_f1(normalised(given).split(), normalised(answer).split()) for answer in answers), default=0.0)


def _f1(given: list[str], right: list[str]) -> float:
    if not given or not right:
        return float(given == right)
    both = (Counter(given) & Counter(right)).total()
    return 2 * both / (len(given) + len(right))
