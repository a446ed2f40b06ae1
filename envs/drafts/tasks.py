"""Tasks: the preferences of a user, and items to write about."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, is_held_out, params_of_split
from manyturn.envs.drafts.style import DAYS, HOURS, SLOTS, Style

SIZES = {"train": 100_000, "validation": 5_000, "test": 5_000, "test_unseen": 5_000}
UNSEEN = "test_unseen"
_NAMES = (
    *("Mira", "Oskar", "Lena", "Tariq", "Ines", "Pavel", "Nadia", "Hugo", "Yuki", "Amara", "Felix", "Greta"),
    *("Ravi", "Selma", "Milan", "Zoe", "Bruno", "Freya", "Kofi", "Lucia", "Anton", "Maya", "Emil", "Tessa"),
)
_THINGS = (
    *("meeting", "lunch", "call", "visit", "review", "lesson", "concert", "dinner", "walk", "game"),
    *("party", "tour", "talk", "test", "show", "trip", "race", "class", "interview", "rehearsal"),
)
GROUPS = ("colleague", "customer")


@dataclass(frozen=True, slots=True)
class DraftsLevel:
    """A difficulty.

    Args:
        slots: in which a user has preferences; the others have their default.
        items: to write about.
        scored: of the last items, whose drafts must need no edit.
        corrections: that a user makes in one draft at most.
        groups: of recipients, each with preferences of its own.
        turns: that an episode may take.
    """

    slots: tuple[str, ...]
    items: int
    scored: int
    corrections: int
    groups: int
    turns: int


_ALL = tuple(SLOTS)
LEVELS = {
    "tiny": DraftsLevel(("greeting", "day", "closing"), items=3, scored=2, corrections=9, groups=1, turns=4),
    "easy": DraftsLevel(_ALL, items=4, scored=3, corrections=9, groups=1, turns=6),
    "medium": DraftsLevel(_ALL, items=6, scored=2, corrections=2, groups=1, turns=8),
    "hard": DraftsLevel(_ALL, items=10, scored=2, corrections=2, groups=2, turns=12),
}


def tasks(split: str, difficulty: str) -> GeneratedTasks:
    """The tasks of a split, made when asked for."""
    return GeneratedTasks(lambda number: _task(split, difficulty, number), SIZES[split], f"{split}/{difficulty}/")


@lru_cache(maxsize=4096)  # a group plays one task many times
def _task(split: str, difficulty: str, number: int) -> Task:
    level = LEVELS[difficulty]
    draws = Draws("drafts task", split, difficulty, number)
    params = params_of_split(lambda: _drawn(draws, level, split == UNSEEN), split)
    return Task(f"{split}/{difficulty}/{number}", split, params, difficulty)


def _drawn(draws: Draws, level: DraftsLevel, unseen: bool) -> dict[str, Any]:
    preferences = [_preferences(draws, level.slots, unseen) for _ in range(level.groups)]
    # Each group comes as often, in an order of its own before the scored items, which begin with any of them.
    groups = _shuffled(draws, [GROUPS[place % level.groups] for place in range(level.items - level.scored)])
    groups += _shuffled(draws, [GROUPS[place % level.groups] for place in range(level.scored)])
    items = [
        {
            "group": group,
            "name": draws.pick(_NAMES),
            "thing": draws.pick(_THINGS),
            "day": draws.pick(list(DAYS)),
            "hour": draws.pick(list(HOURS)),
        }
        for group in groups
    ]
    return {"preferences": preferences, "items": items}


def _preferences(draws: Draws, slots: Sequence[str], unseen: bool) -> dict[str, str]:
    """A user's preferences; a fifth of their combinations belong to ``test_unseen`` only."""
    while True:
        drawn = {slot: draws.pick(SLOTS[slot]) for slot in slots}
        if is_held_out("preferences", drawn) == unseen:
            return drawn


def _shuffled(draws: Draws, items: list[str]) -> list[str]:
    left, mixed = list(items), list[str]()
    while left:
        mixed.append(left.pop(draws.below(len(left))))
    return mixed


def preferred(params: Any, group: str) -> Style:
    """Preferences for a group of recipients."""
    return params["preferences"][GROUPS.index(group)]
