"""Logger of a run's metrics: lines to its folder, its loggers and the caller, with notices and warnings."""

import time
from typing import Any

from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.run_folder import RunFolder, read_metrics
from manyturn.trainers.record.trackers.run_loggers import RunLoggers
from manyturn.trainers.run.loop.metric_warnings import oddities


class MetricsLogger:
    """Writer of a run's metrics and notices.

    Args:
        report: receives each line, with the seconds since the process began this run.

    Attributes:
        config: the run's, which warnings depend on.
        note: takes a notice, which is printed once.
    """

    def __init__(self, folder: RunFolder, config: RunConfig, report: Log):
        self.config, self._folder, self._report = config, folder, report
        self._began = time.monotonic()
        self.loggers = RunLoggers(config.loggers)
        self.note = Notices(self.tell)

    def log(self, line: dict[str, Any]) -> None:
        """Write a line of metrics, and warn where its figures mislead."""
        line = {"seconds": self._seconds(), **line}
        self.loggers.line(self._folder.log(line))
        self._report(line)
        for warning in oddities(line, self.config):
            self.note(warning)

    def tell(self, line: dict[str, Any]) -> None:
        """Report a line that is no metric."""
        self._report({"seconds": self._seconds(), **line})

    def rewind(self, step: int, *, explored: bool = True, updates: int | None = None) -> None:
        """Drop the lines after a step, and begin the loggers with those before; see ``RunFolder.rewind``."""
        self._folder.rewind(step, explored=explored, updates=updates)
        self.loggers.begin(self._folder.path, self.config.model_dump(mode="json"), read_metrics(self._folder.path))

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)


class Notices:
    """Notices of a run besides its metrics: one line each, printed once, for the summary too.

    Args:
        report: receives ``{"phase": "notice", "notice": TEXT}``.

    Attributes:
        texts: the texts so far; those of a resumed run are put here.
    """

    def __init__(self, report: Log):
        self._report = report
        self.texts: list[str] = []

    def __call__(self, text: str) -> None:
        if text not in self.texts:
            self.texts.append(text)
            self._report({"phase": "notice", "notice": text})
