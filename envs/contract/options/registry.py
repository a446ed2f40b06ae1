"""One registry for everything that a recipe names: stages, columns, wrappers, contexts, formats, models, engines ...

An entry is its options, whose ``name`` a recipe gives, and a function or a class, usually in one file. It is called
with the inputs that all entries of its registry get, and with the options last::

    class CentredConfig(StageConfig):
        name: Literal["centred"] = "centred"

    @ADVANTAGES.register(CentredConfig)
    def centred(batch: TurnBatch, config: CentredConfig) -> FloatK:
        return deviation(batch.score_K(), score_statistics(batch, batch.group_K, "episodes"), "zero")

A function that carries something from call to call is registered with ``remembers=True``: it takes what it returned
last time (None at first), and returns it next to its result. What it remembers is part of a checkpoint, so it must be
plain JSON values.

A package outside the project does the same in a module that it announces under the entry-point group
``manyturn.plugins``. Every module of a registry's own packages is found without being listed anywhere.
"""

import importlib
import pkgutil
from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BeforeValidator, ValidationInfo

from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.options.options import Options, set_values, unknown
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.contract.options.plugins import load_plugins, where_else

_NOT_NAME = ("kind", "type")  # keys under which a name is often given
Memory = Mapping[str, Any]  # what entries remember from call to call: plain JSON values
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class Named(Options):
    """Base of the options of everything that is registered. A subclass narrows ``name`` to a Literal of one string."""

    name: Any  # a str here would forbid the Literals of subclasses to type checkers

    @classmethod
    def of_word(cls, word: str) -> dict[str, Any] | None:
        """The options that a word stands for where a name is expected and it is none; None where it means nothing."""
        return None


class Entry(NamedTuple):
    config_type: type[Named]
    function: Callable[..., Any]
    remembers: bool


def _is_run_again(earlier: Callable[..., Any], function: Callable[..., Any]) -> bool:
    """True if a notebook cell defines the same name again."""
    return earlier.__module__ == function.__module__ == "__main__" and earlier.__qualname__ == function.__qualname__


