"""Options that cannot work together, or of which one does nothing: each is refused with the reason and the fix.

What options forbid by themselves, their own validation refuses: a bound, a validator, an ``OnlyWith``. What they forbid
in a run is in their ``refuse``, next to the options that it concerns. One walk finds the options of a whole
configuration, those of a plugin's stages too, and asks each of them twice: when the configuration is complete, and
when the environment is open.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from manyturn.envs.contract.options.options import ConfigError, Options, idle
from manyturn.envs.contract.tasks.env_facts import EnvFacts


def options_in(value: Any) -> Iterator[Options]:
    """All options inside a value, outer ones first, in the order of their fields.

    >>> class Inner(Options):
    ...     size: int = 1
    >>> class Outer(Options):
    ...     inners: tuple[Inner, ...] = (Inner(size=2), Inner(size=3))
    >>> [type(options).__name__ for options in options_in(Outer())]
    ['Outer', 'Inner', 'Inner']
    """
    if isinstance(value, Options):
        yield value
        inner = [getattr(value, name) for name in type(value).model_fields]
    elif isinstance(value, Mapping):
        inner = list(value.values())
    else:
        inner = list(value) if isinstance(value, list | tuple) else []
    for part in inner:
        yield from options_in(part)


def refuse_unfit(run: Options, env: EnvFacts | None = None) -> None:
    """Raise ConfigError with the first reason that any options of a run have against it.

    Args:
        run: the full configuration of the run.
        env: its environment; None while only the configuration is known.
    """
    for options in options_in(run):
        kinds = [kind for kind in reversed(type(options).__mro__) if "refuse" in vars(kind)]
        if reason := next(filter(None, (kind.refuse(options, run, env) for kind in kinds)), None):
            raise ConfigError(reason)


def refuse_idle(options: Options, change: Mapping[str, Any], section: str = "") -> None:
    """Raise ConfigError if a change on top sets an option that does nothing because another one is off.

    What a recipe sets may wait for its switch; what the user sets on top of it is meant to do something.

    Args:
        options: as they are with the change.
        change: what was set, section by section.
        section: the options' place in the configuration, such as ``"learner."``.
    """
    waiting = idle(options)
    for name, given in change.items():
        if marker := waiting.get(name):
            raise ConfigError(f"{section}{name} has no effect {marker.state(options, section)}: {marker.fix}")
        inner = getattr(options, name, None)
        if isinstance(inner, Options) and isinstance(given, Mapping):
            refuse_idle(inner, given, f"{section}{name}.")
