"""A visit to a shop through its pages as HTML."""

import threading

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.shop.browser.page_html import Document, document
from manyturn.envs.shop.pages.pages import SEARCH
from manyturn.envs.shop.shop_env import VisitEnv


class VisitError(RuntimeError):
    """The shop raised; ``Visit.error`` holds what."""


class Visit:
    """One visit to a shop, in the states that it has been in.

    Going back shows an earlier state, and continues from there. A purchase is final.

    Args:
        env: an environment in which an episode has just begun; it stands in the state that was shown last.

    Attributes:
        shown: number of the state on show.
        turn: what the environment answered to the last action, until it is taken away.
        error: what the environment raised, if it did.
    """

    def __init__(self, env: VisitEnv):
        self._env = env
        self._lock = threading.Lock()
        self._final: int | None = None
        self.states = [env.save()]
        self.shown = 0
        self.turn: Turn | None = None
        self.error: Exception | None = None

    def document(self) -> Document:
        """The page on show."""
        session = self._env.session
        return document(session.page, session.clicks())

    def show(self, number: int) -> str:
        """The page of a state, from now on the one on show. Raises IndexError."""
        with self._lock:
            self._turn_to(number)
            return self.document().html

    def act(self, number: int, choice: int, words: str) -> int:
        """Press a button in a state; the number of the state that it leads to. Raises IndexError, VisitError."""
        with self._lock:
            self._turn_to(number)
            actions = self.document().actions
            if not 0 <= choice < len(actions):
                raise IndexError(choice)
            action = actions[choice]
            if action == SEARCH:
                words = words.replace("[", " ")  # the only sign that a search cannot be written with
                action = f"search[{words}]" if words else ""
            if not action or self._final is not None:
                return self.shown
            try:
                self.turn = self._env.respond(action)
            except Exception as error:
                self.error = error
                raise VisitError(f"the shop raised {type(error).__name__}") from error
            self.states.append(self._env.save())
            self.shown = len(self.states) - 1
            if self.turn.terminated:
                self._final = self.shown
            return self.shown

    def continue_from(self, states: list[bytes], shown: int) -> None:
        """Take over the states of another visit of the same episode."""
        self.states = states
        self._turn_to(shown)

    def _turn_to(self, number: int) -> None:
        number = number if self._final is None else self._final
        if not 0 <= number < len(self.states):
            raise IndexError(number)
        if number != self.shown:
            self._env.load(self.states[number])
            self.shown = number
