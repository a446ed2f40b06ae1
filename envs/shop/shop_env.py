"""Visits to a shop as an environment, wherever its catalogue and its goals come from."""

import abc
from collections.abc import Mapping

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.shop.catalogue.catalogue import Catalogue, Product
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.expert import next_action, wording
from manyturn.envs.shop.pages.page_text import MODES
from manyturn.envs.shop.pages.pages import WINDOW, Receipt
from manyturn.envs.shop.pages.session import Session
from manyturn.envs.shop.reward.nouns import plain_nouns, spacy_nouns
from manyturn.envs.shop.reward.reward import Judge, Score

REWARDS = ("official", "strict", "spacy")


class VisitEnv(TextEnv):
    """Search a catalogue and buy what the instruction asks for; override ``errand`` and ``tasks``.

    Success is a reward of 1. Progress is the reward that buying now would bring, 0 away from a product. Anchor: task,
    page, query, product, its sub-page and the chosen options, which mode ``text`` does not show.

    Args:
        split: of the tasks.
        mode: of observation, ``text`` or ``text_rich``.
        reward: ``official``, with nouns found without a model; ``strict``, see ``reward.py``; ``spacy``, the official
            one with the original's nouns, which needs spaCy.
        max_turns: default 15.
    """

    instructions = """\
You are in a web shop. Buy a product that matches the instruction. Each turn, answer with exactly one command.

Commands:
  search[WORDS]   search the catalogue
  click[TEXT]     click a button, a product number or an option, by its text

Open a product to see its options, description and features. Click a value of each option that the instruction asks \
for, then buy. The score depends on the product type, its attributes, the options and the price. Buying ends the visit.\
"""
    max_turns = 15
    harmless = (*TextEnv.harmless, "mode")
    part_names = ()
    window = WINDOW
    session: Session  # of the episode

    @abc.abstractmethod
    def errand(self, task: Task) -> tuple[Catalogue, Goal]:
        """Shop and goal of a task."""

    def __init__(
        self,
        split: str = "train",
        mode: str = "text",
        reward: str = "official",
        max_turns: int | None = None,
        difficulty: str | None = None,
    ):
        for what, given, allowed in (("mode", mode, MODES), ("reward", reward, REWARDS)):
            if given not in allowed:
                raise ValueError(f"no {what} {given!r}: choose {', '.join(allowed)}")
        super().__init__(split, max_turns, difficulty)
        self._render = MODES[mode]
        self._strict = reward == "strict"
        self._nouns = spacy_nouns() if reward == "spacy" else plain_nouns

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._catalogue, self._goal = self.errand(task)
        self._judge = Judge(self._goal, self._nouns)
        self.session = Session(self._catalogue, self._goal.instruction, self._reward, self.window)
        return self._render(self.session.page)

    def respond(self, action: str) -> Turn:
        valid = self.session.act(action)
        page = self.session.page
        text = self._render(page)
        if isinstance(page, Receipt):
            return self.succeed(text, page.reward) if page.reward == 1 else self.fail(text, page.reward)
        return self.go_on(text) if valid else self.invalid(text)

    def score(self) -> Score | None:
        """The parts of the reward for buying the product at hand with the options chosen; None away from a product."""
        session = self.session
        return self._judge.score(session.product, session.chosen) if session.product else None

    def _reward(self, product: Product, chosen: Mapping[str, str]) -> float:
        score = self._judge.score(product, chosen)
        return score.strict if self._strict else score.official

    def admissible(self) -> list[str]:
        """Every click there is, and at the search bar one search: for the words of the instruction."""
        if self.session.place == "home":
            return [f"search[{wording(self._goal)}]"]
        return self.session.clicks()

    def anchor(self) -> tuple:
        return self.task.id, self.session.situation()

    def anchor_text(self) -> str:
        return self.observation

    def progress(self) -> float:
        session = self.session
        return self._reward(session.product, session.chosen) if session.product else 0.0

    def expert(self) -> str:
        return next_action(self.session, self._catalogue, self._goal)

    def save(self) -> bytes:
        return self.session.save()

    def load(self, data: bytes) -> None:
        self.session.load(data)
