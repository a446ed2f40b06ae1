"""Loggers: what else receives the metrics of a run. ``metrics.jsonl`` is written with or without them.

A logger is its options and a class, as for everything that a recipe names::

    class NoteConfig(Named):
        name: Literal["note"] = "note"

    @LOGGERS.register(NoteConfig)
    class Note(Logger):
        def __init__(self, config: NoteConfig): ...

        def line(self, line: Mapping[str, Any]) -> None: ...

A recipe lists them: ``loggers = ["csv"]``, or a table ``[[loggers]]`` for each.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyturn.envs.contract.options.registry import Registry


class Logger:
    """Base of the loggers: override ``line``, and of the rest what is needed.

    A call holds the run up, so be quick. A logger that raises is dropped, and the run goes on.
    """

    def begin(self, folder: Path, config: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
        """A run begins, or is continued.

        Args:
            folder: the run's folder.
            config: the run's full configuration, as plain values.
            lines: what a continued run wrote before, up to the checkpoint that it goes on from. Lines that the logger
                received after those do not count: they will come again.
        """

    def line(self, line: Mapping[str, Any]) -> None:
        """A line of metrics, as it is in ``metrics.jsonl``; None is a figure that is not finite."""
        raise NotImplementedError(f"{type(self).__name__} does nothing with a line: override line()")

    def end(self, summary: Mapping[str, Any]) -> None:
        """The run is complete; ``summary`` is what ``summary.json`` says."""

    def close(self) -> None:
        """The process is done with the run, complete or not. Not called where the run did not begin."""


LOGGERS: Registry[Logger] = Registry("logger", "manyturn.trainers.record.trackers.loggers")
