"""WebShop's reward for a purchase, quirks included, and a strict one next to it.

    reward = type · (attributes met + options met + price met) / (attributes + options + 1)

Attributes and options are compared fuzzily, which is lenient: ``large`` passes for ``x-large``, ``dark grey`` for
``dark green``; and where goals name their options, any chosen value that equals the option's name passes too. The
strict reward counts only what is equal, besides what the official one demands, so that it is never the higher one.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from manyturn.envs.shop.catalogue.catalogue import Product
from manyturn.envs.shop.catalogue.goals import Goal
from manyturn.envs.shop.reward.fuzzy_match import any_same
from manyturn.envs.shop.reward.nouns import Nouns

# The first of these that stands anywhere in an option's value stands for the value (WebShop, MIT licence).
_COLOUR_NAMES = """
alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo
caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream crystal dark
denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather indigo ivory ivy
khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom
mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand sapphire seashell
silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white
wine yellow"""
_COLOURS = tuple(_COLOUR_NAMES.split())


class TypeScore(NamedTuple):
    """Similarity of two products' types.

    Attributes:
        same_kind: whether both were found under one search.
        same_path: whether they share two categories.
        title: share of the wanted title's nouns that the bought one has; 0.2 where the wanted title has none.
        factor: what the reward is multiplied by: 1, 0.5, 0.1 or 0.
    """

    same_kind: bool
    same_path: bool
    title: float
    factor: float


class Score(NamedTuple):
    """The reward of a purchase and its parts.

    Attributes:
        type: of the product.
        attributes, options: how many are met; ``strict_attributes`` and ``strict_options`` count equal ones only.
        price: whether the limit is kept.
        parts: how many things were asked for: attributes, options and the price.
    """

    type: TypeScore
    attributes: int
    strict_attributes: int
    options: int
    strict_options: int
    price: bool
    parts: int

    @property
    def official(self) -> float:
        """The original's reward, 0 to 1."""
        return (self.attributes + self.options + self.price) / self.parts * self.type.factor

    @property
    def strict(self) -> float:
        """0 to 1, never above ``official``: the kind must be the goal's, attributes and options equal."""
        met = self.strict_attributes + self.strict_options + self.price
        return met / self.parts * self.type.factor if self.type.same_kind else 0.0


class Judge:
    """Judges purchases for one goal, and remembers what does not depend on the options chosen.

    Args:
        goal: what was asked for.
        nouns: which nouns a title has.
    """

    def __init__(self, goal: Goal, nouns: Nouns):
        self._goal, self._nouns = goal, nouns
        self._scores: dict[str, tuple[TypeScore, int, int]] = {}

    def score(self, product: Product, chosen: Mapping[str, str]) -> Score:
        """Of the purchase of a product with the options chosen, name -> value."""
        goal, cached = self._goal, self._scores.get(product.id)
        if cached is None:
            cached = type_score(product, goal.product, self._nouns), *attributes_met(product, goal.attributes)
            self._scores[product.id] = cached
        met = [option for option in goal.options if option_met(chosen.values(), option)] if chosen else []
        return Score(
            type=cached[0],
            attributes=cached[1],
            strict_attributes=cached[2],
            options=len(met),
            strict_options=sum([_equal(chosen, option) for option in met]),
            price=product.price <= goal.price_limit,
            parts=len(goal.attributes) + len(goal.options) + 1,
        )


def type_score(product: Product, goal: Product, nouns: Nouns) -> TypeScore:
    """Compare two products' types; a title without a common noun beats an equal kind or path."""
    same_kind = product.kind == goal.kind
    same_path = len(_categories(product.path) & _categories(goal.path)) >= 2
    words = nouns(goal.title)
    title = len(set(nouns(product.title)) & set(words)) / len(words) if words else 0.2
    factor = 1.0 if same_kind or same_path or title > 0.2 else 0.5
    if title < 0.1:
        factor = 0.1 if title else 0.0
    return TypeScore(same_kind, same_path, title, factor)


@lru_cache(maxsize=1024)
def _categories(path: str) -> frozenset[str]:
    return frozenset(name.strip() for name in path.split("›"))


def attributes_met(product: Product, attributes: Collection[str]) -> tuple[int, int]:
    """Number of attributes that a product meets: equal to one of its own, or present in its texts."""
    title, features = product.title.lower(), " ".join(product.features).lower()
    description = product.description.lower()
    met = equal = 0
    for attribute in attributes:
        if attribute in title or attribute in features or attribute in description:
            met, equal = met + 1, equal + 1
        elif any_same(product.attributes, attribute):
            met, equal = met + 1, equal + (attribute in product.attributes)
    return met, equal


def option_met(values: Collection[str], option: str | tuple[str, str]) -> bool:
    """True if a chosen value passes for the required one."""
    return any_same(map(_target, values), _target(option))


@lru_cache(maxsize=8192)
def _target(option: str | tuple[str, str]) -> str:
    """Text of an option for comparisons: a colour, or its text. A pair is written as Python writes a tuple."""
    return next((colour for colour in _COLOURS if colour in option), str(option))


def _equal(chosen: Mapping[str, str], option: str | tuple[str, str]) -> bool:
    return chosen.get(option[0]) == option[1] if isinstance(option, tuple) else option in chosen.values()
