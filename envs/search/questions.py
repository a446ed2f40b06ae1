"""Questions about the made world, whose answers stand at the end of a chain of facts."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.search.passage_generator import passages_of
from manyturn.envs.search.world import World, is_entity, world_of

HOPS = {"easy": 1, "medium": 2, "hard": 3}
"""Difficulty -> facts in the chain."""
MOST_TASKS = {"train": 10_000, "validation": 1_000, "test": 1_000}


class Chain(NamedTuple):
    """Facts each of which is about the object of the one before: entities' names, and one relation from each."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]


@lru_cache(maxsize=32)
def questions(world: int, split: str, difficulty: str) -> Sequence[Task]:
    """Tasks, in an order drawn by lot; their params hold what an episode needs:

    question, answers (all that are right), supports (ids of the passages that tell the chain's facts, in order) and
    queries (by which an expert finds them).
    """
    chains = list(_chains(world_of(world), split, HOPS[difficulty]))
    draws = Draws("questions", world, split, difficulty)
    count = min(MOST_TASKS[split], len(chains))
    for place in range(count):  # a shuffle that stops when it has drawn enough
        other = draws.between(place, len(chains) - 1)
        chains[place], chains[other] = chains[other], chains[place]
    return [
        Task(f"{split}/{difficulty}/{number}", split, _params(world, chain, draws), difficulty)
        for number, chain in enumerate(chains[:count])
    ]


def _chains(world: World, split: str, hops: int) -> Iterator[Chain]:
    """All chains of a split that meet no entity twice; the last object may be a figure, the others lead on."""

    def longer(entities: tuple[str, ...], relations: tuple[str, ...]) -> Iterator[Chain]:
        entity = world[entities[-1]]
        last = len(entities) == hops
        for relation in entity.relations():
            value = entity.facts[relation.name]
            if last:
                if value not in entities:
                    yield Chain(entities, (*relations, relation.name))
            elif is_entity(relation) and value not in entities:
                yield from longer((*entities, value), (*relations, relation.name))

    for entity in world.values():
        if entity.split == split:
            yield from longer((entity.name,), ())


def _params(number: int, chain: Chain, draws: Draws) -> dict[str, Any]:
    world, where = world_of(number), passages_of(number).passage
    steps = list(zip(*chain, strict=True))
    relations = [next(r for r in world[name].relations() if r.name == relation_name) for name, relation_name in steps]
    phrase = world[chain.entities[0]].label
    for relation in relations:
        phrase = draws.pick(relation.phrases).format(phrase)
    name, last = steps[-1]
    return {
        "world": number,
        "question": f"{'Who was' if relations[-1].object == 'person' else 'What is'} {phrase}?",
        "answers": [world[name].facts[last]],
        "supports": [where[step] for step in steps],
        "queries": [world[name].label for name in chain.entities],
    }
