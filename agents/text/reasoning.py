"""Reasoning in a reply's text: everything up to the last ``</think>``, split off in this one place for every format."""

from typing import NamedTuple

OPEN, CLOSE = "<think>", "</think>"


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
    """
    before, closed, text = reply.rpartition(CLOSE)
    if not closed:
        return Split(_plain(reply), "") if opened or OPEN in reply else Split("", reply)
    text, reopened, rest = text.partition(OPEN)
    return Split(_plain(f"{before}\n{rest}" if reopened else before), text)


def without_reasoning(reply: str, *, opened: bool = False) -> str:
    """A reply as a history without reasoning shows it."""
    text = split_reasoning(reply, opened=opened).text
    return reply if text == reply else text.lstrip("\n")


def _plain(reasoning: str) -> str:
    return reasoning.replace(OPEN, "").replace(CLOSE, "").strip()
