"""Recipes as a reader meets them: a table of all, and a method's page, made from the docstrings of what it uses."""

import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import tomli_w
from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS
from manyturn.recipes import file_of, load_recipe, methods, whole_runs
from manyturn.recipes.stack import stacked
from manyturn.terminal.escape import visible
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.metrics import METRICS

_PAPER = "Paper: "
_TERMS = ("kl", "entropy", "epo", "correction", "reject")
_BY_CLASS = frozenset({"value", "progress", "judge", "objective.entropy"})  # whose module is about more than them
# Of every run; what else to look at comes after "Watch" in the text of each part.
_ALWAYS = ("success", "return", "groups_without_signal", "advantage_std", "grad_norm")


@dataclass(frozen=True)
class RecipeHead:
    """The comment that a recipe begins with: what it is, its paper (of methods only), and what else there is to say."""

    about: str
    paper: str
    notes: str

    @classmethod
    def of(cls, name: str) -> "RecipeHead":
        """The head of a built-in recipe, or of a file."""
        lines = file_of(name).read_text(encoding="utf-8").splitlines()
        comment = [line.removeprefix("#").strip() for line in takewhile(lambda line: line.startswith("#"), lines)]
        place = next((number for number, line in enumerate(comment) if line.startswith(_PAPER)), None)
        if place is None:
            return cls(" ".join(comment), "", "")
        paper = comment[place].removeprefix(_PAPER).rstrip(".")
        return cls(" ".join(comment[:place]), paper, " ".join(comment[place + 1 :]))


class Option(NamedTuple):
    name: str
    value: str
    default: str
    about: str


@dataclass(frozen=True)
class Piece:
    """A part of a run that a recipe names.

    Attributes:
        place: its place in the configuration, such as credit.advantage.
        name: of the stage; empty where a place has one kind of part only.
        text: what its docstring says: formula, implementation, differences between paper and code, what to watch.
    """

    place: str
    name: str
    text: str
    options: tuple[Option, ...]

    @property
    def telling(self) -> list[str]:
        """Metrics that show whether it works: those that its text names after "Watch", without condition or with one
        that the options fulfil."""
        conditions = {f"{option.name} = {option.value}" for option in self.options}
        texts = re.findall(r"^Watch(?: where (.+?))?: (.*?)(?=\n\n|\Z)", self.text, re.MULTILINE | re.DOTALL)
        keys = [re.findall(r"``(\w+)``", text) for condition, text in texts if not condition or condition in conditions]
        return [key for line in keys for key in line]


def pieces(name: str) -> list[Piece]:
    """The parts that a recipe names, in the order in which a step comes to them."""
    recipe = load_recipe(name)
    config = parse_config(stacked([{"env": {"id": "any"}}, recipe]))
    envs = config.environments.values()
    named: list[tuple[str, Options]] = [("env.wrappers", wrapper) for env in envs for wrapper in env.wrappers]
    if "curriculum" in recipe:
        named.append(("curriculum", config.curriculum))
    named += [(f"rollout.{key}", config.rollout) for key in recipe.get("rollout", {}).keys() & {"rounds"}]
    if config.rollout.horizon is not None:
        named.append(("rollout.horizon", config.rollout.horizon))
    if config.rollout.branching is not None:
        named.append(("rollout.branching", config.rollout.branching))
    if config.rollout.guidance is not None:
        named.append(("rollout.guidance", config.rollout.guidance))
    if config.rollout.replay is not None:
        named.append(("rollout.replay", config.rollout.replay))
    named += [(section, getattr(config, section)) for section in ("value", "progress", "judge") if section in recipe]
    named += [("credit.rewards", stage) for stage in config.credit.rewards]
    if "advantage" in recipe.get("credit", {}):
        named.append(("credit.advantage", config.credit.advantage))
    named += [("credit.modulation", stage) for stage in config.credit.modulation]
    if "name" in recipe.get("objective", {}):
        named.append(("objective", config.objective))
    for term in (term for term in _TERMS if term in recipe.get("objective", {})):
        regulariser = getattr(config.objective, term)
        named += [
            (f"objective.{term}", part) for part in (regulariser if isinstance(regulariser, tuple) else [regulariser])
        ]
    return [_piece(place, part) for place, part in named]


def _piece(place: str, part: Options) -> Piece:
    fields, module = [*type(part).model_fields], sys.modules[type(part).__module__]
    if place == "rollout.rounds":
        fields, module = ["rounds"], importlib.import_module("manyturn.trainers.play.rollout.dynamic_sampling")
    name = part.name if isinstance(part, Named) else ""
    text = type(part).__doc__ if place in _BY_CLASS else module.__doc__
    if place == "env.wrappers":
        text = WRAPPERS.entry(name).function.__doc__
    options = tuple(_options(part, [field for field in fields if field != "name" and field not in _TERMS]))
    return Piece(place, name, inspect.cleandoc(text or ""), options)


