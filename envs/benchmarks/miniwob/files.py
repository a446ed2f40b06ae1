"""Where the tasks of the package miniwob lie, and which of them can be played by number."""

import importlib.util
from functools import cache
from pathlib import Path

from manyturn.envs.contract.environments import NeedsSetup

# A test solves each of them by script, with the environment's own commands. Left out are those that need a mouse's
# path, colours or shapes, marked text, exact spaces or quick hands, and those whose controls may cover one another.
PLAYABLE = (
    "choose-list",
    "click-button",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-transfer",
    "click-dialog",
    "click-dialog-2",
    "click-option",
    "click-tab",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "enter-text-dynamic",
    "find-word",
    "focus-text-2",
    "form-sequence-2",
    "login-user",
    "login-user-popup",
    "navigate-tree",
    "read-table",
    "simple-algebra",
    "simple-arithmetic",
    "unicode-test",
    "use-autocomplete",
)


@cache
def folder() -> Path:
    """The package's folder of HTML files. Raises NeedsSetup. The package itself, which wants selenium, is not run."""
    found = importlib.util.find_spec("miniwob")
    if found is None or found.origin is None:
        raise NeedsSetup("the package miniwob is not installed: pip install 'manyturn[web,miniwob]'")
    return Path(found.origin).resolve().parent / "html"


def file_of(name: str) -> Path:
    """The page of a task. Raises ValueError for a name that there is not, NeedsSetup without the package."""
    pages = {file.stem: file for file in (folder() / "miniwob").glob("*.html")}
    if name not in pages:
        raise ValueError(f"MiniWoB++ has no task {name!r}: there are {', '.join(sorted(pages))}")
    return pages[name]
