"""Notebook output of a result: the terminal's text as HTML."""

from collections.abc import Callable
from io import StringIO

from rich.console import Console

_WIDTH = 110  # signs in a line
_PAGE = '<pre style="line-height:1.25;overflow-x:auto;white-space:pre">{code}</pre>'


def as_html(show: Callable[[Console], object]) -> str:
    """Render the output of ``show`` as HTML with the same text.

    Names of policies and tasks may be of unknown origin: all text is escaped.
    """
    console = Console(file=StringIO(), record=True, width=_WIDTH, highlight=False, force_jupyter=False)
    show(console)
    return console.export_html(inline_styles=True, code_format=_PAGE)