def _options(part: Options, fields: Iterable[str]) -> Iterator[Option]:
    """The options, those of a section inside under its name."""
    for field in fields:
        value = getattr(part, field)
        if isinstance(value, Options) and not isinstance(value, Named):
            inner = _options(value, type(value).model_fields)
            yield from (option._replace(name=f"{field}.{option.name}") for option in inner)
        else:
            yield _option(part, field)


def _option(part: Options, name: str) -> Option:
    field = type(part).model_fields[name]
    default = "needed" if field.is_required() else _shown(field.get_default(call_default_factory=True))
    markers = [f"(only with {marker})" for marker in field.metadata if isinstance(marker, OnlyWith)]
    about = " ".join([*(field.description or "").split(), *markers])
    return Option(name, _shown(getattr(part, name)), default, about)


def _shown(value: Any) -> str:
    """A value as a recipe writes it; a hyphen where it is unset."""
    if value is None:
        return "-"
    plain = TypeAdapter(Any).dump_python(value, mode="json", exclude_none=True)
    return " ".join(tomli_w.dumps({"x": plain}).removeprefix("x = ").split())


def recipe_rows() -> list[dict[str, str]]:
    """For each recipe of a complete run: name, its first comment, environment, model, advantage and objective."""
    rows = []
    for name in whole_runs():
        config = parse_config(load_recipe(name))
        row = {"name": name, "about": RecipeHead.of(name).about, "env": config.env_title, "model": config.model.label}
        row |= {"advantage": config.credit.advantage.name, "objective": config.objective.name}
        rows.append(row)
    return rows


def method_rows() -> list[dict[str, str]]:
    """For each recipe of a method: name, what it is, paper, and its stages."""
    rows = []
    for name in methods():
        head, units = RecipeHead.of(name), pieces(name)
        stages = ", ".join(f"{piece.place.removeprefix('credit.')} {piece.name}".strip() for piece in units)
        rows.append({"name": name, "about": head.about, "paper": head.paper, "stages": stages})
    return rows


def print_recipes(console: Console) -> None:
    """Both tables."""
    runs = Table("complete run", "what it is", show_lines=True)
    for row in recipe_rows():
        facts = ", ".join(f"{key} {row[key]}" for key in ("env", "model", "advantage", "objective"))
        runs.add_row(
            Text(row["name"], overflow="fold"), Text.assemble(row["about"], "\n", (facts, "dim"), overflow="fold")
        )
    console.print(runs)
    table = Table("method", "what it is", "paper", show_lines=True)
    for row in method_rows():
        about = Text.assemble(row["about"], "\n", (row["stages"], "dim"), overflow="fold")
        table.add_row(Text(row["name"], overflow="fold"), about, Text(row["paper"], overflow="fold"))
    console.print(table)
    _say(
        console,
        "A complete run: manyturn train --recipe NAME. A method, on an environment: manyturn train ENV --recipe NAME; "
        "on top of a complete run: --recipe quickstart --recipe NAME. The page of a recipe: manyturn recipes NAME.",
    )


def print_page(name: str, console: Console) -> None:
    """All there is to know about a recipe."""
    head, units = RecipeHead.of(name), pieces(name)
    _say(console, name, "bold")
    _say(console, "\n".join(filter(None, (head.about, head.paper and f"{_PAPER}{head.paper}.", head.notes))))
    for piece in units:
        _say(console, f"\n{piece.place} {piece.name}".rstrip(), "bold")
        _say(console, piece.text)
        if piece.options:
            table = Table("option", "here", "default", "what it is")
            for option in piece.options:
                table.add_row(*(Text(visible(cell, console.encoding), overflow="fold") for cell in option))
            console.print(table)
    _say(console, "\nmetrics.jsonl shows whether it works", "bold")
    for key in telling_metrics(name):
        _say(console, f"  {key}: {METRICS[key]}")
    _say(console, f"\n{file_of(name)}", "bold")
    _say(console, file_of(name).read_text(encoding="utf-8").strip())


def telling_metrics(name: str) -> list[str]:
    """Keys of the metrics that show whether a recipe's parts work, those of every run first."""
    return [*dict.fromkeys([*_ALWAYS, *(key for piece in pieces(name) for key in piece.telling)])]


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(visible(text, console.encoding), style), soft_wrap=True)
