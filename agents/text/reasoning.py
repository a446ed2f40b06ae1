"""Reasoning in a reply's text, split off in this one place for every format.

It is everything up to the last ``</think>``. Models without tags of their own, when asked to reason, also write
``<thinking>``, ``<reasoning>`` or ``<THINK>``, at times with attributes. A page or a program may hold these, so they
count only where a reply begins with one.
"""

import re
from typing import NamedTuple

OPEN, CLOSE = "<think>", "</think>"
TAGS = ("think", "thinking", "reasoning")
ATTRIBUTES = r"(?:\s[^<>]*)?(?<!/)"  # ``<think />`` opens nothing
LEADING = re.compile(rf"\s*<({'|'.join(TAGS)}){ATTRIBUTES}>", re.IGNORECASE)


class Split(NamedTuple):
    """A reply taken apart: its reasoning without tags, and the text from which alone an action is read."""

    reasoning: str
    text: str


def split_reasoning(reply: str, *, opened: bool = False) -> Split:
    """Take a reply apart.

    Reasoning that is not closed is all of the reply, since its end is unknown; so is any reply without a closing tag
    where the template has opened the reasoning in the prompt.

    Args:
        opened: the prompt ends inside of reasoning.

    >>> split_reasoning("<think>red?</think>open blue")
    Split(reasoning='red?', text='open blue')
    >>> split_reasoning("red?</think>open blue"), split_reasoning("<think>open red")
    (Split(reasoning='red?', text='open blue'), Split(reasoning='open red', text=''))
    >>> split_reasoning("open blue"), split_reasoning("open red", opened=True)
    (Split(reasoning='', text='open blue'), Split(reasoning='open red', text=''))
    >>> split_reasoning("<thinking>red?</thinking>open blue"), split_reasoning("open </thinking>")
    (Split(reasoning='red?', text='open blue'), Split(reasoning='', text='open </thinking>'))
    """
    if not opened and (tag := _leading(reply)):
        return _split_leading(reply, tag)
    before, closed, text = reply.rpartition(CLOSE)
    if not closed:
        return Split(_plain(reply), "") if opened or OPEN in reply else Split("", reply)
    if tag := _leading(text):
        after = _split_leading(text, tag)
        return Split(f"{_plain(before)}\n{after.reasoning}".strip(), after.text)
    text, *reopened = _opening("think").split(text)
    return Split(_plain("\n".join([before, *reopened])), text)


def without_reasoning(reply: str, *, opened: bool = False) -> str:
    """A reply as a history without reasoning shows it."""
    text = split_reasoning(reply, opened=opened).text
    return reply if text == reply else text.lstrip("\n")


def _leading(text: str) -> str | None:
    """Name of the tag of reasoning with which a text begins; None for ``<think>`` itself, which counts anywhere."""
    match = LEADING.match(text)
    return match[1] if match and match[0].lstrip() != OPEN else None


def _split_leading(text: str, tag: str) -> Split:
    """Split at the last closing tag.

    What follows may hold more reasoning, and is reasoning from a tag on that opens again. Without a closing tag all of
    the text is reasoning.
    """
    *parts, rest = re.split(rf"</{tag}\s*>", text, flags=re.IGNORECASE)
    opening = _opening(tag)
    if not parts:
        return Split(_plain(opening.sub("", rest)), "")
    rest, *reopened = opening.split(rest)
    after = split_reasoning(rest)
    reasoning = (_plain(opening.sub("", part)) for part in ("".join(parts), after.reasoning, "".join(reopened)))
    return Split("\n".join(filter(None, reasoning)), after.text)


def _opening(tag: str) -> re.Pattern[str]:
    return re.compile(rf"<{tag}{ATTRIBUTES}>", re.IGNORECASE)


def _plain(reasoning: str) -> str:
    return reasoning.replace(OPEN, "").replace(CLOSE, "").strip()
