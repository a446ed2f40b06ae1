"""Every option of a run, of a policy that is evaluated and of an improvement, made from the classes that hold them."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import tomli_w
from annotated_types import Ge, Gt, Le, Lt
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rich.console import Console
from rich.text import Text

from manyturn.agents.experience.improvement_config import ImprovementConfig
from manyturn.agents.model.model_config import MODELS
from manyturn.agents.play.endpoint.options import Endpoint, EndpointSampling
from manyturn.agents.search.method import SEARCHES
from manyturn.api.named_policy import USUAL_AGENTS
from manyturn.envs.contract.options.option_paths import OptionPath, option_paths
from manyturn.envs.contract.options.options import ConfigError, OnlyWith, Options, Parts, set_values, unknown
from manyturn.envs.contract.options.plugins import load_plugins
from manyturn.envs.contract.options.registry import Registry
from manyturn.terminal.escape import visible
from manyturn.trainers.recipe.config import RunConfig, parse_config

_KINDS = {bool: "true or false", int: "whole number", float: "number", str: "text", dict: "table"}
_BOUNDS = {Ge: ("ge", "at least"), Gt: ("gt", "above"), Le: ("le", "at most"), Lt: ("lt", "below")}
_OF_A_TABLE = "NAME"  # stands for each name of a table of sections
OWN = "manyturn."
PAGE_HEAD = """# Options

Every entry of a run's configuration, in the order of its sections. `manyturn options [SECTION]` prints them, those of
installed plugins too; `manyturn options --markdown` makes this page.

An option can stand in a recipe (`[learner]`, `lr = 1e-4`), on the command line (`--learner.lr 1e-4`) or in Python
(`manyturn.train(ENV, learner={"lr": 1e-4})`), and means the same there. A later recipe changes what an earlier one
says, the command line changes both, and defaults fill the rest. A default that depends on the model names it;
[models.md](models.md) says why. `evaluate MODEL` and `evaluate openai:MODEL` stand where an evaluation has another one
than training. On the command line `unset` takes back what a recipe says: `--rollout.horizon unset`.

`manyturn evaluate` takes the sections agent, sampling, engine, endpoint and search for the policies that it evaluates.
`manyturn improve` takes those too, and the options of an improvement, which stand last.
Where a part is chosen, its name alone is enough: `--credit.advantage grpo`. A table without a name changes the default
part. The arguments of an environment are `--env.args.NAME VALUE`, in every command.
"""


class OptionRow(NamedTuple):
    """An option: its place in the configuration, what it takes, and what holds where nobody gives it."""

    name: str
    kind: str
    default: str
    about: str


class Group(NamedTuple):
    """Options of one section, or of one part that can be chosen; ``place`` is the section's."""

    place: str
    title: str
    about: str
    rows: tuple[OptionRow, ...]


class _Listing(NamedTuple):
    """Options being listed.

    Args:
        own: leave out what plugins bring.
        by_model: defaults that hold for some models, by option.
        around: registries whose parts hold what is listed now.
    """

    own: bool
    by_model: Mapping[str, Any]
    around: tuple[Registry[Any], ...] = ()


def groups(own: bool = False) -> list[Group]:
    """All options.

    Args:
        own: leave out what plugins bring.
    """
    if not own:
        load_plugins()
    by_model = _defaults_by_model(own)
    for what, agent in USUAL_AGENTS.items():
        for name in agent.model_fields_set:
            by_model.setdefault(f"agent.{name}", {})[what] = getattr(agent, name)
            of_role = by_model.setdefault(f"roles.{_OF_A_TABLE}.agent.{name}", {})
            of_role[what.removeprefix("evaluate ")] = getattr(agent, name)
    of_a_run, of_others = _Listing(own, by_model), _Listing(own, {})
    return [
        *_section(RunConfig, "", of_a_run),
        *(one._replace(title="sampling, of endpoints") for one in _section(EndpointSampling, "sampling", of_others)),
        *_section(Endpoint, "endpoint", of_others),
        *_parts(SEARCHES, "search", of_others),
        *(_titled(one, "an improvement") for one in _section(ImprovementConfig, "", of_others)),
    ]


