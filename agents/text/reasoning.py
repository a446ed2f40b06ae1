"""Reasoning in a reply's text, split off in this one place for every format.

It is everything up to the last ``</think>``. Models without tags of their own, when asked to reason, also write those
of ``LEADING``. A page or a program may hold these, so they count only where a reply begins with one.
"""

from typing import NamedTuple

OPEN, CLOSE = "<think>", "</think>"
LEADING = ("thinking", "reasoning")  # tags of reasoning only at a reply's beginning
TAGS = ("think", *LEADING)


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
    text, reopened, rest = text.partition(OPEN)
    return Split(_plain(f"{before}\n{rest}" if reopened else before), text)


def without_reasoning(reply: str, *, opened: bool = False) -> str:
    """A reply as a history without reasoning shows it."""
    text = split_reasoning(reply, opened=opened).text
    return reply if text == reply else text.lstrip("\n")


def _leading(text: str) -> str | None:
    """Tag of ``LEADING`` with which a text begins."""
    return next((tag for tag in LEADING if text.lstrip().startswith(f"<{tag}>")), None)


def _split_leading(text: str, tag: str) -> Split:
    """Split at the last closing tag; without one all of it is reasoning, and what follows may hold more."""
    before, closed, rest = text.rpartition(f"</{tag}>")
    after = split_reasoning(rest) if closed else Split("", "")
    reasoning = _plain((before if closed else text).replace(f"<{tag}>", "").replace(f"</{tag}>", ""))
    return Split(f"{reasoning}\n{after.reasoning}".strip(), after.text)


def _plain(reasoning: str) -> str:
    return reasoning.replace(OPEN, "").replace(CLOSE, "").strip()
