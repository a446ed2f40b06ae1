"""ALFWorld's sentences, word for word, quirks included.

From the text grammar of its games (alfworld/alfworld, MIT), written for TextWorld (microsoft/TextWorld, MIT).
"""

from collections.abc import Iterable
from dataclasses import dataclass

NOTHING = "Nothing happens."
WELCOME = "-= Welcome to TextWorld, ALFRED! =-\n\n{look}\n\nYour task is to: {goal}"
_HELP = """\
Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  {put}  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""


@dataclass(frozen=True, slots=True)
class Grammar:
    """Grammar of a release of ALFWorld's game files.

    Args:
        put: command for putting, with ``{o}`` and ``{r}``.
        putting: the answer to it.
        by_location: whether an arrival names the location (``loc 7``) instead of the receptacle.
        help: the answer to ``help``, or None where that command does not exist.
    """

    put: str
    putting: str
    by_location: bool
    help: str | None


GRAMMARS = {
    "move": Grammar(
        "move {o} to {r}", "You move the {o} to the {r}.", False, _HELP.format(put="move (object) to (receptacle):")
    ),
    "put": Grammar(
        "put {o} in/on {r}",
        "You put the {o} in/on the {r}.",
        True,
        _HELP.format(put="put (object) in/on (receptacle):"),
    ),
}


def listing(names: Iterable[str]) -> str:
    """``a mug 2, a mug 1, and a cup 1``; two things also have the comma, none is ``nothing``."""
    items = ["a " + name for name in names]
    if len(items) < 2:
        return items[0] if items else "nothing"
    return ", ".join(items[:-1]) + ", and " + items[-1]


def bare_listing(names: Iterable[str]) -> str:
    """The same without articles."""
    items = list(names)
    if len(items) < 2:
        return items[0] if items else "nothing"
    return ", ".join(items[:-1]) + ", and " + items[-1]


def describe(name: str, clean: bool, hot: bool, cool: bool, sliced: bool, toggled: bool) -> str:
    """Text for examining a held object."""
    # The grammar says "cool" among several states and "cold" alone.
    states = [word for word, holds in (("hot", hot), ("cool", cool and not hot), ("clean", clean)) if holds]
    if states and sliced:
        return f"This is a {' and '.join(states)} sliced {name}."
    if states == ["cool"]:
        return f"This is a cold {name}."
    if states:
        return f"This is a {' and '.join(states)} {name}."
    if toggled:
        return f"This {name} is on."
    if sliced:
        return f"This is a sliced {name}."
    return f"There's nothing special about {name}."
