"""Names of environments: ids in Gymnasium's registry, ``FILE.py:Class``, or a scheme's, such as ``openenv:URL``."""

import ast
import importlib.util
import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from manyturn.envs.contract.env.error_location import OF_A_FILE
from manyturn.envs.contract.env.turn import ContractError
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.options.plugins import load_plugins, package_of, where_else
from manyturn.envs.contract.python_parser import parse
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.id_registration import REGISTERED
from manyturn.envs.contract.registration.sibling_modules import make_importable

# What a name may begin with in place of an id -> what makes the environment from the rest of the name.
_PREFIXES = {
    "harbor": "manyturn.envs.harbor.env:HarborEnv",
    "openenv": "manyturn.envs.openenv.env:ServedEnv",
    "ors": "manyturn.envs.ors.env:RewardServerEnv",
    "reasoning-gym": "manyturn.envs.packages.reasoning_gym:ReasoningEnv",
    "textarena": "manyturn.envs.packages.textarena:ArenaEnv",
    "verifiers": "manyturn.envs.verifiers.env:TasksetEnv",
}
_OF_PACKAGES = frozenset({"reasoning-gym", "textarena"})  # what they make is all in an installed package
_OURS = frozenset({"manyturn", "gymnasium"})  # what is installed wherever this project is
_loading = threading.RLock()
_PLAIN = (str, bool, int, float, type(None))


class UnknownEnv(ValueError):
    """No environment of that name."""


class UnknownArgument(ValueError):
    """The environment's constructor does not take the argument."""


class NeedsSetup(ValueError):
    """The environment needs files or programs that are missing; the text says which, and where they are from."""


class OutsideLost(RuntimeError):
    """Loss of a resource outside the environment's code, for example a server: no fault of the environment's."""


def load_file(path: Path) -> ModuleType:
    """The Python file ``path`` as a module, run once in this process; it may import what lies next to it."""
    with _loading:  # a cache alone lets two threads run the file
        return _module_of(path)


