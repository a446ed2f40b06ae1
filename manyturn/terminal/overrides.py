"""Options given on the command line: ``--learner.lr 1e-4`` names the same entry as in a recipe."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from manyturn.agents.experience.improvement_config import ImprovementConfig
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.options.options import Options, one_line, option_places
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.contract.options.registry import Registry
from manyturn.trainers.recipe.config import CHOICES, RunConfig, parts_as_tables

Section = TypeVar("Section", bound=Options)
# An endpoint and a search are evaluated and never trained; the last ones are of improvements.
_SECTIONS = frozenset({*RunConfig.model_fields, "endpoint", "search", *ImprovementConfig.model_fields})
_CHOICES = {
    **CHOICES,
    **{place: "name" for place in ("method", "retrieval", "search", "search.value", "search.value.rule")},
}
SWITCHES = ("dry", "accept-config", "accept-env", "accept-code")  # options of train without a value
_HEADERS = "endpoint.headers."  # whose names are the server's, dashes included


class OverrideError(ValueError):
    """A word on the command line that is no option, or whose value will not do."""


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """``["--a.b", "1", "--c=x"]`` becomes ``{"a": {"b": 1}, "c": "x"}``.

    A value is read as TOML (numbers, true, false, lists, tables) and as plain text if it is none.
    """
    plain, options = parse_words(words)
    if plain:
        raise OverrideError(f"{plain[0]!r} is no option: write --section.name value, such as --learner.lr 1e-4")
    return options


def parse_words(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Words that are no options, in their order, and the options among them."""
    plain, options, rest = list[str](), dict[str, Any](), list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or len(word) == 2:
            plain.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            if not rest:
                raise OverrideError(_without_value(name))
            value = rest.pop(0)
        put_option(options, _place_of(name), read_value(value))
    return plain, options


def _without_value(name: str) -> str:
    """Message about an option at the end of the line, which may be a switch or an option that was misspelt."""
    names = {place.replace("_", "-") for place, _ in option_places(RunConfig)} | {*SWITCHES}
    word = name.replace("_", "-")
    if word in SWITCHES:
        return f"--{name} has no effect here: it belongs to manyturn train --resume RUN"
    near = [] if word in names else near_names(word, sorted(names), cutoff=0.75)
    return f"--{name} has no value: " + (f"did you mean --{near[0]}?" if near else f"write --{name} VALUE")


def _place_of(name: str) -> str:
    """Path of an option: a dash stands for an underscore, and for the dot after a section.

    >>> _place_of("env-args"), _place_of("sampling-max-tokens"), _place_of("checkpoint-every")
    ('env.args', 'sampling.max_tokens', 'checkpoint_every')
    >>> _place_of("endpoint-headers.X-Key")
    'endpoint.headers.X-Key'
    """
    first, *others = name.replace("-", "_").split(".")
    section, _, rest = first.partition("_")
    if first not in _SECTIONS and rest and section in _SECTIONS:
        first = f"{section}.{rest}"
    place = ".".join([first, *others])
    begin, headers, _ = place.partition(_HEADERS)
    if not headers or (begin and not begin.startswith("roles.")):
        return place
    length = len(begin) + len(_HEADERS)
    return place[:length] + name[length:]


def put_option(options: dict[str, Any], name: str, value: Any) -> None:
    """Enter an option by its name, whose sections are separated by dots; raises OverrideError if it is there."""
    place = options
    *sections, last = name.split(".")
    for section in sections:
        place = place.setdefault(section, {})
        if not isinstance(place, dict):
            raise OverrideError(f"--{name}: {section} has a value already")
    if name in _CHOICES and isinstance(value, str):
        value = {_CHOICES[name]: value}
    if name == "roles" or sections == ["roles"]:
        value = parts_as_tables({"roles": {last: value} if sections else value})["roles"]
        value = value[last] if sections else value
    old = place.get(last)
    if isinstance(old, dict) and isinstance(value, dict) and not old.keys() & value.keys():
        value = {**old, **value}
    elif last in place:
        raise OverrideError(f"--{name} is given twice: give it once")
    place[last] = value


def read_value(text: str) -> Any:
    """A value as TOML, or the text itself if it is none; ``unset`` takes back what a recipe says."""
    if text == "unset":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def changed(base: Section, section: str, given: Any) -> Section:
    """A section of options with some of them changed; raises OverrideError in one line.

    Args:
        section: what the section is called on the command line.
        given: the options, as ``parse_overrides`` found them.
    """
    return _parsed(base, section, given, type(base).model_validate)


def chosen(registry: Registry[Any], base: Options, section: str, given: Any) -> Any:
    """The same of a section whose options are those of the part that it names: another name begins from defaults."""
    return _parsed(base, section, given, registry.parse)


def _parsed(base: Options, section: str, given: Any, parse: Callable[[Any], Any]) -> Any:
    if not isinstance(given, Mapping):
        raise OverrideError(f"--{section} is a section: write --{section}.name value")
    try:
        return parse(overlay({section: base.model_dump(mode="json")}, {section: dict(given)})[section])
    except ValidationError as error:
        raise OverrideError(one_line(error, section)) from None
