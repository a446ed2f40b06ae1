"""A made world: people, places, institutions and works, linked to each other.

Every entity belongs to one split, and is linked to entities of its own split alone. So whatever a chain of links starts
with, all of it belongs to that split, while the passages of all splits stand in one corpus.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.search.names import Names
from manyturn.envs.search.relations import BY_KIND, FIGURE, INSTITUTES, PROFESSIONS, Relation

COUNTS = {"mountain": 80, "river": 120, "town": 300, "institute": 300, "person": 1600, "work": 1000}
SHARES = {"train": 7, "validation": 1, "test": 2}
"""Split -> how many of ten entities of a kind belong to it."""
_MAKERS = {sort: profession for profession, sorts in PROFESSIONS.items() for sort in sorts}
_FIRST, _LAST = 1600, 1880  # years of birth
_TRIES = 40  # at finding a person of the right age; a fact without one is left out


@dataclass(slots=True)
class Entity:
    """Something with a name.

    Args:
        kind: person, town, river, mountain, institute or work.
        sort: what it is within its kind, such as a profession.
        facts: relation's name -> the object's name or a figure.
    """

    name: str
    kind: str
    sort: str
    split: str
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name in running text."""
        return {"river": f"the river {self.name}", "work": f"the {self.sort} {self.name}"}.get(self.kind, self.name)

    def relations(self) -> Iterator[Relation]:
        """Relations of which it has a fact."""
        return (relation for relation in BY_KIND[self.kind] if relation.name in self.facts)


World = dict[str, Entity]
"""Name -> entity."""


@lru_cache(maxsize=4)
def world_of(seed: int) -> World:
    """The world of a seed, the same at every call. It is shared: change nothing."""
    draws = Draws("world", seed)
    names = Names(draws)
    world: World = {}
    for split, share in SHARES.items():
        people = [_Person(names, draws) for _ in range(COUNTS["person"] * share // 10)]
        _Maker(draws, names, split, people).fill(world, share)
    return world


class _Person:
    """Somebody before there is anything else to link them to."""

    def __init__(self, names: Names, draws: Draws):
        self.name, self.sort, self.born = names.person(), draws.pick(list(PROFESSIONS)), draws.between(_FIRST, _LAST)


class _Maker:
    """Makes what belongs to one split."""

    def __init__(self, draws: Draws, names: Names, split: str, people: Sequence[_Person]):
        self._draws, self._names, self._split, self._people = draws, names, split, people
        self._makers = {sort: [p for p in people if p.sort == maker] for sort, maker in _MAKERS.items()}

    def fill(self, world: World, share: int) -> None:
        draws, names = self._draws, self._names
        count = {kind: number * share // 10 for kind, number in COUNTS.items()}
        mountains = [names.mountain() for _ in range(count["mountain"])]
        rivers = [names.river() for _ in range(count["river"])]
        towns = [names.town() for _ in range(count["town"])]
        sorts = [draws.pick(INSTITUTES) for _ in range(count["institute"])]
        institutes = [names.institute(sort) for sort in sorts]
        made = [self._mountain(name) for name in mountains]
        made += [self._river(name, mountains) for name in rivers]
        made += [self._town(name, rivers) for name in towns]
        made += [self._institute(name, sort, towns) for name, sort in zip(institutes, sorts, strict=True)]
        made += [self._person(person, towns, institutes) for person in self._people]
        made += [self._work(towns) for _ in range(count["work"])]
        world |= {entity.name: entity for entity in made}

    def _mountain(self, name: str) -> Entity:
        facts = {"climber": self._draws.pick(self._people).name, "height": str(self._draws.between(900, 6000))}
        return Entity(name, "mountain", "mountain", self._split, facts)

    def _river(self, name: str, mountains: Sequence[str]) -> Entity:
        draws = self._draws
        facts = {"source": draws.pick(mountains), "surveyor": draws.pick(self._people).name}
        return Entity(name, "river", "river", self._split, facts | {"length": str(draws.between(40, 1800))})

    def _town(self, name: str, rivers: Sequence[str]) -> Entity:
        draws = self._draws
        facts = {"river": draws.pick(rivers), "architect": draws.pick(self._people).name}
        return Entity(name, "town", "town", self._split, facts | {"charter": str(draws.between(1100, 1590))})

    def _institute(self, name: str, sort: str, towns: Sequence[str]) -> Entity:
        founder = self._draws.pick(self._people)
        facts = {"founder": founder.name, "seat": self._draws.pick(towns)}
        year = founder.born + self._draws.between(25, 60)
        return Entity(name, "institute", sort.lower(), self._split, facts | {"founding": str(year)})

    def _person(self, person: _Person, towns: Sequence[str], institutes: Sequence[str]) -> Entity:
        facts = {"birthplace": self._draws.pick(towns), "birth": str(person.born)}
        for relation, least, most in (("guardian", 18, 42), ("teacher", 15, 55)):
            if candidates := self._older(person.born, least, most):
                facts[relation] = candidates
        facts["workplace"] = self._draws.pick(institutes)
        return Entity(person.name, "person", person.sort, self._split, facts)

    def _work(self, towns: Sequence[str]) -> Entity:
        draws = self._draws
        sort = draws.pick(list(_MAKERS))
        creator = draws.pick(self._makers[sort])
        facts = {"creator": creator.name, "premiere": draws.pick(towns), "dedicatee": creator.name}
        while facts["dedicatee"] == creator.name:
            facts["dedicatee"] = draws.pick(self._people).name
        facts["completion"] = str(creator.born + draws.between(20, 70))
        return Entity(self._names.work(), "work", sort, self._split, facts)

    def _older(self, born: int, least: int, most: int) -> str | None:
        """Somebody who is so many years older."""
        for _ in range(_TRIES):
            other = self._draws.pick(self._people)
            if least <= born - other.born <= most:
                return other.name
        return None


def is_entity(relation: Relation) -> bool:
    """True if a relation leads to an entity with relations of its own."""
    return relation.object != FIGURE
