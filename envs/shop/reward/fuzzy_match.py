"""Fuzzy equality of two short texts: the token-set ratio of the library thefuzz (0.22), number for number."""

import re
from collections.abc import Iterable
from functools import lru_cache

_LATIN_1 = {code: None for code in range(128, 256)}  # thefuzz drops these, and only these, to "force ASCII"
_NO_WORD = re.compile(r"\W")


def same(one: str, other: str) -> bool:
    """True if the ratio is above 85."""
    return any_same((one,), other)


def any_same(texts: Iterable[str], other: str) -> bool:
    """True if one of the texts has a ratio above 85."""
    theirs, other_letters, other_length = _words_of(other)
    for text in texts:
        ours, letters, length = _words_of(text)
        # A letter that only one of two texts has costs an edit: so most pairs are told apart without the ratio.
        far = (letters ^ other_letters).bit_count() > 0.15 * (length + other_length)
        if not (far and ours.isdisjoint(theirs)) and token_set_ratio(text, other) > 85:
            return True
    return False


@lru_cache(maxsize=8192)
def token_set_ratio(one: str, other: str) -> int:
    """Similarity of two texts as sets of words, 0 to 100; 100 if one's words are all among the other's.

    >>> token_set_ratio("x-large", "Large"), token_set_ratio("wine red", "wine rod"), token_set_ratio("", "")
    (100, 88, 0)
    """
    ours, theirs = _words_of(one)[0], _words_of(other)[0]
    if not ours or not theirs:
        return 0
    common = " ".join(ours & theirs)
    left, right = " ".join(sorted(ours - theirs)), " ".join(sorted(theirs - ours))
    if common and not (left and right):
        return 100
    shared, gap = len(common), 1 if common else 0
    distance = len(left) + len(right) - 2 * _longest_common_subsequence(left, right)
    ratios = [_ratio(distance, 2 * (shared + gap) + len(left) + len(right))]
    if common:
        ratios += [_ratio(gap + len(rest), 2 * shared + gap + len(rest)) for rest in (left, right)]
    return round(max(ratios))


def _ratio(distance: int, length: int) -> float:
    return 100 - 100 * distance / length


@lru_cache(maxsize=8192)
def _words_of(text: str) -> tuple[frozenset[str], int, int]:
    """A text's different words; their letters, a bit for each (128 letters share one), and length with spaces."""
    words = frozenset(_NO_WORD.sub(" ", text.translate(_LATIN_1)).lower().split())
    joined, letters = " ".join(words), 0
    for letter in set(joined):
        letters |= 1 << (ord(letter) & 127)
    return words, letters, len(joined)


def _longest_common_subsequence(one: str, other: str) -> int:
    """Its length, by Hyyrö's bit-parallel rows: one integer of len(one) bits for each letter of the other text."""
    places: dict[str, int] = {}
    for spot, letter in enumerate(one):
        places[letter] = places.get(letter, 0) | 1 << spot
    everywhere = (1 << len(one)) - 1
    row = everywhere
    for letter in other:
        met = row & places.get(letter, 0)
        row = (row + met | row - met) & everywhere
    return len(one) - row.bit_count()
