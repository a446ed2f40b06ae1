"""Where the options of a configuration are: one place for each field, section by section."""

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from pydantic.fields import FieldInfo

from manyturn.envs.contract.options import Options, Parts, parts_of


class Place(NamedTuple):
    """A field of a configuration.

    Attributes:
        name: sections and field, such as agent.max_context.
        parts: what it is chosen from, where it holds a part or a list of parts.
        section: the class of the options in it, where it is a section or a list of them.
        many: whether it is a list.
    """

    name: str
    owner: type[Options]
    field: FieldInfo
    parts: Parts | None
    section: type[Options] | None
    many: bool


def places(kind: type[Options], above: str = "") -> Iterator[Place]:
    """The fields of a configuration and of its sections, in their order, a section before what is in it.

    >>> class Inner(Options):
    ...     size: int = 1
    >>> class Outer(Options):
    ...     inner: Inner | None = None
    ...     seed: int = 0
    >>> [place.name for place in places(Outer)]
    ['inner', 'inner.size', 'seed']
    """
    for name, field in kind.model_fields.items():
        inside = list(_inside(field.annotation))
        parts = parts_of([*field.metadata, *(mark for part in inside for mark in getattr(part, "__metadata__", ()))])
        section = next((part for part in inside if isinstance(part, type) and issubclass(part, Options)), None)
        many = getattr(field.annotation, "__origin__", None) is tuple
        yield Place(above + name, kind, field, parts, section, many)
        if section is not None and not many:
            yield from places(section, f"{above}{name}.")


def _inside(annotation: Any) -> Iterator[Any]:
    """An annotation and all those inside it."""
    yield annotation
    for argument in get_args(annotation):
        yield from _inside(argument)
