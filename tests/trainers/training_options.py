"""Every option of a run and everything that can be chosen in it, by name, made from the classes that hold them.

``learner.lr`` is an option, ``objective=clip.kl`` a section that may be left out, ``credit.advantage=gigpo`` a choice,
and ``credit.advantage=gigpo.similarity`` an option of what was chosen; ``gates[].part`` is one of each gate.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from manyturn.envs.contract.options.option_paths import OptionPath, option_paths
from manyturn.envs.contract.options.options import Options
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig

OWN = "manyturn."
UNSET: Any = object()  # an option is left out, and has its default


class Option(NamedTuple):
    """An option, or a choice.

    Attributes:
        name: the path to it.
        above: names of the choices and of the sections which can be left out that it is inside of, outer ones first.
    """

    name: str
    above: tuple[str, ...]

    @property
    def is_choice(self) -> bool:
        """Whether the name ends with what is chosen."""
        return "=" in self.name.rpartition(".")[2]


def training_options() -> list[Option]:
    """All of them. A section that several choices have in common is entered in the first alone of their names."""
    return list(_inside(RunConfig, "", (), set()))


def _inside(kind: type[Options], path: str, above: tuple[str, ...], seen: set[type]) -> Iterator[Option]:
    for place in (place for place in option_paths(kind) if "." not in place.name and place.name != "name"):
        name = f"{path}{place.name}"
        if place.parts is not None:
            yield from _choices(place, name, above, seen)
        elif place.section is None:
            yield Option(name, above)
        else:
            always = place.section is place.field.annotation or name == "env"  # left out where envs names several
            if not always:
                yield Option(name, above)
            if place.section not in seen:
                seen.add(place.section)
                inside = f"{name}[]." if place.many else f"{name}."
                yield from _inside(place.section, inside, above if always else (*above, name), seen)


def _choices(place: OptionPath, name: str, above: tuple[str, ...], seen: set[type]) -> Iterator[Option]:
    registry: Any = place.parts
    known = [key for key in registry.names() if registry.entry(key).function.__module__.startswith(OWN)]
    for key in sorted(known, key=lambda key: (key != "clip", key)):
        chosen = f"{name}={key}"
        yield Option(chosen, above)
        yield from _inside(registry.entry(key).config_type, f"{chosen}.", (*above, chosen), seen)


def setting(name: str, value: Any) -> dict[str, Any]:
    """The configuration that sets an option; for a choice, chooses it with the table ``value`` of its options.

    What is inside of a list of sections is set by the list.

    >>> setting("credit.rewards=gated.equal", "closes")
    {'credit': {'rewards': [{'name': 'gated', 'equal': 'closes'}]}}
    """
    *sections, last = name.partition("[]")[0].split(".")
    found: Any = value
    for step in (last, *reversed(sections)):
        key, _, chosen = step.partition("=")
        if chosen:
            found = {"name": chosen, **(found or {})}
        many = [found] if chosen and key in ("rewards", "modulation", "wrappers", "columns", "loggers") else found
        found = {key: many}
    return found


def laid(recipe: dict[str, Any], world: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with these options; those that are UNSET are taken away."""
    for name, value in world.items():
        recipe = without_unset(stacked([recipe, setting(name, value)])) if value is not UNSET else recipe
    return recipe


def without_unset(recipe: Any) -> Any:
    if isinstance(recipe, dict):
        return {key: without_unset(value) for key, value in recipe.items() if value is not UNSET}
    return recipe
