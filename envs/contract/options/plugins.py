"""Plugins: what installed packages announce, which registers environments and parts of recipes.

A package announces a module, or a function of one, under the entry-point group ``manyturn.plugins``. A plugin that is
broken is named in a warning and passed by: whoever does not need it goes on. Functions import ``importlib.metadata``,
since ``import manyturn`` does not need it.
"""

import re
import threading
import traceback
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PLUGINS = "manyturn.plugins"
_loading = threading.RLock()


class PluginWarning(UserWarning):
    """A plugin is broken and passed by; the text names it, its package and what it raised."""


def plugin_points() -> "tuple[EntryPoint, ...]":
    """Announcements of all plugins, in the order of their names."""
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=PLUGINS), key=lambda point: point.name))


def load_plugins() -> tuple[str, ...]:
    """Import all plugins, once; warns of each that is broken.

    Returns:
        What is wrong with those that are broken.
    """
    with _loading:  # a cache alone lets two threads load them
        return _loaded()


@cache
def _loaded() -> tuple[str, ...]:
    faults = tuple(fault for fault in map(_load, plugin_points()) if fault is not None)
    for fault in faults:
        warnings.warn(f"{fault}. It is passed by: fix the package, or uninstall it", PluginWarning, stacklevel=3)
    return faults


def where_else() -> str:
    """The end of a message about a name that nobody has: plugins that might have had it, if they were not broken."""
    return "".join(f"; it may be a name of a plugin that is broken: {fault}" for fault in load_plugins())


def package_of(module: str) -> str | None:
    """The installed package that a module belongs to, as a requirement such as ``name>=1.0``; None if there is none."""
    from importlib.metadata import entry_points, packages_distributions, version

    root = module.partition(".")[0]
    points = (point for point in entry_points(group=PLUGINS) if point.module.partition(".")[0] == root)
    if (dist := next((point.dist for point in points if point.dist is not None), None)) is not None:
        return f"{dist.name}>={dist.version}"
    if not (names := packages_distributions().get(root)):
        return None
    return f"{names[0]}>={version(names[0])}"


def extra_with(package: str) -> str | None:
    """The extra of manyturn that brings an importable package; None if none does."""
    from importlib.metadata import PackageNotFoundError, requires

    with suppress(PackageNotFoundError):
        name = re.escape(package.partition(".")[0])
        matches = (
            re.match(rf"{name}\b.*;.*extra\s*==\s*['\"]([\w-]+)['\"]", need) for need in requires("manyturn") or []
        )
        return next((match[1] for match in matches if match), None)
    return None


def _load(point: "EntryPoint") -> str | None:
    """Error of a plugin in one line; None if it has been loaded."""
    try:
        loaded = point.load()
        if callable(loaded):
            loaded()
    except (Exception, SystemExit) as error:
        package = point.dist.name if point.dist is not None else "an unknown package"
        last = " ".join(traceback.format_exception_only(error)[-1].split())
        return f"the plugin {point.name!r} of {package} ({point.value}) raised {last}{_place(error, point.module)}"
    return None


def _place(error: BaseException, module: str) -> str:
    """The innermost line of the plugin's own package that the error came through."""
    package = module.partition(".")[0]
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "").partition(".")[0] == package:
            return f" ({Path(frame.f_code.co_filename).name}, line {line})"
    return ""
