"""Steps of a run on a GPU that is not there; see ``needs/pretended_gpu.py``."""

from pathlib import Path
from typing import Any

from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.step import train_step

SMALL: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 3}},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 2},
    "sampling": {"max_tokens": 4},
    "rollout": {"tasks": 2, "group": 2, "cut_share": 1.0},
    "learner": {"engine_alarm": "note"},
    "device": "cuda",
    "steps": 3,
}


async def steps(config: RunConfig, folder: Path, count: int) -> list[dict[str, Any]]:
    """The metrics of the first steps, without warm-up, exploration and checkpoints."""
    async with open_run(config) as run:
        with RunFolder(folder, resume=False) as written:
            written.write_config(run.config)
            state = State()
            for trainee in run.trainees:
                assert trainee.learner.model.device.type == "cuda"
                trainee.learner.begin_reinforcement()
            return [await train_step(run, state, written) for _ in range(count)]
