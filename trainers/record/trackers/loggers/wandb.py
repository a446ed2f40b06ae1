"""Weights & Biases: offline in ``wandb/`` of the run's folder unless it is asked to be online."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from manyturn.trainers.recipe.logger import LOGGERS
from manyturn.trainers.record.trackers.episode_sample import WatchedEpisode, turn_table
from manyturn.trainers.record.trackers.tracker import Sink, SinkConfig


class WandbConfig(SinkConfig):
    package: ClassVar[str] = "wandb"
    name: Literal["wandb"] = "wandb"
    project: str = "manyturn"
    """Project there."""
    entity: str | None = None
    """Whose project it is; unset: yours."""
    mode: Literal["offline", "online"] = "offline"
    """offline sends nothing: ``wandb sync RUN/wandb/offline-run-*`` does it later."""


@LOGGERS.register(WandbConfig)
class Wandb(Sink):
    """A continued run is another run there, with all its figures from the first, in the group of the run's name."""

    def start(self, folder: Path, name: str, config: Mapping[str, Any], after: int | None) -> None:
        # Neither what is printed, nor the machine, nor code: only what the run measures and says.
        self._wandb: Any = import_module("wandb")
        settings = self._wandb.Settings(
            console="off",
            silent=True,
            disable_git=True,
            disable_code=True,
            disable_job_creation=True,
            x_disable_stats=True,
            x_disable_meta=True,
        )
        self._run = self._wandb.init(
            project=self.config.project,
            entity=self.config.entity,
            name=name if after is None else f"{name}, from step {after}",
            group=name,
            dir=str(folder),
            mode=self.config.mode,
            config=dict(config),
            settings=settings,
        )
        for phases, axis in (
            (("train", "eval", "timing_s", "turns"), "step"),
            (("warmup", "imitation", "estimator", "critic"), "updates"),
        ):
            for phase in phases:
                self._run.define_metric(f"{phase}/*" if phase != "turns" else phase, step_metric=axis)

    def figures(self, values: Mapping[str, float], phase: str, at: int) -> None:
        axis = "step" if phase in ("train", "validation", "exploration") else "updates"
        self._run.log({**values, axis: at})

    def turns(self, step: int, episodes: list[WatchedEpisode]) -> None:
        columns, rows = turn_table(step, episodes)
        self._run.log({"turns": self._wandb.Table(columns=columns, data=rows), "step": step})

    def end(self, summary: Mapping[str, Any]) -> None:
        for when in ("before", "after"):
            for name in ("success", "return"):
                self._run.summary[f"{when}/{name}"] = summary[when][name]

    def close(self) -> None:
        self._run.finish()
