"""Tasks of a desk, drawn until they are what their shape says.

A request is drawn at random and then judged by the policy, on the database as the requests before it leave it: it is to
be fulfilled if it breaks no rule, and to be refused if it breaks exactly the one that the shape names.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task
from manyturn.envs.desk.customer_generator import split_of_user
from manyturn.envs.desk.database import Store, Tables
from manyturn.envs.desk.desks.packs import PACKS
from manyturn.envs.desk.pack import Kind, Pack, Thing
from manyturn.envs.desk.task_shapes import LEVELS, Shape, draw_shape
from manyturn.envs.tools.calls import CallRequest
from manyturn.envs.tools.tool import ToolError

SIZES = {"train": 100_000, "validation": 5_000, "test": 5_000}
_ATTEMPTS, _TRIES = 20_000, 12


def tasks(split: str, pack: str, difficulty: str, users: int, database: int) -> GeneratedTasks:
    """The tasks of a split, made when asked for."""
    family = _Family(split, pack, difficulty, users, database)
    return GeneratedTasks(lambda n: _task(family, n), SIZES[split], family.prefix)


class _Family(NamedTuple):
    """The tasks of one split, desk, difficulty and database."""

    split: str
    pack: str
    difficulty: str
    users: int
    database: int

    @property
    def prefix(self) -> str:
        return f"{self.split}/{self.pack}/{self.difficulty}/{self.users}-{self.database}/"


@lru_cache(maxsize=4096)  # a group plays one task many times
def _task(family: _Family, number: int) -> Task:
    split, pack, difficulty, users, database = family
    desk, level = PACKS[pack], LEVELS[difficulty]
    tables = desk.tables(users, database)
    draws = Draws("desk task", family.prefix, number)
    mine = _users(split, users)
    shape = draw_shape(draws, desk, level, split)
    for attempt in range(_ATTEMPTS):
        if attempt % 200 == 199:  # nobody has such requests all at once
            shape = draw_shape(draws, desk, level, split)
        params = _drawn(draws, desk, Store(tables), draws.pick(mine), shape)
        if params is not None:
            params = {"pack": pack, "users": users, "database": database, **params}
            refused = any(" " in name for name in shape.requests)
            tags = (f"{len(shape.requests)} requests", "refusal" if refused else "no refusal")
            return Task(f"{family.prefix}{number}", split, params, difficulty, tags)
    raise RuntimeError(f"no task of level {level} for the desk {pack}: its database has no such requests")


@lru_cache(maxsize=64)
def _users(split: str, users: int) -> tuple[str, ...]:
    return tuple(key for key in (f"C{number + 1}" for number in range(users)) if split_of_user(key) == split)


def _drawn(draws: Draws, desk: Pack, store: Store, user: str, shape: Shape) -> dict[str, Any] | None:
    """The params of a task of this shape for a customer, or None if the draw does not give one."""
    before, used, requests = Store(store.tables), set[str](), []
    for name in shape.requests:
        kind_name, _, rule = name.partition(" ")
        kind = next(kind for kind in desk.kinds if kind.name == kind_name)
        drawn_request = None
        for _ in range(_TRIES):
            drawn_request = _request(draws, desk, (before, store), _Wish(user, kind, rule, shape.way), used)
            if drawn_request is not None:
                break
        if drawn_request is None:
            return None
        used.add(drawn_request["key"])
        requests.append(drawn_request)
    figure = None
    if shape.figure:
        thing = next(iter(desk.things.values()))
        key = draws.pick(owned(store, user, thing))
        words = describe(store, user, thing, key, shape.way)
        if words is None:
            return None
        figure = {"field": shape.figure, "key": key, "words": words}
    return {"user": user, "way": shape.way, "asked": figure, "requests": requests}


class _Wish(NamedTuple):
    """Kind of a request to draw: whose it is, the rule that it breaks, if any, and the way its thing is named."""

    user: str
    kind: Kind
    rule: str
    way: str


def _request(
    draws: Draws, desk: Pack, stores: tuple[Store, Store], wish: _Wish, used: set[str]
) -> dict[str, Any] | None:
    """A request that breaks the rule, or none where that is empty; fulfilled on the second store.

    Args:
        stores: before all requests, and after those before this one.
    """
    store, (user, kind, rule, way) = stores[1], wish
    thing = desk.things[kind.about]
    key = draws.pick(owned(store, user, thing))
    words = describe(store, user, thing, key, way)
    drawn = None if key in used or words is None else kind.draw(draws, store, key)
    if drawn is None:
        return None
    arguments, facts = drawn
    call = CallRequest(kind.tool, {kind.about: key, **arguments})
    breaks = [[rule_broken.name for rule_broken in desk.forbidding(view, call)] for view in stores]
    # What is refused must be forbidden whatever was done before.
    if breaks[1] != ([rule] if rule else []) or (rule and breaks[0] != breaks[1]):
        return None
    if not rule and not perform(desk, store, call):
        return None
    request = {"words": words, "told": dict(facts)}
    return {"kind": kind.name, "key": key, "arguments": call.arguments, **request, "rule": rule}


def perform(desk: Pack, store: Store, call: CallRequest) -> bool:
    """Make a call on a store; whether the tool did it and it changed something."""
    before = store.delta()
    try:
        getattr(desk.desk_tools(store), call.name)(**call.arguments)
    except ToolError:
        return False
    return store.delta() != before


def owned(store: Store, user: str, thing: Thing) -> tuple[str, ...]:
    """The keys of a customer's things of a sort."""
    return (user,) if thing.table == "users" else store["users", user][thing.table]


def describe(store: Store, user: str, thing: Thing, key: str, way: str) -> str | None:
    """Customer's words for a thing: its id, or a description that fits no other one; None if there is none."""
    if way == "id":
        return f"{thing.noun} {key}"
    others: set[str] = set()
    for other in owned(store, user, thing):
        if other != key:
            others.update(thing.words(store, other))
    words = next((words for words in thing.words(store, key) if words not in others), None)
    return None if words is None else thing.by.format(words=words)


def tables_of(params: Mapping[str, Any]) -> Tables:
    """The database of a task."""
    return PACKS[params["pack"]].tables(params["users"], params["database"])