@cache
def _module_of(path: Path) -> ModuleType:
    if not path.is_file():
        raise UnknownEnv(f"no file {path}: name what it holds as FILE.py:NAME, or an environment by its id")
    module_name = f"{OF_A_FILE}{path.stem}_{digest(str(path))[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    make_importable(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def load_class(path: Path, name: str) -> type[gymnasium.Env]:
    """The class ``name`` of the Python file ``path``."""
    module = load_file(path)
    cls = getattr(module, name, None)
    if not (isinstance(cls, type) and issubclass(cls, gymnasium.Env)):
        classes = _classes_of(module)
        near = near_names(name, classes, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UnknownEnv(f"{path} has no environment {name!r}; it defines {', '.join(classes) or 'none'}{hint}")
    return cls


def _classes_of(module: ModuleType) -> list[str]:
    """Names of the environments that a file defines itself."""
    own = (cls for cls in vars(module).values() if isinstance(cls, type) and cls.__module__ == module.__name__)
    return [cls.__name__ for cls in own if issubclass(cls, gymnasium.Env)]


def _classes_written_in(path: Path) -> list[str]:
    """Names of the classes of a file that extend another one; the file is read and not run."""
    if not path.is_file():
        raise UnknownEnv(f"no file {path}: name an environment as FILE.py:Class, or by its id")
    return [one.name for one in parse(path.read_bytes(), str(path)).body if isinstance(one, ast.ClassDef) and one.bases]


def env_ids() -> list[str]:
    """Ids of all environments of this project and of its plugins."""
    load_plugins()
    return sorted(REGISTERED)


def is_file(name: str) -> bool:
    """True if a name is ``FILE.py:Class``, which runs the file."""
    file, colon, _ = name.rpartition(":")
    return bool(colon) and file.endswith(".py")


def is_elsewhere(name: str) -> bool:
    """True if a name begins with a scheme, for example ``openenv:``: the environment is another project's."""
    return name.partition(":")[0] in _PREFIXES


def is_only_by_hand(name: str) -> bool:
    """True if a name runs a file or connects to an address, so that it must not come from data."""
    return is_file(name) or name.endswith(".py") or (is_elsewhere(name) and name.partition(":")[0] not in _OF_PACKAGES)


def _elsewhere(name: str) -> Callable[..., Any]:
    """Constructor of the environments of a scheme. Raises ImportError that names the extra to install."""
    prefix, _, rest = name.partition(":")
    try:
        return partial(load_env_creator(_PREFIXES[prefix]), rest)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("manyturn"):
            raise
        raise ImportError(f"{prefix}: needs the package {error.name}: pip install 'manyturn[{prefix}]'") from error


def make(name: str, **kwargs: Any) -> gymnasium.Env:
    """Make an environment by id, by ``FILE.py:Class``, or by a scheme such as ``openenv:URL``.

    ``gymnasium.make`` with an id does the same once the package that registers it was imported; this also loads
    plugins, takes files, and leaves out Gymnasium's per-step checks, which ``manyturn check`` runs instead.
    """
    maker = maker_of(name, kwargs)
    if inspect.isabstract(maker):
        lacking = " and ".join(f"{method}()" for method in sorted(maker.__abstractmethods__))
        raise ContractError(f"{name} lacks {lacking}: write what a TextEnv must have")
    if _is_no_id(name):
        return maker(**kwargs)
    return gymnasium.make(name, disable_env_checker=True, **kwargs)


def maker_of(name: str, args: Iterable[str]) -> Any:
    """Constructor of an environment: its class, or a function. Raises UnknownEnv or UnknownArgument, as ``make`` would.

    Args:
        args: names of the arguments that it is to be made with.
    """
    maker = _elsewhere(name) if is_elsewhere(name) and not is_file(name) else _maker(name)
    if maker is not None:  # else gymnasium.make says that it has no entry point
        of_make = () if _is_no_id(name) else inspect.signature(gymnasium.make).parameters
        _check_arguments(name, maker, (word for word in args if word not in of_make))
    return maker


def _is_no_id(name: str) -> bool:
    return is_file(name) or is_elsewhere(name)


def unknown_env(name: str) -> UnknownEnv:
    """The error for a name that is no environment, with those that were probably meant."""
    if name.endswith(".py"):
        names = [f"{name}:{cls}" for cls in _classes_written_in(Path(name))]
        if not names:
            return UnknownEnv(f"{name} defines no environment: write a class that extends manyturn.TextEnv")
        return UnknownEnv(f"{name} is a file: name its class, {' or '.join(names)}")
    word = re.sub(r"-v\d+$", "", name.rpartition("/")[2]).lower()
    load_plugins()
    specs = gymnasium.registry.items()
    ids = sorted(id for id, spec in specs if not str(spec.entry_point).startswith("gymnasium."))  # those are no text
    words = {id: re.sub(r"-v\d+$", "", id.rpartition("/")[2]).lower() for id in ids}
    near = [id for id in ids if len(word) > 2 and word in words[id]]
    # By the words alone: versions are alike everywhere, and would make any two ids seem close.
    close = near_names(word, set(words.values()), n=3, cutoff=0.7)
    near += [id for near_word in close for id in ids if words[id] == near_word and id not in near]
    hint = f"did you mean {', '.join(near[:5])}? manyturn envs" if near else "manyturn envs"
    return UnknownEnv(
        f"no environment {name!r}; {hint} lists the ids of manyturn and of installed plugins (docs/plugins.md); a file "
        f"is named FILE.py:Class{where_else()}"
    )


def _check_arguments(name: str, maker: Any, given: Iterable[str]) -> None:
    """Raise UnknownArgument for an argument that the constructor does not take."""
    arguments = arguments_of(maker)
    for argument in given:
        if arguments is not None and argument not in arguments:
            raise UnknownArgument(f"{name} takes no argument {argument!r}; it takes {', '.join(arguments) or 'none'}")


def arguments_of(maker: Any) -> tuple[str, ...] | None:
    """Names that a constructor takes, those of ``**name: Unpack[TypedDict]`` among them; None if it takes any."""
    names: list[str] = []
    for parameter in inspect.signature(maker).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            names.append(parameter.name)
        elif get_origin(parameter.annotation) is Unpack:
            names.extend(get_type_hints(get_args(parameter.annotation)[0]))
        else:
            return None
    return tuple(names)


def guarded_arguments(name: str, args: Mapping[str, Any]) -> list[str]:
    """Names of those arguments that must not come from data: all but what the class lists as ``harmless``.

    A class outside of this project that lists nothing itself has none that is harmless.

    Args:
        name: id or ``FILE.py:Class``, whose file is run.
    """
    maker: Any = _maker(name) if args else None
    is_listed = args and ("harmless" in vars(maker) or maker.__module__.startswith("manyturn."))
    harmless = getattr(maker, "harmless", ()) if is_listed else ()
    return [argument for argument, value in args.items() if not _is_harmless(argument, value, harmless)]


def _is_harmless(argument: str, value: Any, harmless: Iterable[str]) -> bool:
    if argument in harmless:
        return all(isinstance(item, _PLAIN) for item in (value if isinstance(value, list | tuple) else [value]))
    kinds = {entry.partition(":")[2] for entry in harmless if entry.startswith(f"{argument}:")}
    if not isinstance(value, Mapping):
        return isinstance(value, str) and value in kinds
    options = {name: option for name, option in value.items() if name != "kind"}
    return value.get("kind") in kinds and all(isinstance(option, bool | int | float) for option in options.values())


def _maker(name: str) -> Any:
    """Constructor of the environment: its class, or a function."""
    file, _, cls = name.rpartition(":")
    if is_file(name):
        return load_class(Path(file).resolve(), cls)
    if is_elsewhere(name):
        return load_env_creator(_PREFIXES[name.partition(":")[0]])
    load_plugins()
    if name not in gymnasium.registry:
        raise unknown_env(name)
    entry = gymnasium.registry[name].entry_point
    return load_env_creator(entry) if isinstance(entry, str) else entry


def package_of_env(name: str) -> str | None:
    """The package outside of this project that registers an id, as a requirement; None where there is none."""
    if (spec := gymnasium.registry.get(name)) is None or spec.entry_point is None:
        return None
    entry = spec.entry_point
    module = entry.partition(":")[0] if isinstance(entry, str) else getattr(entry, "__module__", "")
    return None if module.partition(".")[0] in _OURS else package_of(module)


def check_installed(name: str, package: str | None) -> None:
    """Raise UnknownEnv where nobody has registered an id that a package registers.

    Args:
        package: as ``package_of_env`` gave it where the id was known.
    """
    load_plugins()
    if package is not None and name not in gymnasium.registry:
        raise UnknownEnv(f"{name} is of the package {package.partition('>=')[0]}: pip install '{package}'")


def spec_of(name: str) -> EnvSpec | None:
    """Gymnasium's record of an id, or None for a file."""
    return gymnasium.registry.get(name)
