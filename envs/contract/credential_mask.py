"""Secrets masked in what is written and printed, wherever they come from: a server may say a request's headers back."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

MASK = "***"
_OF_A_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)S?$")  # ends of names of variables
_PART, _ANCHOR = 8, 4  # characters of a key that are enough to be masked, and those that are looked for first
_SHORTEST_KEY = 16  # a shorter secret, and one without figures, is only masked in full: its parts may be words
_SHORTEST = 6  # what is shorter is masked nowhere: it may be a word, and hiding it would garble texts
_typed = set[str]()


def add_secrets(secrets: Iterable[str]) -> None:
    """Mask values in this process from now on, besides those of variables such as OPENAI_API_KEY."""
    _typed.update(secret for secret in secrets if len(secret) >= _SHORTEST)


def masked(text: str) -> str:
    """A text without secrets, and without parts of keys of eight characters or more.

    >>> add_secrets(["sk-0a1b2c3d4e5f6g7h"])
    >>> masked("the key sk-0a1b2c3d4e5f6g7h, or 1b2c3d4e5f...")
    'the key ***, or ***...'
    """
    secrets = _secrets()
    return _masker(secrets)(text) if secrets else text


def masked_value(value: Any) -> Any:
    """Plain values with their texts masked; names of tables stay."""
    secrets = _secrets()  # once: a table has ten thousands of texts
    return _with_texts(value, _masker(secrets)) if secrets else value


def _with_texts(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {name: _with_texts(item, mask) for name, item in value.items()}
    return [_with_texts(item, mask) for item in value] if isinstance(value, list | tuple) else value


def _secrets() -> frozenset[str]:
    """Values that are secret here now; a variable that holds a place or an address is none."""
    variables = (value.strip() for name, value in os.environ.items() if _OF_A_SECRET.search(name.upper()))
    return frozenset(
        {value for value in variables if len(value) >= _SHORTEST_KEY and "://" not in value and value[0] not in "/~."}
        | _typed
    )


@lru_cache(maxsize=4)
def _masker(secrets: frozenset[str]) -> "_Masker":
    return _Masker(secrets)


class _Masker:
    """Masks some secrets."""

    def __init__(self, secrets: frozenset[str]):
        forms = secrets | {json.dumps(secret)[1:-1] for secret in secrets}
        self._full = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
        words = [word for secret in secrets for word in secret.split()]
        self._keys = [word for word in words if len(word) >= _SHORTEST_KEY and re.search("[0-9]", word)]

    def __call__(self, text: str) -> str:
        text = self._full.sub(MASK, text)
        spans = sorted({span for key in self._keys for span in _parts(text, key)}, reverse=True)
        for start, end in spans:
            text = f"{text[:start]}{MASK}{text[end:]}"
        return text


def _parts(text: str, key: str) -> Iterator[tuple[int, int]]:
    """Places of a text where a part of a key stands, as start and end."""
    # A part that is long enough holds one of these anchors in full, and the search for them is one of C.
    for offset in range(0, len(key) - _ANCHOR + 1, _ANCHOR):
        anchor, place = key[offset : offset + _ANCHOR], -1
        while (place := text.find(anchor, place + 1)) >= 0:
            start, end, left, right = place, place + _ANCHOR, offset, offset + _ANCHOR
            while start and left and text[start - 1] == key[left - 1]:
                start, left = start - 1, left - 1
            while end < len(text) and right < len(key) and text[end] == key[right]:
                end, right = end + 1, right + 1
            # Not what is all figures or repeats itself: it stands in many texts by chance.
            part = text[start:end]
            if len(part) >= _PART and len(set(part)) > _ANCHOR and not part.isdecimal():
                yield start, end
