"""Event files of TensorBoard, in ``tensorboard/`` of the run's folder: ``tensorboard --logdir runs``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from manyturn.trainers.recipe.logger import LOGGERS
from manyturn.trainers.record.trackers.episode_sample import WatchedEpisode, as_code, cut
from manyturn.trainers.record.trackers.tracker import Sink, SinkConfig


class TensorboardConfig(SinkConfig):
    package: ClassVar[str] = "tensorboard"
    name: Literal["tensorboard"] = "tensorboard"


@LOGGERS.register(TensorboardConfig)
class Tensorboard(Sink):
    """A continued run writes its files again, from its beginning. Turns are texts, as code: TensorBoard would render
    Markdown, and fetch pictures that a model names."""

    def start(self, folder: Path, name: str, config: Mapping[str, Any], after: int | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        place = folder / "tensorboard" / Path(name).name
        for file in place.glob("events.out.tfevents.*"):
            file.unlink()
        self._writer = SummaryWriter(str(place))
        self._writer.add_text("config", as_code(json.dumps(config, indent=1)))

    def figures(self, values: Mapping[str, float], phase: str, at: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, at)
        self._writer.flush()

    def turns(self, step: int, episodes: list[WatchedEpisode]) -> None:
        for number, watched in enumerate(episodes):
            self._writer.add_text(f"turns/{number}", as_code(transcript(watched)), step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def transcript(watched: WatchedEpisode) -> str:
    """An episode to read."""
    row = watched.episode
    head = f"{row['task']}, member {row['member']}: {row['ending']}, return {row['return']}"
    turns = [
        f"--- turn {turn['turn']}, reward {turn['reward']:g}, advantage {turn.get('advantage')}\n"
        f"{cut(turn['observation'])}\n>>> {cut(turn['reply'])}"
        for turn in watched.turns
    ]
    return "\n".join([head, *turns])
