"""Names of environments: ids in Gymnasium's registry, or ``FILE.py:Class`` for a file outside the project."""

import difflib
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from manyturn.envs.contract.keys import digest

PLUGINS = "manyturn.plugins"
_registered: set[str] = set()


class UnknownEnv(ValueError):
    """No environment of that name."""


class UnknownArgument(ValueError):
    """The environment's constructor does not take the argument."""


class PluginError(ValueError):
    """An installed plugin cannot be loaded; the text says which, and why."""


class NeedsSetup(ValueError):
    """The environment needs files or programs that are missing; the text says which, and where they are from."""


def register(id: str, entry_point: Any, **kwargs: Any) -> None:
    """Register an environment with Gymnasium; registering the same thing twice is allowed.

    Args:
        id: ``namespace/Name-v0``.
        entry_point: ``"package.module:Class"`` or the class.
        kwargs: passed to the class's constructor.
    """
    known = gymnasium.registry.get(id)
    if known is not None:
        if known.entry_point == entry_point and known.kwargs == kwargs:
            return
        raise ValueError(f"{id} is registered already, as {known.entry_point}: choose another name or version")
    _registered.add(id)
    # TextEnv sees itself to reset before step; Gymnasium's wrapper for it would refuse a step after restore.
    gymnasium.register(id, entry_point, order_enforce=False, kwargs=kwargs)


@cache
def load_plugins() -> tuple[str, ...]:
    """Import every module that installed packages announce under the entry-point group ``manyturn.plugins``.

    Raises:
        PluginError: one of them cannot be imported.
    """
    found = sorted(entry_points(group=PLUGINS), key=lambda point: point.name)
    for point in found:
        _load_plugin(point)
    return tuple(point.name for point in found)


@cache  # so that those that are sound are loaded once, however often a broken one is tried
def _load_plugin(point: EntryPoint) -> None:
    try:
        loaded = point.load()
        if callable(loaded):
            loaded()
    except (Exception, SystemExit) as error:
        package = point.dist.name if point.dist is not None else "an unknown package"
        raise PluginError(
            f"the plugin {point.name!r} of {package} cannot be loaded from {point.value}: "
            f"{type(error).__name__}: {error}; fix the package, or uninstall it"
        ) from error


@cache
def load_class(path: Path, name: str) -> type[gymnasium.Env]:
    """The class ``name`` of the Python file ``path``."""
    if not path.is_file():
        raise UnknownEnv(f"no file {path}: name an environment as FILE.py:Class or by its id")
    module_name = f"manyturn_file_{path.stem}_{digest(str(path))[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, gymnasium.Env)):
        classes = [
            k
            for k, v in vars(module).items()
            if isinstance(v, type) and issubclass(v, gymnasium.Env) and v.__module__ == module_name
        ]
        raise UnknownEnv(f"{path} has no environment {name!r}; it defines {', '.join(classes) or 'none'}")
    return found


def env_ids() -> list[str]:
    """Ids of all environments of this project and of its plugins."""
    load_plugins()
    return sorted(_registered)


def is_file(name: str) -> bool:
    """Whether a name is ``FILE.py:Class``, which runs the file."""
    file, colon, _ = name.rpartition(":")
    return bool(colon) and file.endswith(".py")


def make(name: str, **kwargs: Any) -> gymnasium.Env:
    """Make an environment by id or by ``FILE.py:Class``.

    ``gymnasium.make`` with an id does the same once the package that registers it was imported; this also loads
    plugins, takes files, and leaves out Gymnasium's per-step checks, which ``manyturn check`` runs instead.
    """
    file, colon, cls = name.rpartition(":")
    if colon and file.endswith(".py"):
        maker = load_class(Path(file).resolve(), cls)
        _check_arguments(name, maker, kwargs)
        return maker(**kwargs)
    load_plugins()
    if name not in gymnasium.registry:
        close = difflib.get_close_matches(name, gymnasium.registry, n=3, cutoff=0.5) or env_ids()
        raise UnknownEnv(f"no environment {name!r}; did you mean {', '.join(close)}? A file is named FILE.py:Class")
    entry = gymnasium.registry[name].entry_point
    if entry is not None:
        for_class = kwargs.keys() - inspect.signature(gymnasium.make).parameters.keys()
        _check_arguments(name, load_env_creator(entry) if isinstance(entry, str) else entry, sorted(for_class))
    return gymnasium.make(name, disable_env_checker=True, **kwargs)


def _check_arguments(name: str, maker: Any, given: Iterable[str]) -> None:
    """Raise UnknownArgument for an argument that the constructor does not take."""
    known = arguments_of(maker)
    for argument in given:
        if known is not None and argument not in known:
            raise UnknownArgument(f"{name} takes no argument {argument!r}; it takes {', '.join(known) or 'none'}")


def arguments_of(maker: Any) -> tuple[str, ...] | None:
    """Names that a constructor takes, those of ``**name: Unpack[TypedDict]`` among them; None if it takes any."""
    known: list[str] = []
    for parameter in inspect.signature(maker).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            known.append(parameter.name)
        elif get_origin(parameter.annotation) is Unpack:
            known.extend(get_type_hints(get_args(parameter.annotation)[0]))
        else:
            return None
    return tuple(known)


def spec_of(name: str) -> EnvSpec | None:
    """Gymnasium's record of an id, or None for a file."""
    return gymnasium.registry.get(name)
