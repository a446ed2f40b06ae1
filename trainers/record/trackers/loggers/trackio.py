"""trackio: on this machine, where ``trackio show`` finds it, unless a Space is named."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from manyturn.trainers.recipe.logger import LOGGERS
from manyturn.trainers.record.trackers.episode_sample import WatchedEpisode, as_code, turn_table
from manyturn.trainers.record.trackers.tracker import Sink, SinkConfig


class TrackioConfig(SinkConfig):
    package: ClassVar[str] = "trackio"
    name: Literal["trackio"] = "trackio"
    project: str = "manyturn"
    """Project there."""
    space: str | None = None
    """Space of the Hugging Face Hub that everything is sent to; unset: nothing is sent, unless TRACKIO_SPACE_ID or
    TRACKIO_SERVER_URL is set."""


@LOGGERS.register(TrackioConfig)
class Trackio(Sink):
    """A continued run is another run there, with all its figures from the first. trackio's own folder: TRACKIO_DIR."""

    def start(self, folder: Path, name: str, config: Mapping[str, Any], after: int | None) -> None:
        self._trackio: Any = import_module("trackio")
        self._run = self._trackio.init(
            project=self.config.project,
            name=name if after is None else f"{name}, from step {after}",
            group=name,
            space_id=self.config.space,
            config=dict(config),
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def figures(self, values: Mapping[str, float], phase: str, at: int) -> None:
        if values:
            self._run.log(dict(values), step=at)

    def turns(self, step: int, episodes: list[WatchedEpisode]) -> None:
        columns, rows = turn_table(step, episodes)
        data = [[as_code(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
        self._run.log({"turns": self._trackio.Table(columns=columns, data=data)}, step=step)

    def close(self) -> None:
        self._run.finish()
