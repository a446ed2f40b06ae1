"""Two steps of a run from a warmed-up policy, through its front door, and how far two such runs are apart."""

import asyncio
import contextlib
import io
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import coarse_engine  # noqa: F401  registers an engine
import torch
from safetensors.torch import load_file
from training_options import laid

from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.run.loop.loop import train

# Stand for the folders of models, which are known at run time: one that was taught, one that was hardly, and three that
# were taught to say what they do between tags, as calls of tools, or as a number between tags.
WARMED, FRESH, TAGGED, CALLING, STATING = "WARMED", "FRESH", "TAGGED", "CALLING", "STATING"
LAMPS: dict[str, Any] = {"env": {"id": f"{Path(__file__).with_name('lamps.py')}:Lamps"}}
TINY: dict[str, Any] = {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 9}
SMALL: dict[str, Any] = {
    **LAMPS,
    "agent": {"format": "free_text", "instructions": False, "max_context": 128},
    "sampling": {"max_tokens": 3},
    "evaluation": {"limit": 1},
    "device": "cpu",
    "threads": 1,
}
TEACHING: dict[str, Any] = {
    "episodes": 36,
    "noise": 0.6,
    "lr": 1e-2,
    "max_updates": 60,
    "until_success": 1.0,
    "check_episodes": 4,
    "must_succeed": False,
}
WORLD: dict[str, Any] = stacked(
    [
        SMALL,
        {
            "model": {"name": "pretrained", "path": WARMED},
            "warmup": {"episodes": 0},
            "rollout": {"tasks": 4, "group": 4},
            "credit": {"advantage": "grpo"},
            "objective": {"name": "clip"},
            "learner": {"lr": 1e-2, "minibatch": 8, "lora_rank": 0},
            "steps": 2,
            "checkpoint_every": 1000,
            "keep_checkpoints": 9,
        },
    ]
)
TAGS: dict[str, Any] = {"agent.format": "tagged", "sampling.max_tokens": 8}
CALLS: dict[str, Any] = {"env.args": {"calls": True}, "sampling.max_tokens": 24, "agent.max_context": 512}
STATES: dict[str, Any] = {**TAGS, "env.args": {"numbers": True}, "sampling.max_tokens": 12}
TAUGHT: dict[str, dict[str, Any]] = {
    WARMED: {},
    FRESH: {"warmup.max_updates": 30},
    TAGGED: {**TAGS, "warmup.max_updates": 40},
    CALLING: {**CALLS, "warmup.max_updates": 80},
    STATING: {**STATES, "warmup.max_updates": 40},
}
ROUNDING = 1e-3  # of the way that weights have moved: as far as another order of sums leads at most


class Trained(NamedTuple):
    """A run's weights before and after it, as one vector each, the shapes that they had, and what it said."""

    before: torch.Tensor
    after: torch.Tensor
    shapes: tuple[Any, ...]
    notices: list[str]

    @classmethod
    def of(cls, run: Path, steps: int, notices: list[str]) -> "Trained":
        """What is in the folder of a run that kept its first checkpoint."""
        before, after = (_weights(run / f"checkpoints/step_{step:06d}") for step in (0, steps))
        return cls(_flat(before), _flat(after), _shapes(after), notices)


class Trainings:
    """Runs configurations, each once.

    Args:
        folder: for the runs.
    """

    def __init__(self, folder: Path):
        self.folder, self._done, self._models = folder, dict[str, Trained](), dict[str, str]()
        self._numbers = itertools.count()

    def run(self, recipe: Mapping[str, Any]) -> Trained:
        text = json.dumps(recipe, sort_keys=True)
        if text not in self._done:
            self._done[text] = self._trained(f"run {next(self._numbers)}", recipe)
        return self._done[text]

    def _trained(self, name: str, recipe: Mapping[str, Any]) -> Trained:
        values = dict(recipe)
        if (path := values["model"].get("path")) in TAUGHT:
            values["model"] = {**values["model"], "path": self._model(path)}
        path = self.folder / name
        with contextlib.redirect_stderr(io.StringIO()):  # bars of transformers
            summary = asyncio.run(train(configure(values), path))
        return Trained.of(path, values["steps"], summary["notices"])

    def _model(self, name: str) -> str:
        """The folder of a tiny decoder that was taught, when it is first asked for."""
        if name not in self._models:
            recipe = laid(stacked([SMALL, {"model": TINY, "warmup": TEACHING, "steps": 0}]), TAUGHT[name])
            updates = recipe["warmup"]["max_updates"]
            self._trained(name, laid(recipe, {"warmup.check_every": updates}))
            self._models[name] = str(self.folder / name / "checkpoints/step_000000/model")
        return self._models[name]


def apart(one: Trained, other: Trained) -> float:
    """How far the weights of two runs are apart, as a share of how far they have moved; infinite for other models."""
    if one.shapes != other.shapes:
        return float("inf")
    moved = max(float((run.after - run.before).norm()) for run in (one, other))
    distance = float((one.after - other.after).norm())
    return distance / moved if moved else distance


def _weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    files = sorted(file for file in checkpoint.rglob("*.safetensors") if file.parent.name.startswith("model"))
    return {f"{file.stem}/{key}": value for file in files for key, value in load_file(file).items()}


def _flat(weights: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([value.flatten().double() for _, value in sorted(weights.items())])


def _shapes(weights: Mapping[str, torch.Tensor]) -> tuple[Any, ...]:
    return tuple((name, tuple(value.shape), value.dtype) for name, value in sorted(weights.items()))
