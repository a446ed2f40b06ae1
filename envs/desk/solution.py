"""Solution of a task: the right changes, the facts to say, and the calls that get there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.desk.base_tools import NOTHING_TO_ANSWER
from manyturn.envs.desk.database import RecordKey, Store
from manyturn.envs.desk.desks.packs import PACKS
from manyturn.envs.desk.pack import Kind, Pack
from manyturn.envs.desk.tasks import owned, perform, tables_of
from manyturn.envs.tools.calls import CallRequest

_RULE = re.compile(r"(?<!\w)r\d+(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)*(?!\w)")


@dataclass(frozen=True)
class Errand:
    """One request.

    Args:
        kind: of request.
        call: that would fulfil it.
        reads: calls that find out all that ``call`` and the decision need.
        slots: slot -> what the customer says.
        words: how the customer names the thing that it is about.
        rule: that forbids it, or ``""``.
        right: the records that fulfilling it changes, as all requests leave them.
    """

    kind: Kind
    call: CallRequest
    reads: tuple[CallRequest, ...]
    slots: Mapping[str, str]
    words: str
    rule: str
    right: Mapping[RecordKey, Mapping[str, Any]]

    @property
    def sentence(self) -> str:
        return self.kind.ticket.format(object=self.words, **self.slots)


@dataclass(frozen=True)
class Solution:
    """All of a task.

    Args:
        pack: the desk.
        user: the customer's record.
        user_id: its key.
        way: how things are found.
        errands: in the order in which they are asked for.
        figure: words and value of the figure that is asked for, or None.
        figure_reads: calls that find it out.
        delta: what must have changed in the end.
    """

    pack: Pack
    user: Mapping[str, Any]
    user_id: str
    way: str
    errands: tuple[Errand, ...]
    figure: tuple[str, str] | None
    figure_reads: tuple[CallRequest, ...]
    delta: Mapping[RecordKey, Mapping[str, Any]]

    @property
    def rules(self) -> frozenset[str]:
        """The rules that the agent must refuse by."""
        return frozenset(errand.rule for errand in self.errands if errand.rule)

    @property
    def reads(self) -> Iterator[CallRequest]:
        """Every read that is needed, in order; some occur twice."""
        for errand in self.errands:
            yield from errand.reads
        yield from self.figure_reads

    @property
    def answer(self) -> str:
        """The shortest text that says all that must be said."""
        parts = sorted(self.rules, key=lambda name: int(name[1:]))
        return ", ".join([*parts, *([self.figure[1]] if self.figure else [])]) or NOTHING_TO_ANSWER

    def answered_by(self, text: str) -> bool:
        """True if a text names the rules to refuse by, no others, and the requested figure."""
        return self.named(text) == self.rules and self.tells_figure(text)

    def named(self, text: str) -> frozenset[str]:
        """The rules that a text names."""
        return frozenset(map(str.upper, _RULE.findall(text.lower())))

    def tells_figure(self, text: str) -> bool:
        """True if a line holds the requested figure, if there is one, and at most three others."""
        if self.figure is None:
            return True
        lines = (_NUMBER.findall(line.replace(",", "")) for line in text.splitlines())
        return any(self.figure[1] in numbers and len(numbers) <= 4 for numbers in lines)


def solution_of(task: Task) -> Solution:
    """Solution of a task, cached because a group plays one task many times."""
    return _solution(_Problem(task))


class _Problem:
    """A task as a key."""

    __slots__ = ("task",)

    def __init__(self, task: Task):
        self.task = task

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Problem) and (other.task is self.task or other.task.content == self.task.content)


@lru_cache(maxsize=4096)
def _solution(problem: _Problem) -> Solution:
    params = problem.task.params
    pack, tables, user, way = PACKS[params["pack"]], tables_of(params), params["user"], params["way"]
    before, store = Store(tables), Store(tables)
    kinds = {kind.name: kind for kind in pack.kinds}
    drafts = []
    for request in params["requests"]:
        kind = kinds[request["kind"]]
        call = CallRequest(kind.tool, dict(request["arguments"]))
        changed = store.delta()
        if not request["rule"]:
            perform(pack, store, call)
        touched = [place for place, fields in store.delta().items() if changed.get(place) != fields]
        drafts.append((request, kind, call, touched))
    delta = store.delta()
    errands = []
    for request, kind, call, touched in drafts:
        reads = (*_lookup(pack, before, user, kind.about, request["key"], way), *kind.reads(before, call.arguments))
        right = {place: delta[place] for place in touched}
        errands.append(Errand(kind, call, reads, request["told"], request["words"], request["rule"], right))
    figure, figure_reads = None, ()
    if params["asked"]:
        about, field = next(iter(pack.things)), params["asked"]["field"]
        place = (pack.things[about].table, params["asked"]["key"])
        figure = f"{pack.figures[field]} of {params['asked']['words']}", str(before[place][field])
        figure_reads = _lookup(pack, before, user, about, params["asked"]["key"], way)
    record = before["users", user]
    return Solution(pack, record, user, way, tuple(errands), figure, figure_reads, delta)


def _lookup(pack: Pack, store: Store, user: str, about: str, key: str, way: str) -> tuple[CallRequest, ...]:
    """The calls that find a thing: at once by its id, else through the customer, one after the other."""
    thing, record = pack.things[about], store["users", user]
    if way == "id":
        return (CallRequest(thing.get, {about: key}),)
    changes = {
        "user": (),
        "email": (CallRequest("find_user_by_email", {"email": record["email"]}),),
        "name": (CallRequest("find_user_by_name", {"name": record["name"], "zip_code": record["zip_code"]}),),
    }[way]
    keys = owned(store, user, thing)
    tried = () if thing.table == "users" else keys[: keys.index(key) + 1]
    return (
        *changes,
        CallRequest("get_user", {"user_id": user}),
        *(CallRequest(thing.get, {about: one}) for one in tried),
    )
