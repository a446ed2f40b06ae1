"""Configurations: frozen, and strict about what they are given."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator, model_validator

from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.contract.tasks.env_facts import EnvFacts


class OnlyWith:
    """Marks an option that does nothing unless another one of the same section is on, or has one of these values.

    ``eps: Annotated[float, OnlyWith("std")]``, ``alpha: Annotated[float, OnlyWith("form", "paper")]``

    Args:
        switch: name of the other option.
        values: with which this one does something; none given: anything that is neither unset, false nor 0.
        may_wait: a recipe may set this option while the switch is off, so that the switch alone can be changed; only a
            change on top that sets it then is refused. Otherwise any value but the default is.
    """

    def __init__(self, switch: str, *values: Any, may_wait: bool = False):
        self.switch, self.values, self.may_wait = switch, values, may_wait

    def __str__(self) -> str:
        settings = (f"{self.switch} unset" if value is None else f"{self.switch} = {value!r}" for value in self.values)
        return " or ".join(settings) or self.switch

    @property
    def fix(self) -> str:
        """Fix where the option was given and does nothing."""
        return "leave one of the two out" if None in self.values else "set that as well, or leave it out"

    def is_off(self, options: "Options") -> bool:
        value = getattr(options, self.switch)
        return value not in self.values if self.values else not value

    def state(self, options: "Options", section: str = "") -> str:
        """The state of the switch, for messages."""
        value, switch = getattr(options, self.switch), f"{section}{self.switch}"
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        return f"while {switch} is unset" if value is None else f"with {switch} = {shown}"


class Parts(Protocol):
    """Registry that a section of a configuration is chosen from."""

    kind: str

    def parse(self, value: Any, context: Mapping[str, Any] | None = None) -> Any: ...
    def completed(self, table: Mapping[str, Any], default: Any) -> Mapping[str, Any]: ...
    def names(self) -> list[str]: ...


class _OneLine(type(BaseModel)):
    """Refuse objects made in Python in one line too."""

    if not TYPE_CHECKING:  # a type checker goes by the fields

        def __call__(cls, *args: Any, **options: Any) -> Any:
            try:
                return super().__call__(*args, **options)
            except ValidationError as error:
                raise ConfigError(one_line(error)) from None


class Options(BaseModel, metaclass=_OneLine):
    """Base of every configuration: frozen; an unknown key is an error that suggests the right one.

    A table for a section or a part changes what the field's default sets, and nothing else: a default that differs from
    the default of its class holds for a table of other entries too.
    """

    moved: ClassVar[Mapping[str, str]] = {}
    """Options that are looked for here, and the place where they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_options(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in data:
                if key in cls.moved:
                    raise ValueError(f"{key} is no option here: set {cls.moved[key]} instead")
                if key not in cls.model_fields:
                    raise ValueError(cls.no_option(str(key)))
        return data

    @classmethod
    def no_option(cls, key: str) -> str:
        """Message about a key that is no option: those in sections that have the name, or that it describes."""
        what = f"{cls.__name__.removesuffix('Config')} option"
        for name in (key, *_nearest(cls, key)):
            if places := list(itertools.islice(_meant(cls, name), 4)):
                least = min(place.count(".") for place in places)
                places = [place for place in places if place.count(".") == least]
                return f"unknown {what} {key!r}; did you mean {' or '.join(places)}?"
        return unknown(what, key, cls.model_fields)

    @field_validator("*", mode="before")
    @classmethod
    def _changes_the_default(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        if not isinstance(value, Mapping) or not isinstance(field.default, Options):
            return value
        if parts := parts_of(field.metadata):
            return parts.completed(value, field.default)
        return overlay(set_values(field.default), value)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_no_switches(cls, value: Any, info: ValidationInfo) -> Any:
        annotation = cls.model_fields[info.field_name or ""].annotation
        kinds = (annotation, *get_args(annotation))
        if isinstance(value, bool) and bool not in kinds and (int in kinds or float in kinds):
            raise ValueError(f"a number is wanted, not {str(value).lower()}")
        return value

    @model_validator(mode="after")
    def _nothing_idles(self, info: ValidationInfo) -> Self:
        if info.context == UNFINISHED:
            return self
        for name, marker in idle(self).items():
            if not marker.may_wait and getattr(self, name) != type(self).model_fields[name].get_default():
                raise ValueError(f"{name} has no effect {marker.state(self)}: leave it out")
        return self

    def with_defaults(self, defaults: Mapping[str, Any]) -> Self:
        """The same with other values for whatever was not set; it still counts as not set."""
        checked = type(self).model_validate(dict(defaults), context=UNFINISHED)
        new = {name: getattr(checked, name) for name in defaults if name not in self.model_fields_set}
        options = self.model_copy(update=new)
        options.model_fields_set.difference_update(new)
        return options

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        """The reason for which these options cannot work or change nothing, in one line with the fix; else None.

        ``refusals.refuse_unfit`` asks all options of a run, and each class of them: a subclass adds to what its bases
        refuse, and need not call them.

        Args:
            run: the full configuration of the run, a ``RunConfig``.
            env: its environment; None while only the configuration is known.
        """
        return None


def sections_in(annotation: Any) -> list[type[Options]]:
    """The classes of options that an annotation names."""
    types = [annotation] if isinstance(annotation, type) and issubclass(annotation, Options) else []
    return types + [section for argument in get_args(annotation) for section in sections_in(argument)]


def _meant(kind: type[Options], key: str) -> Iterator[str]:
    """Places in a configuration, or in the default parts of it, whose name or description is ``key``."""
    words = key.replace("_", " ").casefold()
    for place, description in option_places(kind):
        described = " " in words and description.casefold().startswith(words)
        if described or place.endswith(f".{key}"):
            yield place


def _nearest(kind: type[Options], key: str) -> list[str]:
    """The name in a section that is almost ``key``; none where a field of ``kind`` is nearer."""
    inner = {name.rpartition(".")[2] for name, _ in option_places(kind) if "." in name}
    near = near_names(key, [*kind.model_fields, *sorted(inner)], n=1, cutoff=0.75)
    return [name for name in near if name not in kind.model_fields]


def option_places(kind: type[Options], above: str = "", usual: Options | None = None) -> Iterator[tuple[str, str]]:
    """Places in a configuration, and in the default parts of it, each with its description.

    Args:
        usual: the options that hold where nothing is given.
    """
    for name, field in kind.model_fields.items():
        yield f"{above}{name}", field.description or ""
        default = field.default if usual is None else getattr(usual, name)
        inner = default if isinstance(default, Options) else None
        for section in [type(inner)] if inner is not None else sections_in(field.annotation):
            yield from option_places(section, f"{above}{name}.", inner)


def parts_of(markers: Iterable[Any]) -> Parts | None:
    """Registry that a field is chosen from, by its markers; None for any other field."""
    owners = (getattr(getattr(marker, "func", None), "__self__", None) for marker in markers)
    return next((owner for owner in owners if hasattr(owner, "completed")), None)


def set_values(options: Options) -> dict[str, Any]:
    """Options that were set, as plain values; the name of a part always.

    >>> class Door(Options):
    ...     colour: str = "red"
    ...     height: float = 2.0
    >>> set_values(Door(height=2.5))
    {'height': 2.5}
    """
    plain = {name: getattr(options, name) for name in type(options).model_fields if name in options.model_fields_set}
    if "name" in type(options).model_fields:
        plain = {"name": getattr(options, "name"), **plain}  # noqa: B009  only parts have one
    return {name: set_values(value) if isinstance(value, Options) else value for name, value in plain.items()}


def idle(options: Options) -> dict[str, OnlyWith]:
    """The options that do nothing because another one of their section is off.

    >>> from typing import Annotated
    >>> class Retry(Options):
    ...     times: int = 0
    ...     pause: Annotated[float, OnlyWith("times")] = 1.0
    >>> list(idle(Retry())), list(idle(Retry(times=2)))
    (['pause'], [])
    """
    fields = type(options).model_fields.items()
    markers = ((name, marker) for name, field in fields for marker in field.metadata)
    return {name: marker for name, marker in markers if isinstance(marker, OnlyWith) and marker.is_off(options)}


def unknown(what: str, name: str, existing: Iterable[str]) -> str:
    """Message about a name that does not exist: the nearest ones, then all.

    >>> unknown("option", "gama", ["gamma", "eps"])
    "unknown option 'gama'; did you mean 'gamma'? There are eps, gamma"
    >>> unknown("option", "colour", ["gamma", "eps"])
    "unknown option 'colour'; there are eps, gamma"
    """
    names = sorted(existing)
    close = " or ".join(map(repr, near_names(name, names, n=2)))
    there = f"here are {', '.join(names)}" if names else "here is none"
    return f"unknown {what} {name!r}; " + (f"did you mean {close}? T{there}" if close else f"t{there}")


def one_line(error: ValidationError, *above: str) -> str:
    """Error in one line: each entry by its place, below the sections ``above``."""
    lines = []
    for problem in error.errors():
        place = ".".join(map(str, (*above, *problem["loc"])))
        lines.append(f"{place}: {problem['msg']}" if place else problem["msg"])
    return "; ".join(lines).replace("Value error, ", "")


UNFINISHED = {"unfinished": True}  # context of a validation, in which changes on top may still fix a combination


class ConfigError(ValueError):
    """The configuration cannot be used; the text says which entry and what would do."""
