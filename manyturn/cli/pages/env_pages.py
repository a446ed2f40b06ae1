"""Sections of an environment's docstring, and the Markdown page made of them."""

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import gymnasium
from gymnasium.envs.registration import load_env_creator

from manyturn.envs.contract.options.plugins import load_plugins, where_else
from manyturn.envs.contract.registration.env_registry import UnknownEnv, arguments_of

SECTIONS = ("Task", "Observation", "Actions", "Reward", "End", "Splits", "Expert", "Floors")
"""What the docstring of a registered environment says, in this order, before ``Args``."""
_HEADER = re.compile(r"([A-Z][A-Za-z]*):")
_ENTRY = re.compile(r"(\w+(?:, \w+)*): (.*)")
_CODE = re.compile(r"(?<!`)``([^`]+)``(?!`)")


class Argument(NamedTuple):
    """An argument of a constructor; ``default`` is Python, or empty where there is none to show."""

    name: str
    default: str
    about: str


@dataclass(frozen=True)
class Described:
    """The docstring of a class.

    Attributes:
        about: its first line.
        sections: title -> text, in the order in which they appear; texts keep their lines.
        notes: paragraphs outside all sections.
    """

    about: str
    sections: Mapping[str, str]
    notes: str


def described(cls: type) -> Described:
    """Read the docstring of a class; one that has none does not borrow that of its base."""
    about, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("\n")
    sections: dict[str, list[str]] = {}
    notes: list[str] = []
    lines = notes
    for line in rest.split("\n"):
        header = _HEADER.fullmatch(line)
        if header is not None:
            lines = sections.setdefault(header[1], [])
            continue
        if line and not line.startswith(" "):
            lines = notes
        lines.append(line)
    texts = {title: textwrap.dedent("\n".join(body)).strip() for title, body in sections.items()}
    return Described(about, texts, "\n".join(notes).strip())


def arguments(cls: type) -> tuple[Argument, ...]:
    """The arguments of a constructor, each with what the class says of it, or the base that it refers to."""
    parameters = inspect.signature(cls).parameters
    names = arguments_of(cls)
    descriptions = [_argument_texts(described(base).sections.get("Args", "")) for base in cls.__mro__]

    def about(name: str) -> str:
        texts = (texts[name] for texts in descriptions if name in texts)
        return next((text for text in texts if not text.startswith("see ``")), "")

    def default(name: str) -> str:
        value = parameters[name].default if name in parameters else inspect.Parameter.empty
        return "" if value is inspect.Parameter.empty else repr(value)

    return tuple(Argument(name, default(name), about(name)) for name in names or parameters)


def _argument_texts(text: str) -> dict[str, str]:
    """Argument -> what ``Args`` says of it, on one line."""
    texts: dict[str, str] = {}
    names: tuple[str, ...] = ()
    for line in text.split("\n"):
        entry = _ENTRY.fullmatch(line)
        if entry is not None:
            names = tuple(entry[1].split(", "))
        for name in names:
            texts[name] = f"{texts.get(name, '')} {entry[2] if entry else line.strip()}".strip()
    return texts


def page(name: str) -> str:
    """The page of a registered environment, in Markdown.

    Raises:
        UnknownEnv: there is no such id; files have no page.
    """
    load_plugins()
    spec = gymnasium.registry.get(name)
    if spec is None or spec.entry_point is None:
        raise UnknownEnv(
            f"no registered environment {name!r}: a page needs an id that manyturn envs lists{where_else()}"
        )
    cls = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    if not isinstance(cls, type):
        raise UnknownEnv(f"{name} is made by a function, which has no page: register its class")
    description = described(cls)
    parts = [f"# {name}", description.about, f'```python\nimport manyturn as mt\n\nenv = mt.make("{name}")\n```']
    parts += [
        f"## {title}\n\n{text}" for title, text in description.sections.items() if title not in ("Args", "Raises")
    ]
    parts += [f"## Notes\n\n{description.notes}"] if description.notes else []
    parts += [_table("Arguments", ("argument", "default", "what it is"), [_row(one) for one in arguments(cls)])]
    parts += [_levels(getattr(cls, "levels", {}))]
    parts += [f"## Errors\n\n{description.sections['Raises']}"] if "Raises" in description.sections else []
    parts += [f"## Measure it\n\n```sh\nmanyturn envs {name}\nmanyturn check {name}\n```"]
    return _CODE.sub(r"`\1`", "\n\n".join(filter(None, parts))) + "\n"


def _row(argument: Argument) -> tuple[str, str, str]:
    return f"`{argument.name}`", f"`{argument.default}`" if argument.default else "", argument.about


def _levels(levels: Mapping[str, Any]) -> str:
    """Settings of the levels, where they have names."""
    settings = list(levels.values())
    if not settings or not all(is_dataclass(one) for one in settings):
        return ""
    names = [field.name for field in fields(settings[0])]
    rows = [(f"`{level}`", *(_shown(getattr(one, name)) for name in names)) for level, one in levels.items()]
    return _table("Levels", ("difficulty", *names), rows)


def _shown(value: Any) -> str:
    if isinstance(value, frozenset | set):
        return ", ".join(sorted(map(str, value)))
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return f"## {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)
