"""The generated shop as an environment."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack, get_type_hints

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.shop.catalogue.catalogue import FOUND, Catalogue
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.generated.goal_generator import LEVELS, GoalLevel, goal_of, goods_of, tasks
from manyturn.envs.shop.generated.product_generator import SHARES
from manyturn.envs.shop.generated.product_kinds import type_label
from manyturn.envs.shop.generated.shaping import PARTS, potential
from manyturn.envs.shop.generated.shop_config import Assortment, AssortmentArguments
from manyturn.envs.shop.pages.pages import WINDOW
from manyturn.envs.shop.shop_env import VisitEnv

REWARDS = ("outcome", "shaped")


class Shop(VisitEnv):
    """Search a made catalogue and buy the one product that the instruction asks for.

    Task:
        An instruction with attributes, options and a price limit. One product of the catalogue meets all of it; its
        rivals differ in one thing each.
    Observation:
        WebShop's pages as text: search bar, results, product with its options, description, features, receipt.
        ``progress`` is the reward of buying now.
    Actions:
        ``search[WORDS]`` at the search bar, and ``click[TEXT]`` for a button, a product's number or an option.
    Reward:
        WebShop's for the purchase, with the catalogue's own types in place of a title's nouns. It is 1 for the goal's
        product with its options, and below 1 for all others. A range of prices is paid at its upper end. ``shaped``
        adds the parts ``found``, ``opened`` and ``chosen``, which sum to 0 over an episode (``shaping.py``).
    End:
        The purchase ends the visit; a reward of 1 is success.
    Splits:
        train, validation, test and ``test_unseen``, whose sentences occur nowhere else. No product that one split asks
        for, and no rival made from it, is asked for in another.
    Expert:
        Searches for the goal's words, opens its product, chooses its options and buys.
    Floors:
        On 200 goals the expert always succeeds. Random clicks succeed in 3 % (tiny), 0.5 % (hard) and 0 % (others).
        Buying the first hit with the options that the instruction names succeeds in 95.5, 94.5, 27.5, 27 and 0 %, from
        tiny to extreme (``benchmarks/results/shop_floors.json``).

    Args:
        split: train, validation, test, or test_unseen.
        difficulty: ``tiny`` (attributes in titles, one option at most), ``easy``, ``medium`` (an attribute is below
            the product's page, rivals lack an option), ``hard`` (rivals cost too much, too), ``extreme`` (not on the
            first page of results, and called by another name than in its title; needs 1,000 products).
        mode: of observation, ``text`` or ``text_rich``.
        rewards: ``outcome``, or ``shaped``, which adds turn-level parts.
        per_page: products on a page of results, from 1 to 50.
        max_turns: default 15.
        products: how many a shop has, a multiple of 5 from 50 to 100,000; default 1,000.
        kinds: of how many kinds of goods, from 1 to 24; default all.
        catalogue: the seed that the first shop is made from; default 0.
        catalogues: how many shops there are, made from this seed and the next ones; default 1. Each task is in one.
    """

    splits = tuple(SHARES)
    harmless = (*VisitEnv.harmless, "rewards", "per_page", *get_type_hints(AssortmentArguments))
    levels = LEVELS
    level: GoalLevel

    def __init__(
        self,
        split: str = "train",
        difficulty: str = "easy",
        mode: str = "text",
        rewards: str = "outcome",
        per_page: int = WINDOW,
        max_turns: int | None = None,
        **assortment: Unpack[AssortmentArguments],
    ):
        if rewards not in REWARDS:
            raise ValueError(f"no rewards {rewards!r}: choose {' or '.join(REWARDS)}")
        if not 1 <= per_page <= FOUND:
            raise ValueError(f"per_page is {per_page}: it is from 1 to {FOUND}")
        super().__init__(split, mode, max_turns=max_turns, difficulty=difficulty)
        self.window = per_page
        shops = Assortment(**assortment)
        if shops.products < self.level.products:
            raise ValueError(f"difficulty {difficulty!r} needs at least {self.level.products} products")
        self._tasks = {name: tasks(name, difficulty, shops) for name in self.splits}
        self._nouns = type_label
        self._shaped = rewards == "shaped"
        if self._shaped:
            self.part_names = PARTS  # those that this instance gives

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def errand(self, task: Task) -> tuple[Catalogue, Goal]:
        return goods_of(task).catalogue, goal_of(task)

    def respond(self, action: str) -> Turn:
        if not self._shaped:
            return super().respond(action)
        before = potential(self.session, self._catalogue, self._goal)
        turn = super().respond(action)
        over = turn.terminated or self.turn + 1 >= self.max_turns
        after = dict.fromkeys(PARTS, 0.0) if over else potential(self.session, self._catalogue, self._goal)
        parts = {name: after[name] - before[name] for name in PARTS if after[name] != before[name]}
        return replace(turn, parts={**turn.parts, **parts})
