"""The actions of UserRL's gyms: a choice in brackets, and its content."""

import re
from typing import NamedTuple

FINISH = "finish"
LONGEST = 4000  # characters of an action
_BLANK = " \t\r\n"
_ACTION = re.compile(rf"[{_BLANK}]*\[(action|answer|search|finish)\](.*)", re.DOTALL)


class Action(NamedTuple):
    """An action of the agent; a choice of ``""`` means that it wrote no action."""

    choice: str
    content: str


def read(action: str) -> Action:
    """The action that a text is; one that is too long is none.

    >>> read("[answer] a kiwi"), read("a kiwi")
    (Action(choice='answer', content='a kiwi'), Action(choice='', content=''))
    """
    match = _ACTION.match(action) if len(action) <= LONGEST else None
    return Action(match[1], match[2].strip(_BLANK)) if match else Action("", "")
