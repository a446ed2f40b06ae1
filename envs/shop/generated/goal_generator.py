"""Goals of a generated shop's customers: only one product meets each, in five difficulties.

A goal is drawn from (catalogue, split, difficulty, number, attempt) until it is as hard as its difficulty says. It is
about a product of its split's families, so no two splits have a product in common, nor near relatives of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task
from manyturn.envs.shop.catalogue.catalogue import Product
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.generated.instruction_templates import TEMPLATES, UNSEEN, phrase
from manyturn.envs.shop.generated.product_generator import Goods, goods, some
from manyturn.envs.shop.generated.product_kinds import NAMES, title_name
from manyturn.envs.shop.generated.shop_config import Assortment
from manyturn.envs.shop.pages import pages

SIZES = {"train": 20_000, "validation": 1_000, "test": 1_000, "test_unseen": 1_000}
_ATTEMPTS = 20_000


class NoGoals(ValueError):
    """No catalogue has a goal of this difficulty for this split; the text names the fix."""


@dataclass(frozen=True, slots=True)
class GoalLevel:
    """A difficulty.

    Args:
        attributes: fewest and most that are asked for.
        options: fewest and most that are asked for.
        pages: first and last page of results on which the product may stand.
        below: whether an attribute must stand below the product's page only; else all stand in the title.
        renamed: whether the instruction calls the product by another name of its kind than the title does.
        traps: what rivals must lack, each of these at least one of them, and nothing else: ``attribute``, ``option``,
            ``price``.
        products: the fewest for which there are enough such goals.
    """

    attributes: tuple[int, int]
    options: tuple[int, int]
    pages: tuple[int, int]
    below: bool
    renamed: bool
    traps: frozenset[str]
    products: int


_ALL = frozenset({"attribute", "option", "price"})
LEVELS = {
    "tiny": GoalLevel((1, 3), (0, 1), (1, 1), below=False, renamed=False, traps=frozenset({"attribute"}), products=50),
    "easy": GoalLevel((1, 3), (1, 2), (1, 1), below=False, renamed=False, traps=frozenset({"attribute"}), products=50),
    "medium": GoalLevel(
        (2, 3), (1, 2), (1, 2), below=True, renamed=False, traps=frozenset({"attribute", "option"}), products=50
    ),
    "hard": GoalLevel((2, 4), (2, 3), (1, 3), below=True, renamed=False, traps=_ALL, products=50),
    "extreme": GoalLevel((2, 3), (2, 3), (2, 5), below=True, renamed=True, traps=_ALL, products=1000),
}


def tasks(split: str, difficulty: str, shops: Assortment) -> GeneratedTasks:
    """The tasks of a split, made when asked for, which raises NoGoals if no shop has such a goal.

    Shops take turns; where one has no such goal, the next one stands in.
    """
    prefix = f"{split}/{difficulty}/{shops.products}-{shops.kinds}-{shops.catalogue}-{shops.catalogues}/"
    return GeneratedTasks(lambda number: _task(prefix, split, difficulty, number, shops), SIZES[split], prefix)


@lru_cache(maxsize=1024)  # a group plays one task many times, and drawing its goal takes several times a reset
def _task(prefix: str, split: str, difficulty: str, number: int, shops: Assortment) -> Task:
    catalogue, goal = _catalogue_goal(split, difficulty, number, shops)
    params = {
        "catalogue": catalogue,
        "products": shops.products,
        "kinds": shops.kinds,
        "product": goal.product.id,
        "instruction": goal.instruction,
        "query": goal.query,
        "attributes": goal.attributes,
        "options": goal.options,
        "price_limit": goal.price_limit,
    }
    return Task(f"{prefix}{number}", split, params, difficulty, (goal.product.department,))


def goods_of(task: Task) -> Goods:
    """Shop of a task."""
    return goods(task.params["catalogue"], task.params["products"], task.params["kinds"])


def goal_of(task: Task) -> Goal:
    """The goal that a task stands for."""
    params = task.params
    return Goal(
        product=goods_of(task).catalogue[params["product"]],
        instruction=params["instruction"],
        attributes=tuple(params["attributes"]),
        options=tuple((name, value) for name, value in params["options"]),
        price_limit=params["price_limit"],
        query=params["query"],
    )


def _catalogue_goal(split: str, difficulty: str, number: int, shops: Assortment) -> tuple[int, Goal]:
    """A goal of the number's catalogue, or of the next one that has any: the catalogue and the goal. Raises NoGoals."""
    seeds = shops.seeds
    for step in range(len(seeds)):
        catalogue = seeds[(number + step) % len(seeds)]
        goal = _goal(split, difficulty, number, catalogue, shops)
        if goal is not None:
            return catalogue, goal
    where = f"catalogue {seeds[0]}" if len(seeds) == 1 else f"catalogues {seeds[0]} to {seeds[-1]}"
    raise NoGoals(
        f"there are no goals of difficulty {difficulty!r} for split {split!r} in {where} of {shops.products} products: "
        "take another catalogue, or more products"
    )


