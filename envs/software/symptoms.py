"""Symptoms of a fault: the error of a failing test in a few plain lines, without naming the fault."""

import re
from collections.abc import Collection, Mapping

_LINES, _LENGTH = 4, 320
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_TELLS = re.compile(r"==|\bwhere\b|Error: .|DID NOT RAISE")


def telling(messages: Mapping[str, str], tests: Collection[str]) -> tuple[str, str]:
    """Of tests that fail, the one whose error tells most in the fewest words, and what it said."""
    texts = {test: plain(messages.get(test, "")) for test in tests}
    best = min(sorted(texts), key=lambda test: (not texts[test], not _TELLS.search(texts[test]), len(texts[test])))
    return best, texts[best]


def plain(message: str) -> str:
    """A message without addresses in memory, blank lines and what is beyond the first lines."""
    lines = [line.rstrip() for line in _ADDRESS.sub("0x...", message).splitlines() if line.strip()]
    text = "\n".join(lines[:_LINES])
    return text if len(text) <= _LENGTH else text[:_LENGTH].rstrip() + " ..."
