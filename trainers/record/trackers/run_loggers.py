"""The loggers of one run. None of them can stop it: one that raises is named once and dropped. None gets a secret."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manyturn.envs.contract.credential_mask import masked_value
from manyturn.envs.contract.options.registry import Named
from manyturn.trainers.recipe.logger import LOGGERS, Logger


class RunLoggers:
    """Hands everything on to each logger that still works.

    Args:
        configs: the options of the loggers.
    """

    def __init__(self, configs: Iterable[Named]):
        self._loggers: dict[int, tuple[str, Logger]] = {}
        self._has_begun = False
        for number, config in enumerate(configs):
            try:
                self._loggers[number] = (config.name, LOGGERS.apply(config))
            except (Exception, SystemExit) as error:
                _report(config.name, error)

    def begin(self, folder: Path, config: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
        """The run begins, or goes on after ``lines``."""
        self._has_begun = True
        self._each(
            lambda logger: logger.begin(
                folder, masked_value(dict(config)), [masked_value(dict(line)) for line in lines]
            )
        )

    def line(self, line: Mapping[str, Any]) -> None:
        """A line of metrics has been written."""
        self._each(lambda logger: logger.line(masked_value(dict(line))))

    def end(self, summary: Mapping[str, Any]) -> None:
        """The run is complete."""
        self._each(lambda logger: logger.end(masked_value(dict(summary))))

    def close(self) -> None:
        """Nothing more will come. A logger that has not begun holds nothing to be closed."""
        if self._has_begun:
            self._each(lambda logger: logger.close())
        self._loggers.clear()

    def _each(self, call: Callable[[Logger], None]) -> None:
        for number, (name, logger) in list(self._loggers.items()):
            try:
                call(logger)
            except (Exception, SystemExit) as error:
                del self._loggers[number]
                _report(name, error)


def _report(name: str, error: BaseException) -> None:
    what = " ".join(f"{type(error).__name__}: {error}".split())
    print(f"manyturn: the logger {name!r} raised {what}; the run goes on without it", file=sys.stderr)
