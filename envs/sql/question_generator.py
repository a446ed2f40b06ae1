"""Questions drawn over a schema, and those that differ from one in a single slot."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.sql.question import Filter, Question, column_of
from manyturn.envs.sql.schema import Schema
from manyturn.envs.sql.vocabulary import FUNCTIONS


@dataclass(frozen=True, slots=True)
class SQLLevel:
    """A difficulty.

    Args:
        tables: of the database.
        columns: text columns and numeric columns of each table.
        kinds: of questions.
        filters: most conditions of a question.
        compares: whether conditions compare numbers.
        joins: whether questions read two tables.
        plain: names as in questions, tables without links; and the admissible queries are all that can be asked.
        turns: that an episode may take.
    """

    tables: int
    columns: tuple[int, int]
    kinds: tuple[str, ...]
    filters: int
    compares: bool
    joins: bool
    plain: bool
    turns: int


_SIMPLE = ("count", "list", "measure")
LEVELS = {
    "tiny": SQLLevel(2, (2, 2), _SIMPLE, 1, compares=False, joins=False, plain=True, turns=6),
    "easy": SQLLevel(2, (2, 2), (*_SIMPLE, "top", "distinct"), 2, compares=True, joins=False, plain=False, turns=8),
    "medium": SQLLevel(2, (3, 2), (*_SIMPLE, "group"), 2, compares=True, joins=True, plain=False, turns=10),
    "hard": SQLLevel(
        3,
        (3, 3),
        ("top", "group", "most", "many", "above", "without"),
        2,
        compares=True,
        joins=True,
        plain=False,
        turns=14,
    ),
}


def draw_question(draws: Draws, schema: Schema, level: SQLLevel, kind: str) -> Question:
    """A question of a level and kind; its result may be empty or have ties."""
    last = len(schema.tables) - 1
    joins = level.joins and kind != "without"
    number = draws.below(last) if kind == "without" else draws.between(1 if joins else 0, last)
    table = schema.tables[number]
    if kind == "without":
        return Question(kind, number)
    most = {"most": 0, "many": 0, "top": 1}.get(kind, level.filters)  # of few rows none is first without a tie
    filters = _filters(draws, schema, level, number, joins)[:most]
    question = Question(kind, number, filters=filters)
    if kind in ("top", "most"):
        question = replace(question, descending=draws.below(2) == 0)
    if kind in ("measure", "top", "above"):
        question = replace(question, column=draws.pick(table.numbers).word)
    if kind == "measure":
        question = replace(question, function=draws.pick(list(FUNCTIONS)))
    if kind == "distinct":
        question = replace(question, column=draws.pick(table.categories).word)
    if kind == "group":
        function = draws.pick(("COUNT", *FUNCTIONS))
        column = "" if function == "COUNT" else draws.pick(table.numbers).word
        question = replace(question, function=function, column=column)
    if kind in ("group", "most", "many"):
        owner = table.parent if joins and table.parent is not None else number
        fixed = {condition.column for condition in question.filters if condition.table == owner}
        words = [column.word for column in schema.tables[owner].categories if column.word not in fixed]
        question = replace(question, group=(owner, draws.pick(words)))
    limit = {"top": draws.between(2, 4), "many": draws.between(1, 5)}.get(kind, 0)
    return replace(question, limit=limit)


def _filters(draws: Draws, schema: Schema, level: SQLLevel, number: int, joins: bool) -> tuple[Filter, ...]:
    """Conditions on different columns; where a question joins, the first is on the parent."""
    conditions: dict[tuple[int, str], Filter] = {}
    parent = schema.tables[number].parent
    for place in range(draws.between(1, level.filters)):
        owner = parent if joins and parent is not None and place == 0 else number
        table = schema.tables[owner]
        if level.compares and draws.below(3) == 0:
            word = draws.pick(table.numbers).word
            condition = Filter(owner, word, draws.pick("<>"), 10 * draws.between(4, 16))
        else:
            column = draws.pick(table.categories)
            condition = Filter(owner, column.word, "=", _value(schema, draws.pick(column.values), column.word))
        conditions.setdefault((owner, condition.column), condition)
    return tuple(conditions.values())


def _value(schema: Schema, stored: str, word: str) -> str:
    """A stored value as questions write it."""
    texts = [value for table in schema.params["tables"] for value in table["categories"].get(word, ())]
    return next(value for value in texts if value.lower() == stored.lower())


def all_questions(schema: Schema, number: int) -> Iterator[Question]:
    """All questions of the lowest level about a table."""
    table = schema.tables[number]
    for column in table.categories:
        for stored in column.values:
            filters = (Filter(number, column.word, "=", _value(schema, stored, column.word)),)
            yield Question("count", number, filters=filters)
            yield Question("list", number, filters=filters)
            for function in FUNCTIONS:
                for measured in table.numbers:
                    yield Question("measure", number, function, measured.word, filters)


def neighbours(schema: Schema, question: Question) -> Iterator[Question]:
    """Questions with another choice in one slot."""
    table = schema.tables[question.table]
    if question.function in FUNCTIONS:
        yield from (replace(question, function=other) for other in FUNCTIONS if other != question.function)
    if question.column:
        texts = question.kind == "distinct"
        words = [column.word for column in (table.categories if texts else table.numbers)]
        yield from (replace(question, column=word) for word in words if word != question.column)
    for place in range(len(question.filters)):
        for other in _other_filters(schema, question.filters, place):
            yield replace(question, filters=(*question.filters[:place], other, *question.filters[place + 1 :]))
    if question.group:
        owner, grouped = question.group
        fixed = {grouped, *(condition.column for condition in question.filters if condition.table == owner)}
        words = [column.word for column in schema.tables[owner].categories if column.word not in fixed]
        yield from (replace(question, group=(owner, word)) for word in words)
    if question.kind in ("top", "most"):
        yield replace(question, descending=not question.descending)
    if question.limit:
        yield replace(question, limit=question.limit + 1)
    if question.kind in ("count", "list"):
        yield replace(question, kind="list" if question.kind == "count" else "count")


def _other_filters(schema: Schema, filters: Sequence[Filter], place: int) -> Iterator[Filter]:
    condition = filters[place]
    if isinstance(condition.value, int):
        yield condition._replace(operator="<" if condition.operator == ">" else ">")
        yield condition._replace(value=condition.value + 10)
        return
    for stored in column_of(schema.tables[condition.table], condition.column).values:
        value = _value(schema, stored, condition.column)
        if value != condition.value:
            yield condition._replace(value=value)
