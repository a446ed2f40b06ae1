"""A bar in the cell of a notebook that runs, drawn in place."""

import sys
import time
from html import escape
from typing import Any

from manyturn.terminal.escape import visible

_EVERY = 0.25  # seconds between two drawings


class NotebookBar:
    """Says how far something is. Text of unknown origin is shown as text."""

    def __init__(self) -> None:
        self._shown: Any = None
        self._drawn = 0.0

    def __call__(self, text: str, done: int, total: int | None) -> None:
        """Draw, unless it was drawn a moment ago and is not at its end."""
        now = time.monotonic()
        if self._shown is not None and done != total and now - self._drawn < _EVERY:
            return
        self._drawn = now
        text = visible(text)
        bar = f'<progress value="{done}" max="{total}"></progress> ' if total else ""
        data = {"text/plain": text, "text/html": f"<div>{bar}<code>{escape(text)}</code></div>"}
        if self._shown is None:
            from IPython.display import display

            self._shown = display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)


def notebook_bar() -> NotebookBar | None:
    """A bar where a notebook shows what this process displays, else None."""
    loaded = sys.modules.get("IPython")
    shell = loaded.get_ipython() if loaded is not None else None
    return NotebookBar() if type(shell).__name__ == "ZMQInteractiveShell" else None
