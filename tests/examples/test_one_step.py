"""The step told in one file is the trainer's: the same credit, and the same weights after three steps."""

import asyncio
import copy
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import manyturn as mt
from manyturn.agents.model.language_model import LanguageModel
from manyturn.recipes import load_recipe
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskPool
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.step import train_step

FILE = Path(__file__).parents[2] / "examples" / "one_step.py"
STEPS, TASKS, GROUP = 3, 2, 8


def example() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(FILE), run_name="one_step"))


def the_trainers_settings() -> dict:
    return {
        "steps": STEPS,
        "credit": {"rewards": [], "advantage": {"name": "gigpo", "mode": "mean_std_norm", "gamma": 0.95}},
        "objective": {"name": "clip", "low": 0.2, "high": 0.28, "dual": 3.0},
        "rollout": {"tasks": TASKS, "group": GROUP},
        "learner": {"lr": 5e-4, "lr_end": 1.0, "minibatch": TASKS * GROUP, "packing": "padding"},
        "model": {"sample_tasks": 40, "layers": 1},
    }


async def both(folder: Path) -> None:
    one, config = example(), configure(load_recipe("quickstart"), the_trainers_settings())
    env = mt.make(config.env.id, **config.env.args)
    async with open_run(config) as run:
        trainee = run.only
        train = run.train
        # A policy that succeeds now and then: where all fail alike nothing would be learnt, here and there.
        spoken = [one.expert_play(env, train[i]) for i in range(120)]
        one.imitate(trainee.language, one.demonstrations(trainee.language, spoken), 100)
        # In float64, since Adam's first update makes a whole step of the rounding error of a gradient that is 0.
        trainee.language.model.double()
        trainee.learner.begin_reinforcement()
        own = LanguageModel(
            copy.deepcopy(trainee.language.model), trainee.language.tokenizer, trainee.language.template
        )
        before = [weights.clone() for weights in own.model.parameters()]
        optimizer = torch.optim.AdamW(own.model.parameters(), lr=one.LEARNING_RATE, weight_decay=0.0)
        state = State()
        with RunFolder(folder, resume=False) as record:
            for step in range(1, STEPS + 1):
                drawn = CURRICULA.apply(config.curriculum, TaskPool(train, TASKS, config.seed, step))
                await train_step(run, state, record)
                _, advantages, _ = one.one_step(own, optimizer, env, [train[number] for number in drawn], step)
                table = pq.read_table(next((folder / "turns").glob(f"*{step}.parquet")))
                np.testing.assert_allclose(table["advantage"].to_numpy(), np.concatenate(advantages), atol=1e-6)
                assert np.abs(np.concatenate(advantages)).max() > 0.1
        moved = max(float((a - b).abs().max()) for a, b in zip(own.model.parameters(), before, strict=True))
        for mine, theirs in zip(own.model.parameters(), trainee.language.model.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-9, rtol=0)
        assert moved > 1e-3


@pytest.mark.deep
def test_the_weights_after_three_steps_are_the_trainers(tmp_path):
    asyncio.run(both(tmp_path / "run"))


def test_a_step_fits_one_sitting():
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 250
