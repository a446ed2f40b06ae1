"""Weights in bfloat16 that lose small updates, learn something else, or go on otherwise after a checkpoint."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learner_steps import earned, episodes_of, equal, learn, model, weights
from pretended_gpu import pretended
from pretended_steps import SMALL, steps
from safetensors.torch import load_file
from short_runs import resumed_to_the_bit, short_run

from manyturn.agents.engine.decoding.memory import kept_bytes
from manyturn.agents.engine.engine_config import EngineContext
from manyturn.agents.model.model_internals import move
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.learn.heads.head_config import ValueHeadConfig
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.master_weights import MasterWeights
from manyturn.trainers.learn.learner.memory_estimate import update_memory
from manyturn.trainers.learn.learner.policy_optimizer import PolicyOptimizer
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.run.loop.disk_space import checkpoint_bytes
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run

pytestmark = pytest.mark.versions
COARSE = {"learner": {"minibatch": 3, "weights": "bfloat16"}}


def learner(masters: bool, dtype: torch.dtype = torch.bfloat16, heads: Any = ()) -> Learner:
    """A learner whose weights begin as numbers that bfloat16 has, whatever their type."""
    language = model()
    move(language.model, torch.bfloat16)
    move(language.model, dtype)
    config = LearnerConfig(minibatch=64, lr=1e-5, weights="bfloat16" if masters else "float32")
    made = Learner(language, config, OBJECTIVES.parse("reinforce"), 1.0, heads)
    made.begin_reinforcement()
    return made


def test_updates_that_bfloat16_cannot_hold_add_up_as_in_float32():
    samples = episodes_of()
    made, plain, exact = learner(True), learner(False), learner(False, torch.float32)
    begun = weights(exact)
    for step in range(15):
        for each in (made, plain, exact):
            learn(each, samples, step)
    masters = [made.tensors()[f"master.{number}"] for number in range(len(begun))]
    way = [
        torch.cat([(now.float() - then).flatten() for now, then in zip(each, begun, strict=True)])
        for each in (weights(exact), masters, weights(plain))
    ]
    exact_way, master_way, plain_way = way
    assert (master_way - exact_way).norm() < 0.3 * exact_way.norm() < 0.9 * (plain_way - exact_way).norm()
    assert equal(weights(made), [each.bfloat16() for each in masters])


def test_masters_begin_as_the_weights_whatever_their_memory_held(monkeypatch):
    weights = [torch.nn.Parameter(torch.linspace(-1, 1, 64).bfloat16())]
    left = weights[0].detach().float() * (1 + 1e-6)  # of other masters, which round to the same weights
    monkeypatch.setattr(MasterWeights, "_like", lambda self, _: left)
    assert torch.equal(MasterWeights(weights).own[0], weights[0].detach().float())


def test_an_update_is_adamws_in_float32_of_gradients_that_were_added_in_float32():
    weights = torch.nn.Parameter(torch.linspace(-1, 1, 64).bfloat16())
    holder = torch.nn.Module()
    holder.weights = weights
    made = PolicyOptimizer(holder, LearnerConfig(lr=1e-3, weights="bfloat16", max_grad_norm=1e9, weight_decay=0.1))
    exact = weights.detach().float().requires_grad_()
    adamw = torch.optim.AdamW([exact], lr=1e-3, weight_decay=0.1, fused=True)
    for update in range(3):
        factors = [torch.linspace(1, 2 + update, 64).bfloat16(), torch.full((64,), 2.0**-9).bfloat16()]
        for factor in factors:  # of which the second is nothing next to the first in bfloat16
            (weights * factor).sum().backward()
        exact.grad = sum(factor.float() for factor in factors)
        norm = float(exact.grad.norm())
        adamw.step()
        assert made.update() == pytest.approx(norm, rel=1e-6)
        assert torch.equal(made.tensors()["master.0"], exact) and torch.equal(weights, exact.bfloat16())


def test_a_checkpoint_goes_on_with_the_same_bits_and_in_float32_with_the_masters():
    samples, made = episodes_of(), learner(True)
    for step in range(3):
        learn(made, samples, step)
    again, exact = learner(True), learner(False, torch.float32)
    for other in (again, exact):
        other.model.load_state_dict(made.model.state_dict())
        other.load_plain(json.loads(json.dumps(made.plain())))
        other.load_tensors({name: value.clone() for name, value in made.tensors().items()})
    assert equal(weights(exact), [made.tensors()[f"master.{n}"] for n in range(len(weights(exact)))])
    assert learn(made, samples, 3) == learn(again, samples, 3)
    ours, theirs = made.tensors(), again.tensors()
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.deep
def test_the_plan_of_memory_counts_masters_and_gradients_in_float32():
    coarse, exact = learner(True), learner(False, torch.float32)
    numbers = sum(p.numel() for p in exact.model.parameters())
    assert update_memory(coarse, 32).held == (2 + 4 + 4 + 8) * numbers
    assert update_memory(exact, 32).held == (4 + 4 + 8) * numbers
    beside = [kept_bytes(EngineContext(each.model, frozenset({0}), reference=True)) for each in (coarse, exact)]
    assert beside == [(18 + 2) * numbers, (16 + 4) * numbers]
    assert checkpoint_bytes(coarse) == (2 + 4 + 8) * numbers
    assert sum(value.nbytes for name, value in coarse.tensors().items() if "master" in name) == 4 * numbers


def test_a_critic_with_a_body_of_its_own_stays_in_float32():
    samples, made = episodes_of(), learner(True, heads=[ValueHeadConfig(body="own")])
    body = made.heads[0].fit.reader.model
    begun = [each.detach().clone() for each in body.parameters()]
    for step in range(2):  # before the first, the layers on top give 0 for all states
        figures = learn(made, samples, step, targets_T=np.ones_like(earned(samples)))
    assert {each.dtype for each in body.parameters()} == {torch.float32} and not equal(begun, list(body.parameters()))
    assert figures["grad_norm"] > 0


def losses(kind: str, folder: Path) -> list[float]:
    """Losses of a warm-up in the maze: of the first update, halfway and at the end."""
    warmup = {"episodes": 200, "batch": 8, "lr": 8e-3, "max_updates": 100, "check_every": 50, "must_succeed": False}
    config = {
        "env": {"id": "manyturn/Maze-v0", "args": {"difficulty": "easy"}},
        "model": {"name": "tiny", "width": 32, "layers": 1, "heads": 2, "sample_tasks": 16},
        "agent": {"instructions": False, "max_context": 512},
        "sampling": {"max_tokens": 8},
        "warmup": {**warmup, "check_episodes": 4, "until_success": 1.0},
        "rollout": {"tasks": 2, "group": 2},
        "learner": {"weights": kind},
        "evaluation": {"limit": 2},
        "device": "cpu",
        "threads": 1,
        "steps": 0,
    }
    asyncio.run(train(parse_config(config), folder))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line.get("phase") in ("imitation", "warmup")]


@pytest.mark.deep
def test_a_maze_is_learnt_as_in_float32(tmp_path):
    exact, coarse = (losses(kind, tmp_path / kind) for kind in ("float32", "bfloat16"))
    assert coarse == pytest.approx(exact, rel=0.05) and exact[-1] < 0.2 * exact[0]


@pytest.mark.deep
def test_a_run_goes_on_to_the_bit_after_a_kill_and_saves_weights_that_are_rounded_masters(tmp_path):
    folder = resumed_to_the_bit(short_run(**COARSE), tmp_path)
    checkpoint = max((folder / "checkpoints").glob("step_*"))
    saved = load_file(next((checkpoint / "model").glob("*.safetensors")))
    assert {value.dtype for value in saved.values()} == {torch.bfloat16}


@pytest.mark.deep
@pytest.mark.parametrize("more", [{}, {"learner": {"offload_optimizer": True}}], ids=str)
def test_steps_on_a_device_find_their_masters(more, tmp_path):
    config = parse_config(overlay(overlay(overlay(load_recipe("gigpo"), SMALL), COARSE), more))
    with pretended(dtype=torch.bfloat16) as events:
        lines = asyncio.run(steps(config, tmp_path / "run", 2))
    assert "attention in one call" in events
    assert all(line["grad_norm"] > 0 for line in lines)


def test_ranks_are_refused_before_a_run_has_begun():
    async def opened() -> None:
        async with open_run(short_run(**COARSE, placement={"learners": 2})):
            pass

    with pytest.raises(ConfigError, match="train with one rank"):
        asyncio.run(opened())
