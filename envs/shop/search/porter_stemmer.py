"""Porter's stemmer: Porter, "An algorithm for suffix stripping", Program 14 (1980), pages 130-137.

With the two rules that its author added later: ``-bli`` becomes ``-ble`` and ``-logi`` becomes ``-log``. Letters
outside a to z count as consonants.
"""

# Within a step the first suffix that fits decides, whether or not its condition on the stem then holds.
_DOUBLE = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al")),
    *(("iviti", "ive"), ("biliti", "ble"), ("logi", "log")),
)
_SINGLE = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")),
)
_LAST = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism"),
    *("ate", "iti", "ous", "ive", "ize"),
)


def stem(word: str) -> str:
    """The stem of a word in small letters; words of one or two letters are their own stems."""
    if len(word) <= 2:
        return word
    word = _past(_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(_replaced(word, _DOUBLE), _SINGLE)
    return _without_e(_without_last(word))


def _shape(word: str) -> str:
    """``c`` for each consonant and ``v`` for each vowel; a y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Number of times that consonants follow vowels."""
    return _shape(word).count("vc")


def _closed(word: str) -> bool:
    """True if the word ends in consonant, vowel, consonant, the last one not w, x or y: hop, but not snow."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _plural(word: str) -> str:
    if word.endswith("sses") or word.endswith("ies"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and word[-2] != "s" else word


def _past(word: str) -> str:
    """Without -eed, -ed and -ing."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    root = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if "v" not in _shape(root):
        return word
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if _doubled(root):
        return root if root[-1] in "lsz" else root[:-1]
    return root + "e" if _measure(root) == 1 and _closed(root) else root


def _replaced(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for suffix, new in rules:
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            return root + new if _measure(root) > 0 else word
    return word


def _without_last(word: str) -> str:
    for suffix in _LAST:
        if word.endswith(suffix):
            root = word[: -len(suffix)] + suffix[: suffix.endswith("ion")]  # -ion goes, the s or t before it stays
            return root if _measure(root) > 1 else word
    return word


def _without_e(word: str) -> str:
    measure = _measure(word)
    if word.endswith("e") and (measure > 1 or (measure == 1 and not _closed(word[:-1]))):
        word = word[:-1]
    return word[:-1] if word.endswith("l") and _doubled(word) and measure > 1 else word