def _goal(split: str, difficulty: str, number: int, seed: int, shops: Assortment) -> Goal | None:
    """A goal of a catalogue, or None if it has none that is hard enough."""
    stock, level = goods(seed, shops.products, shops.kinds), LEVELS[difficulty]
    for attempt in range(_ATTEMPTS):
        draws = Draws("shop goal", seed, shops.products, split, difficulty, number, attempt)
        goal = _drawn(draws, stock, split, level)
        if goal is not None:
            return goal
    return None


@dataclass(frozen=True, slots=True)
class _Wish:
    """Requirements on a product of the right kind."""

    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    limit: int

    def lacking(self, product: Product) -> list[str]:
        """Unmet wishes of a product, one word each: ``attribute``, ``option``, ``price``."""
        lacks = ["attribute" for attribute in self.attributes if attribute not in product.attributes]
        lacks += ["option" for axis, value in self.options if value not in product.options[axis]]
        return [*lacks, "price"] if product.price > self.limit else lacks


def _drawn(draws: Draws, stock: Goods, split: str, level: GoalLevel) -> Goal | None:
    """A goal, or None if the draw is not as hard as the level says."""
    family = stock.families[draws.pick(stock.of_split[split])]
    product = draws.pick(family)
    rivals = [other for other in family if other is not product]
    wish = _wish(draws, product, rivals, level)
    if wish is None or not _hard_enough(wish, product, rivals, stock, level):
        return None
    name = title_name(product.title)
    if level.renamed:
        name = draws.pick([other for other in NAMES[name] if other != name])
    query = " ".join([name, *wish.attributes])
    first, last = level.pages
    if product not in stock.catalogue.search(query)[(first - 1) * pages.WINDOW : last * pages.WINDOW]:
        return None
    templates = UNSEEN if split == "test_unseen" else TEMPLATES
    text = phrase(draws, templates, name, wish.attributes, wish.options, wish.limit)
    return Goal(product, text, wish.attributes, wish.options, float(wish.limit), query)


def _wish(draws: Draws, product: Product, rivals: Sequence[Product], level: GoalLevel) -> _Wish | None:
    """Attributes that rivals lack come first; one option that a rival lacks, if that is a trap, besides common ones."""
    listed = [attribute for attribute in product.attributes if level.below or attribute in product.title]
    if len(listed) < level.attributes[0]:
        return None
    listed = some(draws, listed, len(listed))
    listed.sort(key=lambda attribute: all(attribute in rival.attributes for rival in rivals))
    attributes = listed[: draws.between(*level.attributes)]
    options, count = [], min(draws.between(*level.options), len(product.options))
    for axis in some(draws, list(product.options), count):
        special = "option" in level.traps and not options
        values = product.options[axis]
        fit = [value for value in values if all(value in rival.options[axis] for rival in rivals) != special]
        options.append((axis, draws.pick(fit or values)))
    attributes, options = some(draws, attributes, len(attributes)), some(draws, options, count)
    return _Wish(tuple(attributes), tuple(options), _limit(draws, product.price))


def _hard_enough(wish: _Wish, product: Product, rivals: Sequence[Product], stock: Goods, level: GoalLevel) -> bool:
    """True if no other product will do, three rivals lack one thing only, and the level's traps are there."""
    if level.below and all(attribute in product.title for attribute in wish.attributes):
        return False
    near = [lacks[0] for lacks in map(wish.lacking, rivals) if len(lacks) == 1]
    if len(near) < 3 or not level.traps <= set(near):
        return False
    relatives = stock.having[product.kind, wish.attributes[0]]
    return all(other is product or wish.lacking(other) for other in relatives)


def _limit(draws: Draws, price: float) -> int:
    """Up to 1.6 times the price: the next multiple of five dollars, or of one below 20 dollars, or a later one."""
    step = 5 if price >= 20 else 1
    lowest = int(price // step + 1) * step
    return lowest + step * draws.below(max(1, int((1.6 * price - lowest) // step) + 1))
