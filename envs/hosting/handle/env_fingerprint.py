"""Fingerprints of an environment: its identity, and the facts that must be equal on two machines for equal episodes."""

import hashlib
import importlib.metadata
import inspect
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium

from manyturn.envs.contract.env.error_location import MACHINERY, OF_A_FILE
from manyturn.envs.contract.options.plugins import plugin_points
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import is_elsewhere, is_file, maker_of, spec_of
from manyturn.envs.contract.registration.sibling_modules import source_files
from manyturn.envs.contract.tasks.env_identity import EnvIdentity
from manyturn.envs.contract.tasks.panel import portable_name
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.hosting.handle.messages import task_to_wire

LANGUAGE = 1  # a host and a driver that speak another one refuse each other
_DIGITS = 16  # of a file's hash
_OWN = "manyturn"
_BENCHMARKS = "benchmarks"  # each folder in it is a family
_NO_FILES = sys.stdlib_module_names | {_OWN, "gymnasium"}  # what an environment has of these is in no file of its own
_INSTALLED = tuple(Path(sysconfig.get_paths()[name]).resolve() for name in ("purelib", "platlib"))


def identity_of(handle: EnvHandle) -> EnvIdentity:
    """The identity of an environment, with the files as they were when this process first asked.

    Files are those of ``FILE.py`` and of its neighbours that it imports, as for policies in Python; of a package all
    its modules; of an environment of ours the folders of the families that its class is from.
    """
    spec, kinds = spec_of(handle.name), list(_kinds(handle))
    return EnvIdentity(
        id=_portable(handle.name),
        version=None if spec is None else spec.version,
        files=_merged(map(_files_of, kinds)),
        packages=_merged([*map(_packages_of, kinds), _elsewhere(handle.name), _served(handle)]),
        wrappers=tuple(handle.wrappers),
        wrapper_files=_merged(_files_of(WRAPPERS.entry(one["name"]).function) for one in handle.wrappers),
    )


def fingerprint_of(handle: EnvHandle) -> dict[str, str]:
    """Digests of what must be equal on two machines for their episodes to be the same."""
    identity = identity_of(handle)
    world = {
        "language": LANGUAGE,
        "source": {**identity.files, **identity.wrapper_files},
        "packages": identity.packages,
        "instructions": handle.instructions,
        "roles": handle.roles,
        "splits": handle.splits,
        "max_turns": handle.max_turns,
        "parts of rewards": handle.part_names,
        "tasks": _tasks(handle),
    }
    return {name: digest(value) for name, value in world.items()}


def was_edited(kind: type) -> bool:
    """True if a file of a class has changed since this process first looked."""
    return _files_now(kind) != _files_of(kind)


def _portable(name: str) -> str:
    """A name without the folder of its file, or of its tasks."""
    scheme, colon, rest = name.partition(":")
    return f"{scheme}:{Path(rest).name}" if scheme == "harbor" and colon else portable_name(name)


def _kinds(handle: EnvHandle) -> Iterable[Any]:
    """Classes of the environment and of what is around it besides our wrappers, and the function that made it."""
    layer = handle.inner
    while isinstance(layer, gymnasium.Wrapper):
        yield type(layer)
        layer = layer.env
    yield type(layer)
    if inspect.isfunction(maker := maker_of(handle.name, ())):
        yield maker


