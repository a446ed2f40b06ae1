"""Reading a page screen by screen and acting on it by number."""

import re
from typing import NamedTuple

from manyturn.envs.web.browser import BrowserError
from manyturn.envs.web.snapshot import FIELDS, Control, PageSnapshot, SnapshotError, read
from manyturn.envs.web.tab import Tab

INSTRUCTIONS = """\
Each element that you can use has a number in brackets. Each turn, answer with exactly one command.

Commands:
  click[N]          click element N
  type[N] WORDS     replace the text of field N
  select[N] TEXT    choose an option of list N, by its text
  scroll[down]      show the next part of a long page; scroll[up] shows the previous part
  back              go back to the previous page\
"""
LONGEST = 2_000  # characters that can be typed
_ACTION = re.compile(
    r"(click)\[([0-9]{1,6})\]|(type|select)\[([0-9]{1,6})\](?: (.*))?|(scroll)\[(down|up)\]|(back)", re.DOTALL
)


class Action(NamedTuple):
    """Command of an agent: ``verb`` is click, type, select, scroll or back; ``text`` the input or the direction."""

    verb: str
    number: int = 0
    text: str = ""


def parse(action: str) -> Action | None:
    """An action in the words of ``INSTRUCTIONS``, or None."""
    if len(action) > 2 * LONGEST:
        return None
    match = _ACTION.fullmatch(action.strip())
    if match is None:
        return None
    verb, *rest = (part for part in match.groups() if part is not None)
    return Action(verb, 0, *rest) if verb in ("scroll", "back") else Action(verb, int(rest[0]), *rest[1:])


def clean(text: str) -> str:
    """A text as a page can hold it: without halves of characters."""
    return text.encode("utf-8", "replace").decode()


class PageReader:
    """One reader of one tab.

    Attributes:
        snapshot: the page.
        screen: number of the part that is shown, from 0.
    """

    def __init__(self, tab: Tab):
        self._tab = tab
        self.snapshot = PageSnapshot(("",), ())
        self.screen = 0

    @property
    def text(self) -> str:
        """Visible content."""
        shown, count = self.snapshot.screens[self.screen], len(self.snapshot.screens)
        return shown if count == 1 else f"{shown}\n(part {self.screen + 1} of {count})"

    def look(self, screen: int = 0) -> None:
        """See the page as it is now. Raises BrowserError."""
        try:
            self.snapshot = read(self._tab.snapshot())
        except SnapshotError as error:
            raise BrowserError(f"the page cannot be read: {error}") from error
        self.screen = min(screen, len(self.snapshot.screens) - 1)

    def shown(self) -> dict[int, Control]:
        """The controls that are shown: number -> control."""
        controls = enumerate(self.snapshot.controls, start=1)
        return {number: control for number, control in controls if control.screen == self.screen}

    def scrolls(self) -> list[str]:
        """The ways in which the page can be scrolled now, as actions."""
        ways = {"down": self.screen + 1 < len(self.snapshot.screens), "up": self.screen > 0}
        return [f"scroll[{way}]" for way, possible in ways.items() if possible]

    def act(self, action: str) -> str | None:
        """Do what an agent wrote; what is wrong with it if it cannot be done. Raises BrowserError."""
        command = parse(action)
        if command is None:
            return "That is not a command."
        if command.verb == "scroll":
            return self._scroll(command)
        before = self._tab.address
        problem = self._go_back() if command.verb == "back" else self._use(command)
        if problem is None:
            self.look(self.screen if self._tab.address == before else 0)
        return problem

    def _scroll(self, action: Action) -> str | None:
        if f"scroll[{action.text}]" not in self.scrolls():
            return "The page does not scroll further that way."
        self.screen += 1 if action.text == "down" else -1
        return None

    def _go_back(self) -> str | None:
        return None if self._tab.back() else "There is no page to go back to."

    def _use(self, action: Action) -> str | None:
        control = self.shown().get(action.number)
        if control is None:
            return f"There is no element [{action.number}] here."
        if control.disabled:
            return f"[{action.number}] is disabled."
        if action.verb == "click":
            return None if self._tab.click(control.reference) else f"[{action.number}] cannot be clicked now."
        if action.verb == "select":
            if action.text not in control.options:
                return f"[{action.number}] has no such option."
            done = self._tab.select(control.reference, action.text)
        else:
            if control.role not in FIELDS or control.options:
                return f"[{action.number}] is not a text field."
            if len(action.text) > LONGEST:
                return f"Type at most {LONGEST} characters."
            done = self._tab.fill(control.reference, clean(action.text))
        return None if done else f"[{action.number}] cannot be used now."
