"""Bookings that users want: constraints, terms, concessions, and questions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of
from manyturn.envs.talk.booking.town import HOTEL, KINDS, RESTAURANT, SLOTS, TERMS, TRAITS, Town, town_of
from manyturn.envs.users.agenda import Goal
from manyturn.envs.users.phrases import UNSEEN_SPLIT

SIZES = {"train": 50_000, "validation": 5_000, "test": 5_000, UNSEEN_SPLIT: 5_000}
WISHES = {RESTAURANT: "a table at a restaurant", HOTEL: "a room in a hotel"}


@dataclass(frozen=True)
class ErrandLevel:
    """A difficulty.

    Args:
        errands: bookings, one after the other.
        constraints: on the venue, one of these numbers.
        opening_traits: constraints that the first words tell.
        requests: what the user wants to be told, besides the reference; where that is nothing, venues have no phone
            number and no address.
        fallbacks: what a user may have to give way in: a trait of which there is nothing, or a day that is full; days
            are full in the towns of this level alone.
        venues: of each kind in a town.
        turns: of the agent.
        one_word: whether the names of venues are.
    """

    errands: int
    constraints: tuple[int, ...]
    opening_traits: int
    requests: int
    fallbacks: tuple[str, ...]
    venues: int
    turns: int
    one_word: bool = False


LEVELS = {
    "tiny": ErrandLevel(1, (2,), 2, 0, (), 4, 8, one_word=True),
    "easy": ErrandLevel(1, (2, 3), 2, 0, (), 24, 12),
    "medium": ErrandLevel(1, (2, 3), 1, 1, ("", "trait"), 24, 16),
    "hard": ErrandLevel(2, (2, 3), 1, 2, ("", "trait", "day"), 24, 32),
}


def town_for(task: Task) -> Town:
    """The town that a task is about."""
    assert task.difficulty is not None
    return _town(task.params["town"], LEVELS[task.difficulty])


def _town(key: str, level: ErrandLevel) -> Town:
    days_fill = "day" in level.fallbacks
    return town_of(key, level.venues, reachable=level.requests > 0, days_fill=days_fill, one_word=level.one_word)


def errand_tasks(split: str, difficulty: str) -> GeneratedTasks:
    """The tasks of a split: what is booked in the end, taken together, occurs in no other."""
    return GeneratedTasks(lambda number: _task(split, difficulty, number), SIZES[split], f"{split}/{difficulty}/")


@lru_cache(maxsize=1024)  # a group plays one task many times, and drawing it takes several times a reset
def _task(split: str, difficulty: str, number: int) -> Task:
    level, name = LEVELS[difficulty], f"{split}/{difficulty}/{number}"
    draws, key = Draws("booking", name), digest("town", name)
    town = _town(key, level)
    while True:
        kinds = KINDS if level.errands == 2 else (draws.pick(KINDS),)
        ends = [_end(draws, town, kind, level) for kind in kinds]
        if split_of(digest("booked", ends)) != split.removesuffix("_unseen"):
            continue
        errands = [_errand(draws, town, end, level) for end in ends]
        if None not in errands:
            words = "unseen" if split == UNSEEN_SPLIT else "seen"
            return Task(name, split, {"town": key, "errands": errands, "words": words}, difficulty, kinds)


def _end(draws: Draws, town: Town, kind: str, level: ErrandLevel) -> dict[str, Any]:
    """Final booking: requirements on the venue, date and party."""
    target = draws.pick(town.venues[kind])
    traits = {trait: getattr(target, trait) for trait in TRAITS[kind]}
    constraints = draws.pick(level.constraints)
    while len(traits) > constraints:
        traits.pop(draws.pick(list(traits)))
    return {"kind": kind, "traits": traits, "terms": {term: draws.pick(SLOTS[term].values) for term in TERMS[kind]}}


def _errand(draws: Draws, town: Town, end: Mapping[str, Any], level: ErrandLevel) -> dict[str, Any] | None:
    """First wish, with a fallback to the final booking; None if this town makes it impossible."""
    kind, traits, terms = end["kind"], dict(end["traits"]), dict(end["terms"])
    fit = town.find(kind, traits)
    if all(terms["day"] in venue.full for venue in fit):
        return None
    fallback: dict[str, str] = {}
    way = draws.pick(level.fallbacks) if level.fallbacks else ""
    if way == "trait":
        trait = draws.pick(list(traits))
        fallback[trait], traits[trait] = traits[trait], draws.pick(SLOTS[trait].values)
        if town.find(kind, traits):
            return None
    elif way == "day":
        full = [day for day in SLOTS["day"].values if all(day in venue.full for venue in fit)]
        if not full:
            return None
        fallback["day"], terms["day"] = terms["day"], draws.pick(full)
    questions = ["phone", "address"]
    while len(questions) > level.requests:
        questions.pop(draws.below(len(questions)))
    first_traits = list(traits)[: level.opening_traits]
    return {
        "kind": kind,
        "traits": traits,
        "terms": terms,
        "fallback": fallback,
        "asked": questions,
        "told": first_traits,
    }


def goal_of(task: Task) -> Goal:
    """The goal of the agenda user."""
    goal = None
    for errand in reversed(task.params["errands"]):
        goal = Goal(
            wishes={errand["kind"]: WISHES[errand["kind"]]},
            facts={**errand["traits"], **errand["terms"]},
            opening=tuple(errand["told"]),
            requests=(*errand["asked"], "reference"),
            fallbacks=errand["fallback"],
            then=goal,
        )
    assert goal is not None
    return goal


def in_words(task: Task) -> str:
    """The goal for a model that plays the user."""
    sentences = []
    for errand in task.params["errands"]:
        facts, instead = {**errand["traits"], **errand["terms"]}, errand["fallback"]
        give_way = f"If there is nothing suitable, take instead {_listed(instead)}. " if instead else ""
        questions = ", ".join([*errand["asked"], "reference"])
        sentences.append(
            f"You want {WISHES[errand['kind']]}: {_listed(facts)}. {give_way}You also want to know: {questions}."
        )
    return "\nThen: ".join(sentences) + "\nIn your first message say what you want to book and only one of these facts."


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{SLOTS[name].noun} {value}" for name, value in facts.items())
