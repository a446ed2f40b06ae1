"""Text to search terms, as Lucene's English analysis makes them.

Words by Unicode's rules (Standard Annex 29), possessive 's off, small letters, stop words out, Porter stems. A
pictograph is a word. Left out: quotation marks inside Hebrew words, keycaps, and pictographs glued by a zero-width
joiner, which are one word in Lucene and several here.
"""

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache

from manyturn.envs.shop.search.porter_stemmer import stem

_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was
will with"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_MARKS = {"'": "'.‘’․﹒＇．", ":": ":·\u0387՟״‧︓﹕：", ",": ",;\u037e։؍٬߸⁄︐︔﹐﹔，；", "_": "_‿⁀⁔︳︴﹍﹎﹏＿\u202f"}
_SCRIPTS = (
    *(("HIRAGANA", "h"), ("KATAKANA", "k"), ("HALFWIDTH KATAKANA", "k"), ("CJK", "c"), ("IDEOGRAPHIC", "c")),
    *(("THAI", "s"), ("LAO", "s"), ("MYANMAR", "s"), ("KHMER", "s"), ("TAI ", "s"), ("NEW TAI", "s")),
)
# Unicode's property Extended_Pictographic, version 14: hexadecimal first-last.
_PICTOGRAPHS = """
a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 2388 23cf 23e9-23f3 23f8-23fa 24c2 25aa-25ab 25b6 25c0
25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271d 2721 2728 2733-2734 2744 2747 274c 274e
2753-2755 2757 2763-2767 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299
1f000-1f0ff 1f10d-1f10f 1f12f 1f16c-1f171 1f17e-1f17f 1f18e 1f191-1f19a 1f1ad-1f1e5 1f201-1f20f 1f21a 1f22f
1f232-1f23a 1f23c-1f23f 1f249-1f3fa 1f400-1f53d 1f546-1f64f 1f680-1f6ff 1f774-1f77f 1f7d5-1f7ff 1f80c-1f80f
1f848-1f84f 1f85a-1f85f 1f888-1f88f 1f8ae-1f8ff 1f90c-1f93a 1f93c-1f945 1f947-1faff 1fc00-1fffd"""
_RANGES = [(int(span.split("-")[0], 16), int(span.split("-")[-1], 16)) for span in _PICTOGRAPHS.split()]
_FIRST = [first for first, _ in _RANGES]
# Lucene, too, cuts words after 255 letters.
_WORD = re.compile(r"(?:[a9_]|(?<=a)[':](?=a)|(?<=9)[',](?=9)){1,255}|k{1,255}|s{1,255}|rr|[che]")
_REMEMBERED = 4096  # characters


def _kind(char: str) -> str:
    """One letter for what Annex 29 calls the character's word-break property; a space for what stands in no word."""
    for kind, marks in _MARKS.items():
        if char in marks:
            return kind
    code, category = ord(char), unicodedata.category(char)
    if 0x1F3FB <= code <= 0x1F3FF or category in ("Mn", "Me", "Mc") or (category == "Cf" and code != 0x200B):
        return "x"  # goes with what stands before it; so do skin tones
    if category == "Nd":
        return "9"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "r"  # half a flag
    spot = bisect_right(_FIRST, code) - 1
    if spot >= 0 and code <= _RANGES[spot][1]:
        return "e"
    if category[0] != "L" and category != "Nl":
        return " "
    name = unicodedata.name(char, "")
    return next((kind for script, kind in _SCRIPTS if name.startswith(script)), "a")


class _Kinds(dict[int, str]):
    """Table for ``str.translate``, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        kind = _kind(chr(code))
        if len(self) < _REMEMBERED:
            self[code] = kind
        return kind


_KINDS = _Kinds()


def words(text: str) -> list[str]:
    """The words of a text, in order, as they stand there."""
    kinds = text.translate(_KINDS)
    spots: list[int] | range = range(len(kinds) + 1)
    if "x" in kinds:
        spots = [spot for spot, kind in enumerate(kinds) if kind != "x"] + [len(kinds)]
        kinds = kinds.replace("x", "")
    spans = [match.span() for match in _WORD.finditer(kinds)]
    if "_" in kinds:
        spans = [(start, end) for start, end in spans if kinds[start:end].strip("_")]
    return [text[spots[start] : spots[end]] for start, end in spans]


def terms(text: str) -> list[str]:
    """The search terms of a text, in order, repeats kept.

    >>> terms("The men's 7.5 wide running-shoes")
    ['men', '7.5', 'wide', 'run', 'shoe']
    """
    return [term for term in map(_term, words(text)) if term]


@lru_cache(maxsize=8192)
def _term(word: str) -> str:
    """Index term of a word; empty for a stop word."""
    if word[-1] in "sS" and word[-2:-1] in ("'", "’", "＇"):
        word = word[:-2]
    word = word.lower()
    return "" if word in STOP_WORDS else stem(word)
