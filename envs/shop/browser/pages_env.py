"""A shop in a browser: the visits of a text shop, on real pages."""

import base64
import json
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.shop.browser.shop_visit import Visit
from manyturn.envs.shop.pages.pages import SEARCH
from manyturn.envs.shop.shop_env import VisitEnv
from manyturn.envs.web.browser import BrowserError
from manyturn.envs.web.chromium import require_browser
from manyturn.envs.web.snapshot import Control
from manyturn.envs.web.tab import Tab
from manyturn.envs.web.text_browser import INSTRUCTIONS, Action, PageReader, clean, parse

_SEARCH = "search["


class ShopPages(TextEnv):
    """Search a shop's web site and buy what the instruction asks for; Chromium shows its pages.

    Task:
        That of the text shop.
    Observation:
        One screen of the page, as an accessibility snapshot: what can be acted on has a number. The anchor is the text
        shop's, and what is shown; so is ``progress``.
    Actions:
        ``click[N]``, ``type[N] WORDS``, ``select[N] TEXT``, ``scroll[down]``, ``scroll[up]`` and ``back``. A search
        takes two turns.
    Reward:
        The text shop's for the purchase. Its turn-level rewards are refused.
    End:
        The purchase ends the visit; a reward of 1 is success.
    Splits:
        Those of the text shop.
    Expert:
        The text shop's, its commands put into clicks and typing.
    Floors:
        Those of the text shop for the same goals, as far as 20 turns suffice. ``manyturn evaluate random --env
        manyturn/ShopPages-v0`` measures it.

    The browser holds about a gigabyte. Each open episode takes some 300 MB and 90 files more, counted as ``env.limits``
    counts them: with more than two episodes for each worker, raise those.

    Args:
        split: of the tasks.
        shop: id of the text shop, or FILE.py:Class.
        max_turns: default 20.
        arguments: further ones are the text shop's. Its observation mode has no effect here and is refused.
    """

    instructions = f"""\
You are in a web shop. Buy a product that matches the instruction. Search, open a product to see its options, \
description and features, click a value of each option that the instruction asks for, then buy. The score depends on \
the product type, its attributes, the options and the price. Buying ends the visit.

{INSTRUCTIONS}\
"""
    max_turns = 20
    # of the text shop whose arguments these are
    harmless = (
        *(*TextEnv.harmless, "shop:manyturn/Shop-v0", "rewards", "per_page"),
        *("products", "kinds", "catalogue", "catalogues"),
    )
    part_names = ()

    def __init__(
        self, split: str = "train", shop: str = "manyturn/Shop-v0", max_turns: int | None = None, **arguments: Any
    ):
        require_browser()
        if "mode" in arguments:
            raise ValueError("mode has no effect in a browser, which shows pages in one way only: leave it out")
        env = make(shop, split=split, **arguments).unwrapped
        if not isinstance(env, VisitEnv):
            raise ValueError(f"{shop} is no shop: name one whose class is a VisitEnv, such as manyturn/Shop-v0")
        if env.part_names:
            raise ValueError(f"a browser pays for the purchase only, not {', '.join(env.part_names)}: leave them out")
        self.splits = env.splits
        super().__init__(split, max_turns)
        self._shop = env
        self._tab: Tab | None = None
        self._address = ""

    def tasks(self, split: str) -> Sequence[Task]:
        return self._shop.tasks(split)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        from manyturn.envs.shop.browser.web_site import the_site

        self._shop.reset(seed=self._seed, options={"task": task})
        site = the_site()
        site.close(self._address)
        self._visit = Visit(self._shop)
        self._address = site.open(self._visit)
        if self._tab is None:
            self._tab = Tab(f"{site.origin}/")
            self._reader = PageReader(self._tab)
        self._tab.open(f"{self._address}0")
        self._path, self._words = [0], ""  # states in the browser's history, and what stands in the search bar
        self._see()
        return self._reader.text

    def respond(self, action: str) -> Turn:
        self._visit.turn = None
        problem = self._reader.act(action)
        if self._visit.error is not None:
            raise self._visit.error
        if problem is not None:
            return self.invalid(f"{problem}\n{self._reader.text}")
        command = parse(action)
        assert command is not None
        self._follow(command)
        turn = self._visit.turn
        if turn is not None and turn.terminated:
            return replace(turn, text=self._reader.text)
        return self.go_on(self._reader.text)

    def _follow(self, action: Action) -> None:
        """Keep up with the browser's history and its search bar. Raises BrowserError if the site has not been told."""
        moved = self._visit.shown != self._path[-1]
        if action.verb == "click" and not moved and self._actions[action.number - 1] != SEARCH:
            raise BrowserError("a button was clicked, and the site was not told")
        if action.verb == "type":
            self._words = action.text
        if moved:
            self._words = ""
            if action.verb == "back":
                self._path.pop()
            else:
                self._path.append(self._visit.shown)
        self._match()

    def _see(self) -> None:
        self._reader.look()
        self._match()

    def _match(self) -> None:
        """Give each control that is shown the text action that it stands for: both stand in the page's order."""
        assert self._tab is not None
        self._actions = self._visit.document().actions
        shown = f"{self._address}{self._visit.shown}"
        if self._tab.address != shown or len(self._actions) != len(self._reader.snapshot.controls):
            raise BrowserError("the browser shows another page than the one that it was sent")

    # ---- what the text shop knows ---------------------------------------------------------------------------

    def anchor(self) -> Hashable:
        return self._shop.anchor(), self._reader.text

    def anchor_text(self) -> str:
        return self._reader.text

    def progress(self) -> float:
        return self._shop.progress()

    def admissible(self) -> list[str]:
        """Every click on what is shown, ways to scroll and to go back; at the search bar, words of the instruction."""
        actions = []
        for number, control in self._reader.shown().items():
            action = self._actions[number - 1]
            if control.role == "searchbox":
                words = self._shop.admissible()[0][len(_SEARCH) : -1]
                if not _holds(control, words):
                    actions.append(f"type[{number}] {words}")
            elif action.startswith("click[") or (action and self._reader.snapshot.controls[0].value):
                actions.append(f"click[{number}]")
        return [*actions, *self._reader.scrolls(), *(["back"] if len(self._path) > 1 else [])]

    def expert(self) -> str:
        command = self._shop.expert()
        if command.startswith(_SEARCH):
            words = command[len(_SEARCH) : -1]
            bar = self._reader.snapshot.controls[0]
            if bar.role == "searchbox":
                return "click[2]" if _holds(bar, words) else f"type[1] {words}"
            command = "click[back to search]"
        number = self._actions.index(command) + 1
        screen = self._reader.snapshot.controls[number - 1].screen
        if screen != self._reader.screen:
            return "scroll[down]" if screen > self._reader.screen else "scroll[up]"
        return f"click[{number}]"

    # ---- state ----------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The states of the visit, the browser's history, and what stands in the search bar."""
        states = [base64.b64encode(one).decode() for one in self._visit.states]
        state = {"states": states, "path": self._path, "words": self._words, "screen": self._reader.screen}
        return json.dumps(state).encode()

    def load(self, data: bytes) -> None:
        """The same pages in the same order, in this browser."""
        assert self._tab is not None
        state = json.loads(data)
        self._path, self._words = state["path"], state["words"]
        self._visit.continue_from([base64.b64decode(one) for one in state["states"]], 0)
        for number in self._path[1:]:
            self._tab.go(f"{self._address}{number}")
        self._see()
        if self._words:
            self._tab.fill(self._reader.snapshot.controls[0].reference, clean(self._words))
        self._reader.look(state["screen"])

    def close(self) -> None:
        if self._tab is not None:
            from manyturn.envs.shop.browser.web_site import the_site

            the_site().close(self._address)
            tab, self._tab = self._tab, None
            tab.close()
        self._shop.close()


def _holds(bar: Control, words: str) -> bool:
    """True if words stand in the search bar already; a page's text has single spaces."""
    return bar.value == " ".join(words.split())
