"""Compiled layers that compute something else, are compiled again and again, or stay where engines draw."""

import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from learner_steps import learn
from torch._dynamo.utils import counters

from manyturn.agents.model.language_model import build_tiny
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.compiled_layers import check_compiles
from manyturn.trainers.learn.passes.samples import Sample

pytestmark = [
    pytest.mark.versions,
    pytest.mark.skipif(
        shutil.which("g++") is None and shutil.which("clang++") is None, reason="compiling needs g++ or clang++"
    ),
]
LAYERS = 3


def made(compiled: bool, **options: Any) -> Learner:
    language = build_tiny(["go north"], 0, 64, torch.device("cpu"), width=16, layers=LAYERS, heads=2)
    config = LearnerConfig.model_validate(
        {"minibatch": 64, "lr": 1e-3, "compile": compiled, "packing": "padding", **options}
    )
    learner = Learner(language, config, OBJECTIVES.parse("clip"), 1.0)
    learner.begin_reinforcement()
    return learner


def ragged(step: int) -> list[Sample]:
    """Episodes of other numbers and lengths in each step."""
    rng, samples = generator("ragged", step), []
    for episode in range(int(rng.integers(2, 7))):
        ids = rng.integers(4, 200, size=int(rng.integers(5, 40)))
        said = np.arange(len(ids)) >= 3
        samples.append(Sample(episode, ids, said, np.where(said, -5.0, 0.0), np.where(said, 0, -1)))
    return samples


def gradients(learner: Learner, samples: list[Sample]) -> list[torch.Tensor]:
    """Of the log-probabilities and entropies of what was said."""
    reading = learner.reader.read(samples)
    found = torch.autograd.grad((reading.logprob + 0.3 * reading.entropy).sum(), learner.optimizer.trained)
    return [reading.logprob.detach(), reading.hidden.detach(), *found]


def apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


@pytest.mark.slow
def test_compiled_layers_compute_the_same_and_are_compiled_a_few_times_for_all_layers_and_lengths():
    counters.clear()
    plain, compiled = made(False), made(True)
    before = counters["stats"]["unique_graphs"]  # of the trial
    for step in range(8):
        samples = ragged(step)
        for ours, theirs in zip(gradients(compiled, samples), gradients(plain, samples), strict=True):
            assert apart(ours, theirs) < 1e-5
        for learner in (compiled, plain):
            assert np.isfinite(learn(learner, samples, step)["grad_norm"])
        compiled.model.load_state_dict(plain.model.state_dict())
    graphs = counters["stats"]["unique_graphs"] - before
    assert 1 <= graphs <= 4, f"{graphs} graphs for {LAYERS} layers and 8 ragged steps, with gradient and without"
    assert all("forward" not in vars(layer) for layer in compiled.model.get_decoder().layers), "an engine would use it"


@pytest.mark.deep
def test_what_is_missing_is_said_before_a_run_begins():
    """In a process of its own, since PyTorch remembers the compiler that it found."""
    program = (
        "import torch\nfrom manyturn.trainers.learn.passes.compiled_layers import check_compiles\n"
        "from manyturn.envs.contract.options.options import ConfigError\n"
        "try:\n    check_compiles(torch.device('cpu'))\nexcept ConfigError as error:\n    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], env={"PATH": "", "CXX": "/nowhere/g++"}, capture_output=True, text=True
    )
    assert "learner.compile = true, and PyTorch cannot compile here" in found.stdout, found.stderr
    assert found.stdout.strip().endswith("on a GPU Triton too, or leave learner.compile out")
    check_compiles(torch.device("cpu"))


@pytest.mark.parametrize("more", [{}, {"packing": "padding", "gradient_checkpointing": True}])
def test_what_would_compile_each_pass_again_is_refused(more):
    assert "leave" in str(LearnerConfig(compile=True, **more)._refuse_compile())