def _titled(group: Group, title: str) -> Group:
    """A group without a section of its own under a title."""
    return group if group.place else group._replace(title=title)


def of_section(section: str | None, own: bool = False) -> list[Group]:
    """The options of a section and of what is in it, or of all. Raises ConfigError for one that does not exist."""
    all_groups = groups(own)
    if section is None:
        return all_groups
    name = section.replace("-", "_")
    inside = [group for group in all_groups if f"{group.place}.".startswith(f"{name}.")]
    if inside:
        return inside
    alone = [group._replace(rows=tuple(row for row in group.rows if row.name == name)) for group in all_groups]
    if alone := [group for group in alone if group.rows]:
        return alone
    places_of = dict.fromkeys(group.place for group in all_groups if group.place)
    raise ConfigError(unknown("section of options", section, places_of))


def _section(kind: type[Options], place: str, listing: _Listing, usual: Options | None = None) -> Iterator[Group]:
    """The options of a class, then of the sections and the parts in it.

    Args:
        usual: those that hold where nobody gives any.
    """
    rows, inside = list[OptionRow](), list[Group]()
    for option in (option for option in option_paths(kind) if "." not in option.name):
        full, field = f"{place}.{option.name}" if place else option.name, option.field
        default = getattr(usual, option.name) if usual is not None else field.get_default(call_default_factory=True)
        if isinstance(option.parts, Registry):
            # A part that holds another of its own kind, such as a rule turned round, is listed once.
            inside += () if option.parts in listing.around else _parts(option.parts, full, listing)
        elif option.section is not None:
            inner = f"{full}.{_OF_A_TABLE}" if get_origin(field.annotation) is dict else full
            inside += _section(option.section, inner, listing, default if isinstance(default, Options) else None)
            if option.section is field.annotation:
                continue
        rows.append(_row(full, option, default, listing.by_model.get(full, {}), listing.own))
    yield Group(place, place or "a run", _about(kind), tuple(rows))
    yield from inside


def _parts(parts: Registry[Any], place: str, listing: _Listing) -> Iterator[Group]:
    """Choices at a place, after the options that all of them share."""
    kinds = {name: parts.entry(name).config_type for name in _names(parts, listing.own)}
    listing = listing._replace(around=(*listing.around, parts))
    each = {name: list(_section(kind, place, listing)) for name, kind in kinds.items()}
    # An option with another default somewhere stands with each choice.
    shared = set.intersection(*(set(groups[0].rows) for groups in each.values()))
    common = {row.name for row in shared} - {f"{place}.name"}
    if common and len(each) > 1:
        first, *inside = next(iter(each.values()))
        rows = tuple(row for row in first.rows if row.name in common)
        yield first._replace(title=f"{place}, whichever it is", about="", rows=rows)
        yield from (each_group for each_group in inside if each_group.place in common)
    else:
        common = set()
    for name, (group, *inside) in each.items():
        source: Any = parts.entry(name).function
        source = sys.modules[source.__module__] if inspect.isfunction(source) else source
        about = group.about or _first(source.__doc__ or "")
        rows = tuple(row for row in group.rows if row.name not in common | {f"{place}.name"})
        yield group._replace(title=f'{place} = "{name}"', about=about, rows=rows)
        yield from (group for group in inside if group.place not in common)


def _names(parts: Parts, own: bool) -> list[str]:
    if not own or not isinstance(parts, Registry):
        return parts.names()
    return [name for name in parts.names() if parts.entry(name).function.__module__.startswith(OWN)]


def _about(kind: type[Options]) -> str:
    """Docstring of a class of options; empty where it is inherited."""
    return _first(vars(kind).get("__doc__") or "")


def _first(text: str) -> str:
    """The first sentence or paragraph of a docstring."""
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _row(full: str, place: OptionPath, default: Any, by_model: Mapping[str, Any], own: bool) -> OptionRow:
    field, parts = place.field, place.parts
    usual = "needed" if default is PydanticUndefined else shown(default)
    models: dict[str, list[str]] = {}
    for name, value in by_model.items():
        models.setdefault(shown(value), []).append(name)
    different = [f"{', '.join(names)}: {value}" for value, names in models.items() if value != usual]
    markers = [f"Only with {marker}." for marker in field.metadata if isinstance(marker, OnlyWith)]
    kind = kind_of(field)
    if parts is not None:
        kind = f"{'list of' if place.many else 'one of'} {', '.join(_names(parts, own))}"
    about = " ".join([*(field.description or "").split(), *markers])
    return OptionRow(full, kind, "; ".join([usual, *different]), about)


