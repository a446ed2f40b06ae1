"""Calls that an agent could make that has read what was said so far: for the random policy."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.envs.desk.pack import Pack
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool import Schema

_MOST = 6  # calls of one tool
_ID = re.compile(r"(?<!\w)([A-Z])\d+(?!\w)")
_WORDS = {
    "email": re.compile(r"[\w.]+@mail\.com"),
    "zip_code": re.compile(r"(?<!\w)\d{5}(?!\w)"),
    "address": re.compile(r"(?<!\w)\d+ [A-Z]\w+ [A-Z]\w+, [A-Z]\w+"),
    "name": re.compile(r"(?<!\w)[A-Z][a-z]+ [A-Z][a-z]+(?![\w,])"),
}
_PAIR = "{}: {}".format


class Commands:
    """Grows with what is read: ids wherever they stand, names and addresses where a customer says them.

    Args:
        pack: the desk.
        schemas: of its tools.
    """

    def __init__(self, pack: Pack, schemas: Sequence[Schema]):
        self._ids = pack.ids
        self._tools = [_Pattern(schema["function"]) for schema in schemas]
        self._closing = [call_text("close", answer=rule.name) for rule in pack.rules]
        self._seen: dict[str, dict[str, None]] = {}
        self.forget()

    def forget(self) -> None:
        """Begin again."""
        self.load({sort: [] for sort in (*self._ids.values(), *_WORDS)})

    def read(self, text: str) -> None:
        """Take in what a tool says."""
        for match in _ID.finditer(text):
            if match[1] in self._ids:
                self._note(self._ids[match[1]], match[0])

    def hear(self, text: str) -> None:
        """Take in what a customer says."""
        self.read(text)
        for sort, pattern in _WORDS.items():
            for match in pattern.findall(text):
                self._note(sort, match)

    def _note(self, sort: str, value: str) -> None:
        if value not in self._seen[sort]:
            self._seen[sort][value] = None
            self._new.add(sort)

    def listed(self) -> list[str]:
        """Calls with values that were read, the last ones first, at most six of each tool; and ways to close."""
        for place, tool in enumerate(self._tools):
            if not self._new.isdisjoint(tool.sorts) or self._calls[place] is None:
                self._calls[place] = tool.calls(self._seen)
        self._new.clear()
        return [*itertools.chain.from_iterable(self._calls), *self._closing]

    def save(self) -> dict[str, list[str]]:
        """Parsed command as plain values."""
        return {sort: list(values) for sort, values in self._seen.items()}

    def load(self, seen: Mapping[str, Sequence[str]]) -> None:
        """Inverse of ``save``."""
        self._seen = {sort: dict.fromkeys(values) for sort, values in seen.items()}
        self._new: set[str] = set()
        self._calls: list[Any] = [None] * len(self._tools)


class _Pattern:
    """Writes the calls of one tool.

    Args:
        function: its schema.
    """

    def __init__(self, function: Mapping[str, Any]):
        names, shapes = function["parameters"]["required"], function["parameters"]["properties"]
        self._head = f'{{"name": {json.dumps(function["name"])}, "arguments": {{'
        self._names = [json.dumps(name) for name in names]
        self._fixed = [_fixed(shapes[name]) for name in names]
        # "new_name" takes names, and "old_name" too.
        self._sorts = [name.removeprefix("new_").removeprefix("old_") for name in names]
        self.sorts = {sort for sort, fixed in zip(self._sorts, self._fixed, strict=True) if fixed is None}

    def calls(self, seen: Mapping[str, dict[str, None]]) -> list[str]:
        """Calls in canonical text, with values that were seen."""
        pools = [
            [f'"{value}"' for value in itertools.islice(reversed(seen[sort]), _MOST)] if fixed is None else fixed
            for sort, fixed in zip(self._sorts, self._fixed, strict=True)
        ]
        return [
            f"{self._head}{', '.join(map(_PAIR, self._names, values))}}}}}"
            for values in itertools.islice(itertools.product(*pools), _MOST)
        ]


def _fixed(shape: Mapping[str, Any]) -> list[str] | None:
    """Values in JSON that need not be read anywhere, or None."""
    if "enum" in shape:
        return [json.dumps(value) for value in shape["enum"]]
    return {"boolean": ["true", "false"], "integer": ["1", "2", "5"]}.get(shape["type"])
