"""Plugins: what installed packages announce, which registers environments and parts of recipes.

A package announces a module, or a function of one, under the entry-point group ``manyturn.plugins``. A plugin that is
broken is named in a warning and passed by: whoever does not need it goes on.
"""

import traceback
import warnings
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

PLUGINS = "manyturn.plugins"


class PluginWarning(UserWarning):
    """A plugin is broken and passed by; the text names it, its package and what it raised."""


@cache
def load_plugins() -> tuple[str, ...]:
    """Import all plugins, once; warns of each that is broken.

    Returns:
        What is wrong with those that are broken.
    """
    points = sorted(entry_points(group=PLUGINS), key=lambda point: point.name)
    faults = tuple(fault for fault in map(_load, points) if fault is not None)
    for fault in faults:
        warnings.warn(f"{fault}. It is passed by: fix the package, or uninstall it", PluginWarning, stacklevel=2)
    return faults


def where_else() -> str:
    """The end of a message about a name that nobody has: plugins that might have had it, if they were not broken."""
    return "".join(f"; it may be a name of a plugin that is broken: {fault}" for fault in load_plugins())


def _load(point: EntryPoint) -> str | None:
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
