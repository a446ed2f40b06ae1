"""The made world in words: a passage for each entity, two for a person."""

from functools import lru_cache
from typing import NamedTuple

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.search.corpus import Corpus
from manyturn.envs.search.world import Entity, World, is_entity, world_of

_OPENINGS = {
    "life": ("{name}, {sort}.", "On the early life of the {sort} {name}."),
    "career": ("The career of {name}.", "What is known of the work of {name}."),
    "main": ("{name}, {sort}.", "{name} ({sort})."),
}


class PassageWorld(NamedTuple):
    """A made corpus, and where what is told.

    Attributes:
        passage: (entity's name, relation's name) -> id of the one passage that tells it.
    """

    corpus: Corpus
    passage: dict[tuple[str, str], str]


@lru_cache(maxsize=4)
def passages_of(seed: int) -> PassageWorld:
    """The corpus of the world of a seed; made once a process."""
    world = world_of(seed)
    draws = Draws("passages", seed)
    written = [(entity, *passage) for entity in world.values() for passage in _passages(entity, world, draws)]
    numbers = list(range(len(written)))
    passages: dict[str, str] = {}
    where: dict[tuple[str, str], str] = {}
    for entity, text, relations in written:
        number = numbers.pop(draws.below(len(numbers)))  # by lot, so that an id tells nothing
        passages[f"P{number:04}"] = text
        where |= {(entity.name, relation): f"P{number:04}" for relation in relations}
    return PassageWorld(Corpus(dict(sorted(passages.items()))), where)


def _passages(entity: Entity, world: World, draws: Draws) -> list[tuple[str, list[str]]]:
    """Texts, each with the names of the relations that it tells."""
    told_of: dict[str, list[str]] = {}
    texts: dict[str, list[str]] = {}
    for relation in entity.relations():
        if relation.passage not in texts:
            opening = draws.pick(_OPENINGS[relation.passage])
            texts[relation.passage] = [opening.format(name=entity.name, sort=entity.sort)]
        value = entity.facts[relation.name]
        what = world[value].label if is_entity(relation) else value
        sentence = draws.pick(relation.sentences).format(who=_short(entity), what=what)
        texts[relation.passage].append(sentence[0].upper() + sentence[1:])
        told_of.setdefault(relation.passage, []).append(relation.name)
    return [(" ".join(sentences), told_of[passage]) for passage, sentences in texts.items()]


def _short(entity: Entity) -> str:
    """Short name of an entity that has been introduced."""
    return entity.name.rpartition(" ")[2] if entity.kind == "person" else entity.label
