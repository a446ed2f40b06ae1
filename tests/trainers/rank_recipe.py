"""A recipe whose steps every rank has a share of, and how far the weights of two of its runs are apart at the end."""

from pathlib import Path

from safetensors.torch import load_file
from training_options import laid
from two_steps import SMALL, TEACHING, TINY, Trained, apart

from manyturn.recipes.stack import stacked
from manyturn.trainers.record.checkpoint import read_tensors

STEPS = 4
RECIPE = laid(
    stacked([SMALL, {"model": TINY, "warmup": TEACHING}]),
    {
        "steps": STEPS,
        "rollout": {"tasks": 4, "group": 4},
        "credit": {"advantage": "grpo"},
        "objective": {"name": "clip", "kl": {"coef": 0.01}},
        "learner": {"lr": 1e-2, "minibatch": 8, "packing": "trie", "lora_rank": 0},
        "warmup": {"max_updates": 10, "check_every": 10},
        "checkpoint_every": 1,
        "keep_checkpoints": 9,
    },
)


def apart_after_all(one: Path, other: Path) -> float:
    """How far the weights at the end of two runs are apart, as a share of how far they have moved."""
    return apart(*(Trained.of(run, STEPS, []) for run in (one, other)))


def same_bits(one: Path, other: Path) -> bool:
    """Whether the weights and the learners' states at the end of two runs are equal."""
    folders = [run / f"checkpoints/step_{STEPS:06d}" for run in (one, other)]
    for read in (lambda folder: load_file(folder / "model/model.safetensors"), read_tensors):
        ours, theirs = (read(folder) for folder in folders)
        if ours.keys() != theirs.keys() or not all(ours[key].equal(value) for key, value in theirs.items()):
            return False
    return True
