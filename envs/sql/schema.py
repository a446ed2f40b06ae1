"""Schemas of small databases, drawn from words, and their rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import is_held_out
from manyturn.envs.sql.vocabulary import CATEGORIES, NOUNS, NUMBERS, row_name

Row = tuple[Any, ...]
STYLES = ("plain", "prefix", "suffix", "capital")
"""Styles of the names of tables and columns; all but the first must be read before a query can use them."""
_ROWS = (14, 22)
_MOST_NUMBER = 199


@dataclass(frozen=True, slots=True)
class Column:
    """A column that questions are about.

    Args:
        word: its word in questions.
        name: its name in the database.
        values: what it may hold, as stored; empty for numbers.
    """

    word: str
    name: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table with an id, a name, and columns; ``link`` names the row of another table that a row belongs to.

    Args:
        noun: singular noun of a row.
        name: name in the database.
        key: name of the id.
        label: name of the column with the rows' names.
        categories: columns of text.
        numbers: columns of whole numbers.
        parent: number of the table that its rows belong to, or None.
        link: name of the column with the parent's id; empty without a parent.
    """

    noun: str
    name: str
    key: str
    label: str
    categories: tuple[Column, ...]
    numbers: tuple[Column, ...]
    parent: int | None
    link: str

    @property
    def plural(self) -> str:
        return f"{self.noun}s"

    @property
    def column_names(self) -> list[str]:
        named = [self.key, self.label, *(column.name for column in (*self.categories, *self.numbers))]
        return [*named, self.link] if self.link else named


class Schema:
    """The tables that a task's params describe.

    Args:
        params: ``style``, ``case`` of stored text, and ``tables``, each with ``noun``, ``categories``, ``numbers`` and
            ``parent`` (-1: none).
    """

    def __init__(self, params: Mapping[str, Any]):
        self.params = params
        nouns = [table["noun"] for table in params["tables"]]
        self.tables = tuple(self._table(table, nouns) for table in params["tables"])

    def _table(self, table: Mapping[str, Any], nouns: Sequence[str]) -> Table:
        noun, style = table["noun"], self.params["style"]
        categories = [
            Column(word, _styled(word, noun, style), tuple(stored(value, self.params["case"]) for value in values))
            for word, values in table["categories"].items()
        ]
        numbers = [Column(word, _styled(word, noun, style)) for word in table["numbers"]]
        parent = None if table["parent"] < 0 else int(table["parent"])
        link = "" if parent is None else _styled(f"{nouns[parent]}_id", noun, style)
        name = {"prefix": f"t_{noun}", "suffix": f"{noun}_list", "capital": f"{noun.upper()}S"}.get(style, f"{noun}s")
        key, label = _styled("id", noun, style), _styled("name", noun, style)
        return Table(noun, name, key, label, tuple(categories), tuple(numbers), parent, link)

    @cached_property
    def by_name(self) -> dict[str, Table]:
        return {table.name: table for table in self.tables}

    def create_statements(self) -> list[str]:
        """Statements that make the tables."""
        statements = []
        for table in self.tables:
            columns = [f"{table.key} INTEGER PRIMARY KEY", f"{table.label} TEXT"]
            columns += [f"{column.name} TEXT" for column in table.categories]
            columns += [f"{column.name} INTEGER" for column in table.numbers]
            columns += [f"{table.link} INTEGER"] if table.link else []
            statements.append(f"CREATE TABLE {table.name} ({', '.join(columns)})")
        return statements

    def describe(self, table: Table) -> str:
        """A table's columns, with the values of text and the target of a link."""
        columns = [table.key, table.label]
        columns += [f"{column.name} ({', '.join(map(repr, column.values))})" for column in table.categories]
        columns += [f"{column.name} (number)" for column in table.numbers]
        if table.parent is not None:
            parent = self.tables[table.parent]
            columns.append(f"{table.link} (= {parent.key} of {parent.name})")
        return f"{table.name}: {', '.join(columns)}"

    def rows(self, key: str, only: Iterable[int] | None = None) -> dict[int, list[Row]]:
        """Rows by number of the table, drawn by a key: names and numbers of a table are all different.

        Args:
            only: tables that are needed; they have the same rows without the others.
        """
        numbers = range(len(self.tables)) if only is None else only
        return {number: self._rows(key, number) for number in numbers}

    def _rows(self, key: str, number: int) -> list[Row]:
        table, count = self.tables[number], _row_count(key, number)
        draws = Draws("rows of a table", key, number)
        names = [row_name(place) for place in _distinct(draws, 14_400, count)]
        texts = [[draws.pick(column.values) for _ in range(count)] for column in table.categories]
        numbers = [[value + 1 for value in _distinct(draws, _MOST_NUMBER, count)] for _ in table.numbers]
        links: list[list[int]] = []
        if table.parent is not None:  # the last three parents have no child
            parents = _row_count(key, table.parent) - 3
            links = [[draws.between(1, parents) for _ in range(count)]]
        return list(zip(range(1, count + 1), names, *texts, *numbers, *links, strict=True))


def stored(value: str, case: str) -> str:
    """A value as the database stores it: plain, or in capitals."""
    return value.upper() if case == "upper" else value


def _styled(word: str, noun: str, style: str) -> str:
    """Name of a column.

    >>> [_styled("age", "singer", style) for style in STYLES]
    ['age', 'singer_age', 'age_col', 'AGE']
    """
    return {"prefix": f"{noun}_{word}", "suffix": f"{word}_col", "capital": word.upper()}.get(style, word)


def _distinct(draws: Draws, limit: int, count: int) -> list[int]:
    """Different numbers below a limit, in the order in which they were drawn."""
    numbers: dict[int, None] = {}
    while len(numbers) < count:
        numbers[draws.below(limit)] = None
    return list(numbers)


def _row_count(key: str, number: int) -> int:
    return Draws("row count", key, number).between(*_ROWS)


def draw_schema(draws: Draws, tables: int, columns: tuple[int, int], plain: bool, unseen: bool) -> dict[str, Any]:
    """Params of a schema in which each table belongs to the one before.

    Args:
        tables: how many.
        columns: text columns and numeric columns of each table.
        plain: names and values as in questions, with three values for each text column instead of four.
        unseen: tables of the structures that only ``test_unseen`` has; otherwise of all others.
    """
    params: dict[str, Any] = {
        "style": "plain" if plain else draws.pick(STYLES),
        "case": "plain" if plain else draws.pick(("plain", "upper")),
        "tables": [],
    }
    for number in range(tables):
        while True:
            table = _drawn_table(draws, columns, 3 if plain else 4)
            nouns = [other["noun"] for other in params["tables"]]
            structure = (table["noun"], sorted(table["categories"]), sorted(table["numbers"]))
            if table["noun"] not in nouns and is_held_out("sql table", *structure) == unseen:
                break
        params["tables"].append({**table, "parent": -1 if plain else number - 1})
    return params


def _drawn_table(draws: Draws, columns: tuple[int, int], values: int) -> dict[str, Any]:
    texts, numbers = columns
    words = list(CATEGORIES)
    chosen = [words[place] for place in _distinct(draws, len(words), texts)]
    return {
        "noun": draws.pick(NOUNS),
        "categories": {
            word: [CATEGORIES[word][place] for place in _distinct(draws, len(CATEGORIES[word]), values)]
            for word in chosen
        },
        "numbers": [NUMBERS[place] for place in _distinct(draws, len(NUMBERS), numbers)],
    }
