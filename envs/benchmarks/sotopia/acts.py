"""What a character can do in a turn, and how it is written."""

import re
from typing import NamedTuple

NONE, SPEAK, GESTURE, ACTION, LEAVE = "none", "speak", "non-verbal communication", "action", "leave"
LONGEST = 2000  # characters of an act that anybody notices

_ACT = re.compile(r"(speak|non-verbal(?: communication)?|action)\s*:\s*(.*)", re.DOTALL | re.IGNORECASE)
_BARE = re.compile(r"(none|leave)\b\W*", re.IGNORECASE)

HOW = (
    "speak: WORDS to say something; non-verbal: GESTURE for a look or a gesture; action: DEED to do something; none to "
    "do nothing; or leave to end the encounter"
)


class Act(NamedTuple):
    """One thing that a character does."""

    kind: str
    content: str = ""

    def told(self, who: str) -> str:
        """The act as everybody sees it.

        >>> Act("speak", "Hello!").told("Ada Stone")
        'Ada Stone said: "Hello!"'
        """
        match self.kind:
            case "none":
                return f"{who} did nothing"
            case "leave":
                return f"{who} left"
            case "speak":
                return f'{who} said: "{self.content}"'
        return f"{who} [{self.kind}] {self.content}"


def read(text: str) -> Act:
    """The act that a text is. What names no kind is speech; an empty text does nothing.

    >>> read("Action: opens the door"), read("Hello!"), read("leave")
    (Act(kind='action', content='opens the door'), Act(kind='speak', content='Hello!'), Act(kind='leave', content=''))
    """
    text = " ".join(text[:LONGEST].split())
    if found := _BARE.fullmatch(text):
        return Act(found[1].lower())
    if found := _ACT.fullmatch(text):
        kind = {"s": SPEAK, "n": GESTURE, "a": ACTION}[found[1][0].lower()]
        return Act(kind, found[2]) if found[2] else Act(NONE)
    return Act(SPEAK, text) if text else Act(NONE)
