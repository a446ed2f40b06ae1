"""WebShop in text, played natively from its official files."""

from collections.abc import Sequence
from pathlib import Path

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.shop.catalogue.catalogue import Catalogue
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.shop_env import VisitEnv
from manyturn.envs.shop.webshop.goal_tasks import goal_of, tasks_of
from manyturn.envs.shop.webshop.official_shop import load
from manyturn.envs.shop.webshop.records import KINDS


class WebShop(VisitEnv):
    """Search the official WebShop catalogue and buy what the instruction asks for.

    Task:
        An official goal: a product with attributes, options and a price limit.
    Observation:
        WebShop's pages as text. ``progress`` is the reward of buying now.
    Actions:
        ``search[WORDS]`` at the search bar, and ``click[TEXT]`` for a button, a product's number or an option.
    Reward:
        The official one for the purchase: type of product, attributes, options and price. ``spacy`` finds a title's
        nouns as the original does; ``official`` approximates them without spaCy.
    End:
        The purchase ends the visit; a reward of 1 is success.
    Splits:
        train, validation and test, as far as they have goals. They share no product, unless ``original`` asks for the
        original's own.
    Expert:
        Knows the goal's product: searches for it, chooses its options and buys.
    Floors:
        Not measured here: official files do not come with this package. ``manyturn evaluate random --env
        manyturn/WebShop-v0 --env.args '{data = "DIR"}'`` measures it.

    Args:
        split: train, validation or test, as far as they have goals.
        data: folder of the official files, of 1,000 products or of all; ``manyturn data webshop`` prepares these.
        goals: ``synthetic`` (from attributes and options) or ``human`` (instructions that people wrote).
        mode, reward, max_turns: see ``VisitEnv``.
        original: seed of a run of the original to repeat: prices and price limits as after ``random.seed(original)``,
            and its splits (test: its first 500 goals, validation: the next 1,000). Default: prices and limits that
            depend on the product alone, and splits that share no product.
    """

    harmless = (*VisitEnv.harmless, "goals", "reward", "original")

    def __init__(
        self,
        split: str = "train",
        data: str | Path | None = None,
        goals: str = "synthetic",
        mode: str = "text",
        reward: str = "official",
        original: int | None = None,
        max_turns: int | None = None,
    ):
        if goals not in KINDS:
            raise ValueError(f"no goals {goals!r}: choose {', '.join(KINDS)}")
        self._shop = load(data, goals, original)
        self._tasks = tasks_of(self._shop, goals, original)
        self.splits = tuple(self._tasks)  # those that have goals
        super().__init__(split, mode, reward, max_turns)

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def errand(self, task: Task) -> tuple[Catalogue, Goal]:
        return self._shop.catalogue, goal_of(self._shop, task)
