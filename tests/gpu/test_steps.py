"""Steps of a run that a GPU computes wrong, or not at all, while a CPU computes them: each path at tiny size."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.learn.passes.trie.attention import ATTENTION, attend_by_tree, tree_attentions
from manyturn.trainers.learn.ranks.process_group import Ranks
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.step import train_step

TINY: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 3}},
    "model": {"name": "tiny", "width": 32, "layers": 2, "heads": 4, "sample_tasks": 2},
    "sampling": {"max_tokens": 6},
    "rollout": {"tasks": 2, "group": 4, "cut_share": 1.0},
    "learner": {"minibatch": 4, "micro_tokens": 2048},
    "steps": 4,
}
SMALL: dict[str, Any] = {"vocab_size": 64, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
LORA = {"learner": {"lora_rank": 2}}
ENTROPY = {"objective": {"entropy": {"coef": 0.001}}}  # something to learn, also where all episodes earn the same
RUNNING = {"engine": {"reproducible": False}}
CHOICES = {"agent": {"only_admissible": True}}
REFERENCE = {"objective": {"kl": {"coef": 0.01}}}
LEARNERS = ({"gradient_checkpointing": True}, {"offload_optimizer": True}, {"compile": True}, {"weights": "bfloat16"})
# Learner and engine of a GPU differ by bfloat16's rounding: of a tiny model with 32 numbers, by less than this.
_GAP = {"cuda": 1.2, "cpu": 1.001}


async def steps(config: dict[str, Any], folder: Path, ranks: Ranks | None = None) -> list[dict[str, Any]]:
    """The metrics of two steps, after which the weights have moved."""
    async with open_run(parse_config(config), ranks=ranks) as run:
        with RunFolder(folder, resume=False) as written:
            written.write_config(run.config)
            learner, state = run.only.learner, State()
            assert learner.model.device.type == config["device"]
            learner.begin_reinforcement()
            before = run.only.weights
            metrics = [await train_step(run, state, written) for _ in range(2)]
            assert run.only.weights != before
            assert all(torch.isfinite(value).all() for value in learner.model.parameters())
            return metrics


def check(device: torch.device, recipe: str, folder: Path, *more: dict[str, Any], ranks: Ranks | None = None) -> None:
    config = overlay(load_recipe(recipe), {**TINY, "device": device.type})
    for layer in more:
        config = overlay(config, layer)
    for line in asyncio.run(steps(config, folder / "run", ranks)):
        assert math.isfinite(line["grad_norm"]) and not line["out_of_memory"] and not line["errors"]
        gap = _GAP["cuda" if config["learner"].get("weights") == "bfloat16" else device.type]
        assert line["engine_ratio_p99"] < gap, "engine and learner disagree"


@pytest.mark.parametrize("adapters", [{}, LORA], ids=["all weights", "adapters"])
@pytest.mark.parametrize(
    "engine",
    [{}, RUNNING, CHOICES, overlay(RUNNING, CHOICES)],
    ids=["rounds", "running batch", "choices", "choices in a running batch"],
)
def test_the_engine_draws_what_the_learner_judges(device, engine, adapters, tmp_path):
    check(device, "gigpo", tmp_path, engine, adapters)


@pytest.mark.parametrize("adapters", [{}, LORA], ids=["all weights", "adapters"])
@pytest.mark.parametrize("option", [{}, *LEARNERS], ids=["plain", "recompute", "offload", "compile", "bfloat16"])
@pytest.mark.parametrize("packing", ["trie", "packed", "padding"])
def test_the_learner_updates(device, packing, option, adapters, tmp_path):
    if "offload_optimizer" in option and device.type == "cpu":
        pytest.skip("a CPU has nothing to offload to")
    if "compile" in option and packing != "padding":
        pytest.skip("only padded passes are compiled")
    if "weights" in option and adapters:
        pytest.skip("adapters learn in float32")
    check(device, "gigpo", tmp_path, {"learner": {"packing": packing, **option}}, adapters)


def test_a_tree_attends_in_the_way_that_is_faster_on_the_device(device):
    torch.manual_seed(0)
    decoder = LlamaModel(LlamaConfig(**SMALL)).to(device).eval()
    attend_by_tree(decoder)  # a warning names why a GPU cannot
    assert getattr(decoder.config, ATTENTION) == tree_attentions(device, decoder.config)[0]


@pytest.mark.parametrize(
    ("recipe", "more"),
    [
        pytest.param("gigpo", REFERENCE, id="reference"),
        pytest.param("gigpo", overlay(REFERENCE, LORA), id="reference below adapters"),
        pytest.param("ppo", ENTROPY, id="critic"),
        pytest.param("ppo", {**ENTROPY, "value": {"body": "own"}}, id="critic of its own"),
        pytest.param("spa-alongside", ENTROPY, id="progress estimator"),
        pytest.param("epo", {}, id="entropy smoothing"),
        pytest.param("arpo", {**ENTROPY, "rollout": {"branching": {"initial": 2}}}, id="branches"),
        pytest.param("tis", ENTROPY, id="truncated importance weights"),
    ],
)
def test_what_methods_need_of_the_learner(device, recipe, more, tmp_path):
    check(device, recipe, tmp_path, more)


def test_one_rank_with_shards(device, tmp_path, monkeypatch):
    environ = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1, "MASTER_PORT": 29517}
    for name, value in {**environ, "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "one"}.items():
        monkeypatch.setenv(name, str(value))
    with Ranks() as ranks:
        check(device, "gigpo", tmp_path, REFERENCE, ranks=ranks)