class Registry(Generic[R]):
    """Named functions or classes that return R, each with its options.

    Args:
        kind: what an entry is called in messages.
        packages: modules, or packages whose modules, register the project's own entries.
    """

    def __init__(self, kind: str, *packages: str):
        self.kind, self.packages = kind, packages
        self.elsewhere: Callable[[str], str | None] = lambda name: None  # a line on what a name means that is no entry
        self._entries: dict[str, Entry] = {}
        self._loaded = not packages

    def register(self, config_type: type[Named], remembers: bool = False) -> Callable[[F], F]:
        """Decorator: where a recipe gives ``config_type``'s name, this function or class is called."""
        name = _literal_name(config_type)

        def add(function: F) -> F:
            if name in self._entries and not _is_run_again(earlier := self._entries[name].function, function):
                raise ValueError(
                    f"{self.kind} {name!r} is registered twice, by {earlier.__module__} and {function.__module__}: "
                    "choose another name"
                )
            self._entries[name] = Entry(config_type, function, remembers)
            return function

        return add

    def names(self, where: Callable[[Any], bool] | None = None) -> list[str]:
        """Every registered name.

        Args:
            where: takes a class of options and says whether its name is asked for; left out: all are.
        """
        self._load_package()
        return sorted(name for name, entry in self._entries.items() if where is None or where(entry.config_type))

    def entry(self, name: str) -> Entry:
        """Entry registered under a name. Raises ValueError with the nearest names where there is none."""
        self._load_package()
        if name not in self._entries:
            load_plugins()
        if name not in self._entries:
            raise ValueError(self.elsewhere(name) or unknown(self.kind, name, self._entries) + where_else())
        return self._entries[name]

    def parse(self, value: Any, context: Mapping[str, Any] | None = None) -> Any:
        """The configuration that a recipe's value describes: a name, a table with a name, or a configuration.

        Args:
            context: of the validation; see ``UNFINISHED``.

        >>> class RoundConfig(Named):
        ...     name: Literal["round"] = "round"
        ...     digits: int = 0
        >>> rounding = Registry[float]("rounding")
        >>> _ = rounding.register(RoundConfig)(lambda x, config: round(x, config.digits))
        >>> rounding.apply(rounding.parse({"name": "round", "digits": 1}), 1.26)
        1.3
        >>> rounding.parse("rond")
        Traceback (most recent call last):
        ...
        ValueError: unknown rounding 'rond'; did you mean 'round'? There are round
        """
        if isinstance(value, Named):
            self._entry_of(value)
            return value
        table = {"name": value} if isinstance(value, str) else value
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            self._refuse_name_elsewhere(table, ())
            raise ValueError(f"{value!r} names no {self.kind}: give a name of {', '.join(self.names()) or 'none'}")
        table = self._with_a_name(table)
        config_type = self.entry(table["name"]).config_type
        for key in table:
            if key not in config_type.model_fields and key not in config_type.moved:
                self._refuse_name_elsewhere(table, config_type.model_fields)
                self._refuse_option_of_another(table["name"], key)
        return config_type.model_validate(dict(table), context=context)

    def completed(self, table: Mapping[str, Any], default: Any) -> Mapping[str, Any]:
        """A table with the name of what it is about: that of the one entry whose needed options it gives, or the
        default's, which keeps what else was set of it.

        >>> class FileConfig(Named):
        ...     name: Literal["file"] = "file"
        ...     path: str
        >>> class NothingConfig(Named):
        ...     name: Literal["nothing"] = "nothing"
        ...     times: int = 1
        >>> sources = Registry[str]("source")
        >>> _ = sources.register(FileConfig)(lambda config: config.path)
        >>> _ = sources.register(NothingConfig)(lambda config: "")
        >>> sources.completed({"path": "x"}, NothingConfig()), sources.completed({"times": 2}, NothingConfig())
        ({'name': 'file', 'path': 'x'}, {'name': 'nothing', 'times': 2})
        """
        if "name" in table:
            return table
        meant = self.names(lambda kind: bool(needed := _needed(kind)) and needed <= table.keys())
        if len(meant) == 1 and not table.keys() <= type(default).model_fields.keys():
            return {"name": meant[0], **table}
        return overlay(set_values(default), table)

    def _with_a_name(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """A table whose name is a registered one, if a part takes the word that stands for it."""
        word = table["name"]
        if word not in self.names():
            load_plugins()
        if word in self._entries or near_names(word, self._entries, n=1, cutoff=0.6):
            return table
        for name, entry in sorted(self._entries.items()):
            config = entry.config_type.of_word(word)
            if config is None or not table.keys() <= entry.config_type.model_fields.keys():
                continue
            if twice := min(config.keys() & table.keys(), default=None):
                raise ValueError(f"{word!r} and {twice} = {table[twice]!r} say the same: give one of them")
            return {**table, "name": name, **config}
        return table

    def _refuse_name_elsewhere(self, table: Any, options: Collection[str]) -> None:
        """Raise ValueError where a key that is no option holds a name, such as ``kind = "tiny"``."""
        for key, word in table.items() if isinstance(table, Mapping) else ():
            if key in options or key == "name" or not isinstance(word, str):
                continue
            if word in self.names() or key in _NOT_NAME:
                names = repr(word) if word in self.names() else f"one of {', '.join(self.names())}"
                raise ValueError(f"{key} = {word!r} does not choose the {self.kind}: write name = {names}")

    def _refuse_option_of_another(self, name: str, key: str) -> None:
        """Raise ValueError where an option belongs to other entries."""
        if others := self.names(lambda kind: key in kind.model_fields):
            raise ValueError(
                f"{key} is no option of {self.kind} {name}, but of {', '.join(others[:4])}: give its name as well, "
                f"such as name = {others[0]!r}"
            )

    @property
    def field(self) -> BeforeValidator:
        """Marks a field of a larger configuration: given a name, a table or options, it holds the options.

        ``advantage: Annotated[Any, ADVANTAGES.field]``
        """
        return BeforeValidator(self._parse_field)

    @property
    def optional_field(self) -> BeforeValidator:
        """The same for a field that may be left unset."""
        return BeforeValidator(self._parse_optional_field)

    def _parse_optional_field(self, value: Any, info: ValidationInfo) -> Any:
        return None if value is None else self._parse_field(value, info)

    def _parse_field(self, value: Any, info: ValidationInfo) -> Any:
        return self.parse(value, info.context)

    def apply(self, config: Named, *inputs: Any) -> R:
        """Call what ``config`` belongs to with ``inputs`` and ``config``."""
        entry = self._entry_of(config)
        if entry.remembers:
            raise ValueError(f"{self.kind} {config.name!r} remembers: run it with apply_remembering")
        return entry.function(*inputs, config)

    def apply_remembering(self, config: Named, memory: Memory, *inputs: Any) -> tuple[R, Memory]:
        """The same for any function, with what all functions remember; returns that next to the result."""
        entry, place = self._entry_of(config), f"{self.kind} {config.name}"
        if not entry.remembers:
            return entry.function(*inputs, config), memory
        result, remembered = entry.function(*inputs, config, memory.get(place))
        return result, {**memory, place: remembered}

    def _entry_of(self, config: Named) -> Entry:
        entry = self.entry(config.name)
        if type(config) is not entry.config_type:
            raise ValueError(
                f"{type(config).__name__} is not the configuration of {self.kind} {config.name!r}, "
                f"which is {entry.config_type.__name__}"
            )
        return entry

    def _load_package(self) -> None:
        if self._loaded:
            return
        for name in self.packages:
            package = importlib.import_module(name)
            for module in pkgutil.iter_modules(getattr(package, "__path__", ()), name + "."):
                importlib.import_module(module.name)
        self._loaded = True


def _needed(config_type: type[Named]) -> set[str]:
    """The options that an entry cannot do without."""
    return {name for name, field in config_type.model_fields.items() if field.is_required()} - {"name"}


def _literal_name(config_type: type[Named]) -> str:
    annotation = config_type.model_fields["name"].annotation
    names = get_args(annotation)
    if get_origin(annotation) is not Literal or len(names) != 1:
        raise TypeError(f'{config_type.__name__} needs the field  name: Literal["its name"] = "its name"')
    return names[0]
