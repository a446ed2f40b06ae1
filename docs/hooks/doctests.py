"""Examples of docstrings as code: Markdown would take ``>>>`` for a quotation in a quotation in a quotation."""

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^ *>>> .*(?:\n *\S.*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """A docstring's text with a fence around each example, which goes on to the next empty line."""
    return EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)


class FencedExamples(Extension):
    """Fences the examples of every docstring before it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