def kind_of(field: FieldInfo) -> str:
    """Values that an option takes, in words.

    >>> class Retry(Options):
    ...     times: int | None = None
    ...     mode: Literal["slow", "fast"] = "slow"
    >>> [kind_of(field) for field in Retry.model_fields.values()]
    ['whole number, or unset', '"slow" or "fast"']
    """
    bounds = [f"{word} {getattr(mark, key):g}" for mark in field.metadata for key, word in _bound(mark)]
    return ", ".join([_kind(field.annotation), *bounds])


def _bound(mark: Any) -> list[tuple[str, str]]:
    return [_BOUNDS[type(mark)]] if type(mark) in _BOUNDS else []


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(inner[0])
    if origin in (Union, UnionType):
        words = [_kind(part) for part in inner if part is not NoneType]
        return " or ".join(dict.fromkeys(words)) + (", or unset" if NoneType in inner else "")
    if origin is Literal:
        return " or ".join(shown(value) for value in inner)
    if origin is tuple:
        return f"list: {_kind(inner[0])}"
    if isinstance(annotation, type) and issubclass(annotation, Options):
        return "section"
    return _KINDS.get(origin or annotation, "text")


def shown(value: Any) -> str:
    """A value as a recipe writes it; a part by its name, and what differs from its own defaults."""
    if value is None:
        return "unset"
    if isinstance(value, Options):
        name, *others = set_values(value).items()
        return ", ".join([shown(name[1]), *(f"{key} = {shown(one)}" for key, one in others)])
    plain = TypeAdapter(Any).dump_python(value, mode="json")
    return " ".join(tomli_w.dumps({"x": plain}).removeprefix("x = ").removeprefix("[x]").split()) or "{}"


def _defaults_by_model(own: bool) -> dict[str, dict[str, Any]]:
    """Path of an option -> model -> its default, for each model that can be described without being there."""
    schema: dict[str, dict[str, Any]] = {}
    for name in _names(MODELS, own):
        fields = MODELS.entry(name).config_type.model_fields.items()
        needed = {key: "MODEL" for key, field in fields if field.is_required()}
        try:
            run = parse_config({"env": {"id": "ENV"}, "model": {"name": name, **needed}})
        except ConfigError:
            continue
        for section, value in run.model.defaults(run, None).items():
            entries = {f"{section}.{key}": one for key, one in value.items()} if isinstance(value, Mapping) else {}
            for place, one in (entries or {section: value}).items():
                schema.setdefault(place, {})[name] = one
    return schema


def markdown() -> str:
    """The page docs/options.md: what comes with manyturn, without plugins."""
    lines = [PAGE_HEAD]
    for group in groups(own=True):
        lines += [f"## {group.title}", ""]
        lines += [group.about, ""] if group.about else []
        if not group.rows:
            lines += ["No options.", ""]
            continue
        lines += ["| option | takes | default | |", "|---|---|---|---|"]
        for row in group.rows:
            cells = (f"`{row.name}`", row.kind, row.default, row.about)
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines.append("")
    return "\n".join(lines)


def print_options(section: str | None, console: Console) -> None:
    """Show the options of a section, or of all."""
    for group in of_section(section):
        _say(console, group.title, "bold")
        if group.about:
            _say(console, group.about)
        for row in group.rows:
            _say(console, f"  --{row.name.replace('_', '-')}", "cyan", end="")
            _say(console, f"  {row.kind}; {'needed' if row.default == 'needed' else f'default {row.default}'}")
            if row.about:
                _say(console, f"      {row.about}", "dim")
        console.print()


def _say(console: Console, text: str, style: str = "", end: str = "\n") -> None:
    console.print(Text(visible(text, console.encoding), style), soft_wrap=True, end=end)
