"""Sinks: loggers that hand figures and some turns of a run to a tracker of others. Each is a file in ``loggers/``.

A tracker sees what ``metrics.jsonl`` and the tables hold and nothing else, so it can change nothing of the run. Where
it fails, it is dropped with one line, as any logger is. A continued run is told from its beginning again, as a run of
its own where the tracker cannot forget: nothing is counted twice.
"""

import abc
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.recipe.logger import Logger
from manyturn.trainers.record.trackers.episode_sample import WatchedEpisode, watched
from manyturn.trainers.record.trackers.metric_names import named, place

_EVERY = OnlyWith("turns_every", may_wait=True)


class SinkConfig(Named):
    """Options of all sinks.

    Attributes:
        package: what has to be installed; the extra of this project has the same name.
    """

    package: ClassVar[str]
    run_name: str = ""
    """What the run is called there; empty: as its folder."""
    turns_every: int = Field(default=10, ge=0)
    """Steps between two tables of turns, of which the first step has one too; 0 leaves them out."""
    turns_episodes: Annotated[int, _EVERY] = Field(default=4, ge=1)
    """Episodes in such a table, evenly spread over the step's tasks."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return self._excess(run) or self._lack(env)

    def _excess(self, run: Any) -> str | None:
        if sum(logger.name == self.name for logger in run.loggers) < 2:
            return None
        return f"loggers names {self.name} twice, and the run would be there twice: leave one out"

    def _lack(self, env: EnvFacts | None) -> str | None:
        """The reason why the sink cannot be used; checked when a run begins, not when its configuration is read."""
        if env is None or find_spec(self.package) is not None:
            return None
        return f"loggers names {self.name}, which is not installed: pip install 'manyturn[{self.package}]'"


class Sink(Logger, abc.ABC):
    """Base of the sinks.

    Args:
        config: its options.
    """

    def __init__(self, config: Any):
        self.config = config
        self._folder = Path()

    def begin(self, folder: Path, config: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
        self._folder = folder
        name = self.config.run_name or folder.resolve().name
        after = max((line["step"] for line in lines), default=None)
        self.start(folder, name, config, after)
        for line in lines:
            self.line(line)

    def line(self, line: Mapping[str, Any]) -> None:
        self.figures(named(line), line["phase"], place(line))
        every, step = self.config.turns_every, line["step"]
        if line["phase"] == "train" and every and (step == 1 or step % every == 0):
            self.turns(step, watched(self._folder, step, self.config.turns_episodes))

    @abc.abstractmethod
    def start(self, folder: Path, name: str, config: Mapping[str, Any], after: int | None) -> None:
        """Open the tracker.

        Args:
            folder: the run's.
            config: the run's full configuration, as plain values.
            after: the step that a continued run goes on from; None for a new one.
        """

    @abc.abstractmethod
    def figures(self, values: Mapping[str, float], phase: str, at: int) -> None:
        """Take the figures of a line, which stand at a step, or at an update of the warm-up."""

    @abc.abstractmethod
    def turns(self, step: int, episodes: list[WatchedEpisode]) -> None:
        """Take episodes of a step. What is said in them was written by a model or its environment: it is hostile."""
