"""Bodies of their own next to a policy with adapters: one that trains the frozen model, or is lost on resuming."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from manyturn.agents.model.language_model import build_tiny
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.record.checkpoint import read_tensors
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

CHANCES = f"{Path(__file__).parents[2] / 'chances.py'}:Chances"
RANK, STEPS, LINEAR = 2, 2, 7 * 2  # of each of two layers: four of attention, three of its gated feed-forward part
EXPLORATION = {"episodes": 12, "passes": 2, "hidden": 8}


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A model that came from elsewhere, so that adapters are trained on what is fixed."""
    folder = tmp_path_factory.mktemp("model")
    texts = asyncio.run(texts_of(InlineSeats(CHANCES), AgentConfig(), 4, 0))
    build_tiny(texts, 0, 256, torch.device("cpu"), width=16, layers=2, heads=2).save(folder)
    return folder


def run_config(folder: Path, **changes: Any) -> RunConfig:
    return parse_config(
        {
            "env": {"id": CHANCES},
            "model": {"name": "pretrained", "path": str(folder)},
            "agent": {"format": "free_text", "instructions": False, "only_admissible": True},
            "sampling": {"max_tokens": 8},
            "warmup": {"episodes": 0},
            "rollout": {"tasks": 2, "group": 3, "cut_share": 1.0},
            "credit": {"advantage": "gae", "rewards": [{"name": "spa"}]},
            "value": {"body": "own"},
            "progress": {"body": "own", "exploration": EXPLORATION},
            "objective": {"name": "clip"},
            "learner": {"minibatch": 3, "lr": 1e-3, "lora_rank": RANK},
            "evaluation": {"limit": 2},
            "steps": STEPS,
            "threads": 1,
            "checkpoint_every": 1,
            "keep_checkpoints": 9,
            **changes,
        }
    )


def kept(run: Path, step: int) -> dict[str, torch.Tensor]:
    """What a checkpoint holds next to the policy."""
    return read_tensors(run / f"checkpoints/step_{step:06d}")


def bodies(tensors: dict[str, torch.Tensor], name: str) -> list[torch.Tensor]:
    return [tensors[key] for key in sorted(tensors) if key.startswith(f"{name}.body.")]


@pytest.fixture(scope="module")
def calm(model_folder, tmp_path_factory):
    """A finished run and its summary."""
    run = tmp_path_factory.mktemp("adapted") / "run"
    return run, asyncio.run(train(run_config(model_folder), run))


def test_what_learns_of_a_body_of_its_own_are_its_adapters_and_the_layers_on_top(calm):
    """Of the critic; the estimator has learnt before the first checkpoint, and is fixed."""
    first, last = (kept(calm[0], step) for step in (0, STEPS))
    for name in ("value", "progress"):
        body = bodies(last, name)
        assert len(body) == 2 * LINEAR and all(RANK in weights.shape for weights in body), "adapters alone are kept"
    moved = {name for name, value in first.items() if not torch.equal(value, last[name]) and "optimizer" not in name}
    assert {name.split(".")[1] for name in moved} == {"body", "own"}
    assert all(name.startswith("value.") for name in moved), moved
    ours, theirs = (bodies(first, name) for name in ("progress", "value"))
    assert any(not torch.equal(a, b) for a, b in zip(ours, theirs, strict=True)), "exploration has moved its adapters"


def test_a_body_of_its_own_begins_as_the_policys_adapters_and_learns_apart_from_them(calm):
    first, last = (policys_adapters(calm[0], step) for step in (0, STEPS))
    assert same(bodies(kept(calm[0], 0), "value"), first), "a copy of the policy, adapters included"
    assert not same(bodies(kept(calm[0], STEPS), "value"), last)
    assert not same(first, last), "the policy has learnt too"
    lines = [line for line in read_metrics(calm[0]) if line["phase"] == "train"]
    assert all(line["value_loss"] is not None and line["progress_loss"] is not None for line in lines)


def policys_adapters(run: Path, step: int) -> list[torch.Tensor]:
    """The policy's adapters in a checkpoint, without an order."""
    return list(load_file(run / f"checkpoints/step_{step:06d}/model/adapter_model.safetensors").values())


def same(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> bool:
    """Whether the same tensors are in both lists."""

    def written(tensors: list[torch.Tensor]) -> list[bytes]:
        return sorted(weights.contiguous().numpy().tobytes() for weights in tensors)

    return written(ours) == written(theirs)


def test_resuming_gives_the_same_bits_with_bodies_of_their_own_on_adapters(calm, tmp_path):
    run = Path(shutil.copytree(calm[0], tmp_path / "halves"))
    (run / f"checkpoints/step_{STEPS:06d}/manifest.json").unlink()  # as if the last step had never been saved
    (run / "summary.json").unlink()
    resumed = asyncio.run(train(None, run, resume=True))
    assert resumed["weights"] == calm[1]["weights"]
    ours, theirs = kept(run, STEPS), kept(calm[0], STEPS)
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not all(torch.equal(ours[name], value) for name, value in kept(run, STEPS - 1).items()), "a step was played"


@pytest.mark.slow
def test_layers_alone_leave_the_copied_adapters_as_the_policys(model_folder, tmp_path):
    progress = {"body": "own", "exploration": {**EXPLORATION, "trains": "layers"}}
    config = run_config(model_folder, progress=progress, value={"fit": "least_squares"}, steps=1)
    asyncio.run(train(config, tmp_path / "run"))
    first = kept(tmp_path / "run", 0)
    assert same(bodies(first, "progress"), policys_adapters(tmp_path / "run", 0))
    assert any(value.any() for name, value in first.items() if name.startswith("progress.own.2"))


@pytest.mark.slow
def test_a_bfloat16_model_has_bodies_whose_small_updates_are_kept(model_folder, tmp_path):
    model = {"name": "pretrained", "path": str(model_folder), "dtype": "bfloat16"}
    asyncio.run(train(run_config(model_folder, model=model), tmp_path / "run"))
    last = kept(tmp_path / "run", STEPS)
    learnt = {name: value for name, value in last.items() if name.split(".")[1] in ("body", "own")}
    assert learnt and {value.dtype for value in learnt.values()} == {torch.float32}
