"""Questions over a schema: a choice for each slot, the English of it, and the query that answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from manyturn.envs.sql.schema import Column, Schema, Table
from manyturn.envs.sql.vocabulary import FUNCTIONS

_COMPARED = {"<": "below", ">": "above"}


class Filter(NamedTuple):
    """A condition on a column of a table.

    Args:
        table: number of the table.
        column: word of the column.
        operator: ``=``, ``<`` or ``>``.
        value: text as in the question, or a number.
    """

    table: int
    column: str
    operator: str
    value: str | int


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the rows of one table.

    Args:
        kind: count, list, measure, top, distinct, group, most, many, above or without.
        table: number of the table.
        function: aggregate, for ``measure`` and ``group`` (COUNT there counts rows).
        column: word of the column that is measured, sorted by, or counted.
        filters: conditions on the table's rows, or on those of its parent.
        group: table and word of the text column that rows are grouped by.
        limit: rows of ``top``, or the bound of ``many``.
        descending: the order of ``top`` and ``most``.
    """

    kind: str
    table: int
    function: str = ""
    column: str = ""
    filters: tuple[Filter, ...] = ()
    group: tuple[int, str] | None = None
    limit: int = 0
    descending: bool = True

    def plain(self) -> dict[str, Any]:
        """Plain values of the slots that are filled."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["filters"] = [list(condition) for condition in self.filters]
        values["group"] = list(self.group) if self.group else None
        return values

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Question":
        """Inverse of ``plain``."""
        group = plain["group"]
        return cls(
            kind=plain["kind"],
            table=plain["table"],
            function=plain["function"],
            column=plain["column"],
            filters=tuple(Filter(*condition) for condition in plain["filters"]),
            group=(group[0], group[1]) if group else None,
            limit=plain["limit"],
            descending=plain["descending"],
        )

    def tables(self, schema: Schema) -> list[int]:
        """Numbers of the tables that its query reads, its own first."""
        named = [self.table, *(condition.table for condition in self.filters)]
        named += [self.group[0]] if self.group else []
        if self.kind == "without":
            named.append(child_of(schema, self.table))
        return list(dict.fromkeys(named))


def child_of(schema: Schema, table: int) -> int:
    """Number of the table whose rows belong to those of a table."""
    return next(number for number, other in enumerate(schema.tables) if other.parent == table)


def english(schema: Schema, question: Question) -> str:
    """The question in English."""
    table = schema.tables[question.table]
    rows = f"{table.plural}{_conditions(schema, question)}"
    grouped = _grouped(schema, question)
    order = "highest" if question.descending else "lowest"
    measure = f"the {FUNCTIONS.get(question.function, '')} {question.column} of" if question.column else "the number of"
    match question.kind:
        case "count":
            return f"How many {rows} are there?"
        case "list":
            return f"What are the names of the {rows}?"
        case "measure":
            return f"What is {measure} the {rows}?"
        case "top":
            return (
                f"What are the names of the {question.limit} {rows} with the {order} {question.column}, in that order?"
            )
        case "distinct":
            return f"How many different values of {question.column} do the {rows} have?"
        case "group":
            return f"For each {grouped}, what is {measure} the {rows}?"
        case "most":
            return f"Which {grouped} has the {'most' if question.descending else 'fewest'} {rows}?"
        case "many":
            return f"Which values of {grouped} have more than {question.limit} {rows}?"
        case "above":
            return (
                f"What are the names of the {rows} with more {question.column} than the average of all {table.plural}?"
            )
        case _:
            child = schema.tables[child_of(schema, question.table)]
            return f"What are the names of the {table.plural} that no {child.noun} belongs to?"


def _conditions(schema: Schema, question: Question) -> str:
    texts = []
    for number, word, operator, value in question.filters:
        owner = "" if number == question.table else f"{schema.tables[number].noun}'s "
        compared = f"{_COMPARED[operator]} " if operator in _COMPARED else ""
        texts.append(f"{owner}{word} is {compared}{value}")
    return f" whose {' and whose '.join(texts)}" if texts else ""


def _grouped(schema: Schema, question: Question) -> str:
    if question.group is None:
        return ""
    number, word = question.group
    return word if number == question.table else f"{word} of the {schema.tables[number].noun}"


def query(schema: Schema, question: Question) -> str:
    """The query that answers a question."""
    table = schema.tables[question.table]
    names = _Names(schema, question)
    label = names.of(question.table, table.label)
    column = names.word(question.table, question.column) if question.column else ""
    group = names.word(*question.group) if question.group else ""
    source, where = names.source(), names.where()
    direction = "DESC" if question.descending else "ASC"
    match question.kind:
        case "count":
            return f"SELECT COUNT(*) FROM {source}{where}"
        case "list":
            return f"SELECT {label} FROM {source}{where}"
        case "measure":
            return f"SELECT {question.function}({column}) FROM {source}{where}"
        case "top":
            return f"SELECT {label} FROM {source}{where} ORDER BY {column} {direction} LIMIT {question.limit}"
        case "distinct":
            return f"SELECT COUNT(DISTINCT {column}) FROM {source}{where}"
        case "group":
            measure = "COUNT(*)" if question.function == "COUNT" else f"{question.function}({column})"
            return f"SELECT {group}, {measure} FROM {source}{where} GROUP BY {group}"
        case "most":
            return f"SELECT {group} FROM {source}{where} GROUP BY {group} ORDER BY COUNT(*) {direction} LIMIT 1"
        case "many":
            return f"SELECT {group} FROM {source}{where} GROUP BY {group} HAVING COUNT(*) > {question.limit}"
        case "above":
            average = f"{column} > (SELECT AVG({column}) FROM {table.name})"
            return f"SELECT {label} FROM {source}{f'{where} AND ' if where else ' WHERE '}{average}"
        case _:
            child = schema.tables[child_of(schema, question.table)]
            return f"SELECT {label} FROM {source} WHERE {table.key} NOT IN (SELECT {child.link} FROM {child.name})"


class _Names:
    """Names of columns in a query: with their tables where it joins two."""

    def __init__(self, schema: Schema, question: Question):
        self._schema, self._question = schema, question
        joined = [] if question.kind == "without" else question.tables(schema)[1:]
        self._joined = [schema.tables[number] for number in joined]

    def of(self, number: int, name: str) -> str:
        return f"{self._schema.tables[number].name}.{name}" if self._joined else name

    def word(self, number: int, word: str) -> str:
        return self.of(number, column_of(self._schema.tables[number], word).name)

    def source(self) -> str:
        child = self._schema.tables[self._question.table]
        joins = [
            f" JOIN {parent.name} ON {child.name}.{child.link} = {parent.name}.{parent.key}" for parent in self._joined
        ]
        return f"{child.name}{''.join(joins)}"

    def where(self) -> str:
        terms = []
        for number, word, operator, value in self._question.filters:
            stored = f"'{self._stored(number, word, value)}'" if isinstance(value, str) else str(value)
            terms.append(f"{self.word(number, word)} {operator} {stored}")
        return f" WHERE {' AND '.join(terms)}" if terms else ""

    def _stored(self, number: int, word: str, value: str) -> str:
        values = column_of(self._schema.tables[number], word).values
        return next(text for text in values if text.lower() == value.lower())


def column_of(table: Table, word: str) -> Column:
    """The column with a word."""
    columns: Sequence[Column] = (*table.categories, *table.numbers)
    return next(column for column in columns if column.word == word)
