"""Words of the command line that choose tasks."""

from typing import Annotated

from cyclopts import Parameter

TaskWords = Annotated[tuple[str, ...] | None, Parameter(negative="", consume_multiple=True, show_default=False)]
"""``--tasks ID…``, ``--tasks @FILE``, ``--tasks failed:FOLDER`` or ``--tasks tag=NAME``."""
