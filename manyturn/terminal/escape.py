"""Text of an environment or a model, made safe to print: what a terminal would obey is shown instead."""

import re
import unicodedata

from manyturn.envs.contract.credential_mask import masked

# Letters, marks and symbols that show nothing though their category says that they do: Hangul and Khmer fillers, the
# grapheme joiner, variation selectors (which can carry hidden text), Mongolian selectors and the blank Braille cell.
_BLANK = frozenset(map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")).union(
    (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
)
# Controls, formats (bidi, zero width, tags), lone surrogates, private use, unassigned, line and paragraph separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN = re.compile(r"[\n\t -~]*")


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""``text`` with every character that is unseen or does something written as ``<U+001B>``.

    Line feeds and tabs stay; secrets are masked. What ``encoding`` cannot write is shown in the same way, so that
    printing never fails.

    >>> visible("\x1b[31mred\u202e")
    '<U+001B>[31mred<U+202E>'
    >>> visible("clé à 漢字\n")
    'clé à 漢字\n'

    Args:
        encoding: what the terminal or file writes; an unknown one counts as ASCII.
    """
    text = masked(text)
    if _PLAIN.fullmatch(text):
        return text
    return "".join(char if _shows(char, encoding) else f"<U+{ord(char):04X}>" for char in text)


def _shows(char: str, encoding: str) -> bool:
    if char in "\n\t":
        return True
    if unicodedata.category(char) in _UNSEEN or ord(char) in _BLANK:
        return False
    try:
        char.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return char.isascii()
    return True