def _merged(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for part in parts:
        merged |= part
    return dict(sorted(merged.items()))


@cache
def _files_of(kind: Any) -> Mapping[str, str]:
    """Hashes of the files of a class or function, as they were when this process first asked."""
    return _files_now(kind)


def _files_now(kind: Any) -> dict[str, str]:
    """File or folder -> hash; empty where there is none to read."""
    families = {_family(cls.__module__) for cls in getattr(kind, "__mro__", (kind,))}
    hashes = _merged(_family_files(family) for family in families if family is not None)
    return hashes if _top(kind) in _NO_FILES else {**hashes, **_user_files(kind)}


def _family(module: str) -> str | None:
    """The folder of a family of ours that a module belongs to, such as ``manyturn/envs/classics``."""
    parts = module.split(".")
    if parts[:2] != [_OWN, "envs"] or len(parts) < 4 or parts[2] in MACHINERY:
        return None
    return "/".join(parts[: 4 if parts[2] == _BENCHMARKS else 3])


def _family_files(family: str) -> dict[str, str]:
    """Hash of the folder of a family of ours, or of its only file."""
    place = Path(__file__).resolve().parents[3].joinpath(*family.split("/")[1:])
    if place.is_dir():
        return {f"{family}/": _folder_hash(place, "*")}
    return {f"{family}.py": _hash(place.with_suffix(".py"))}


def _user_files(kind: Any) -> dict[str, str]:
    """Hashes of the files of a class or function that is not ours."""
    try:
        file = Path(inspect.getsourcefile(kind) or "").resolve()
        if not file.is_file():
            raise OSError
    except (OSError, TypeError):
        return _text_of(kind)
    module = kind.__module__
    if module == "__main__" or module.startswith(OF_A_FILE):
        return {path.relative_to(file.parent).as_posix(): _hash(path) for path in source_files(file)}
    names = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    if not names:  # a module of its own
        near = any(file.is_relative_to(folder) for folder in _INSTALLED)
        files = [file] if near else source_files(file)  # installed neighbours are other distributions
        return {path.relative_to(file.parent).as_posix(): _hash(path) for path in files}
    folder = file.parent
    while len(names) > 1 and (folder.parent / "__init__.py").is_file():
        folder, names = folder.parent, names[:-1]
    return {f"{'/'.join(names)}/": _folder_hash(folder, "*.py")}


def _text_of(kind: Any) -> dict[str, str]:
    """Hash of the code of a class or function without a file, as in a notebook."""
    try:
        return {f"{kind.__qualname__} in Python": digest(inspect.getsource(kind))[:_DIGITS]}
    except (OSError, TypeError):
        return {}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]


def _folder_hash(folder: Path, pattern: str) -> str:
    """Hash of the files of a folder by their places in it; what Python and editors leave behind does not count."""
    state = hashlib.sha256()
    for path in sorted(folder.rglob(pattern), key=lambda path: path.relative_to(folder).as_posix()):
        place = path.relative_to(folder)
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in place.parts):
            state.update(f"{place.as_posix()}\0{_hash(path)}\n".encode())
    return state.hexdigest()[:_DIGITS]


def _top(kind: Any) -> str:
    return kind.__module__.partition(".")[0]


@cache
def _packages_of(kind: Any) -> Mapping[str, str]:
    """The distributions that a class is from, with their versions; empty for a file that nobody has installed."""
    tops = {_top(kind)} - _NO_FILES
    if any(_family(cls.__module__) for cls in getattr(kind, "__mro__", (kind,))):
        tops.add(_OWN)
    return _merged(_distribution(top) for top in tops if top != "__main__" and not top.startswith(OF_A_FILE))


def _distribution(top: str) -> Mapping[str, str]:
    """Name and version of the distribution of a package: the plugin's, or the one of the same name."""
    plugin = next((point.dist for point in plugin_points() if point.module.partition(".")[0] == top), None)
    if plugin is not None:
        return {plugin.name: plugin.version}
    try:
        return {top: importlib.metadata.version(top)}
    except importlib.metadata.PackageNotFoundError:
        return {}


def _elsewhere(name: str) -> Mapping[str, str]:
    """The distribution that a scheme such as ``textarena:`` is named after."""
    return _distribution(name.partition(":")[0]) if is_elsewhere(name) and not is_file(name) else {}


def _served(handle: EnvHandle) -> Mapping[str, str]:
    """The version that a server gives of the environment behind it."""
    version = getattr(handle.env.unwrapped, "served_version", None)
    return {} if version is None else {"at the server": version}


def _tasks(handle: EnvHandle) -> Any:
    """Number of training tasks, and the first and the last one."""
    tasks = handle.tasks("train")
    return [len(tasks), *(digest(task_to_wire(tasks[number])) for number in (0, -1) if tasks)]
