"""Places of the options in a configuration: one for each field, section by section."""

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from pydantic.fields import FieldInfo

from manyturn.envs.contract.options.options import Options, Parts, parts_of, sections_in


class OptionPath(NamedTuple):
    """A field of a configuration.

    Attributes:
        name: sections and field, such as agent.max_context.
        parts: what it is chosen from, where it holds a part or a list of parts.
        section: the class of the options in it, where it is a section, or a list or a table of them.
        many: whether it is a list, or a table by names.
    """

    name: str
    owner: type[Options]
    field: FieldInfo
    parts: Parts | None
    section: type[Options] | None
    many: bool


def option_paths(kind: type[Options], above: str = "") -> Iterator[OptionPath]:
    """The fields of a configuration and of its sections, in their order, a section before what is in it.

    >>> class Inner(Options):
    ...     size: int = 1
    >>> class Outer(Options):
    ...     inner: Inner | None = None
    ...     seed: int = 0
    >>> [place.name for place in option_paths(Outer)]
    ['inner', 'inner.size', 'seed']
    """
    for name, field in kind.model_fields.items():
        parts = parts_of([*field.metadata, *_markers(field.annotation)])
        section = next(iter(sections_in(field.annotation)), None)
        many = getattr(field.annotation, "__origin__", None) in (tuple, dict)
        yield OptionPath(above + name, kind, field, parts, section, many)
        if section is not None and not many:
            yield from option_paths(section, f"{above}{name}.")


def _markers(annotation: Any) -> Iterator[Any]:
    """The markers of an annotation, and of all those inside it."""
    yield from getattr(annotation, "__metadata__", ())
    for argument in get_args(annotation):
        yield from _markers(argument)
