"""Updates in the host's memory that learn something else, lose small updates, or are forgotten by a prediction."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from learner_steps import episodes_of, equal, learn, learner, model, weights
from pretended_gpu import pretended

from manyturn.agents.engine.decoding.memory import _beside
from manyturn.agents.engine.engine_config import EngineContext
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.learn.learner import memory_estimate
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.memory_estimate import check_fits, update_memory
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.checkpoint import weights_hash
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import open_run
from manyturn.trainers.run.step.step import train_step

pytestmark = pytest.mark.versions

DECAYS: dict[str, Any] = {"weight_decay": 0.1, "minibatch": 2, "epochs": 2}
SMALL: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 3}},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 2},
    "sampling": {"max_tokens": 4},
    "rollout": {"tasks": 2, "group": 2, "cut_share": 1.0},
    "objective": {"kl": {"coef": 0.01}},
    "device": "cuda",
    "steps": 3,
}


def in_bfloat16(offload: bool, lr: float = 1e-2) -> Learner:
    language = model()
    language.model.to(torch.bfloat16)
    config = LearnerConfig(minibatch=64, lr=lr, offload_optimizer=offload)
    made = Learner(language, config, OBJECTIVES.parse("reinforce"), 1.0)
    made.begin_reinforcement()
    return made


def go_on(made: Learner, into: Learner) -> Learner:
    into.model.load_state_dict(made.model.state_dict())
    into.load_plain(json.loads(json.dumps(made.plain())))
    into.load_tensors({name: value.clone() for name, value in made.tensors().items()})
    return into


def test_updates_in_the_hosts_memory_are_the_others_to_the_bit_and_either_goes_on_with_the_others_checkpoint():
    samples = episodes_of(noise=0.3)
    here, there = (learner("clip", offload_optimizer=offload, **DECAYS) for offload in (False, True))
    for step in range(3):
        assert learn(here, samples, step) == learn(there, samples, step)
    assert equal(weights(here), weights(there))
    assert all(weights.grad is None for weights in there.model.parameters()), "a gradient would count twice"
    ours, theirs = here.tensors(), there.tensors()
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    crossed = go_on(here, learner("clip", offload_optimizer=True, **DECAYS))
    back = go_on(there, learner("clip", **DECAYS))
    for made in (here, crossed, back):
        learn(made, samples, 3)
    assert equal(weights(here), weights(crossed)) and equal(weights(here), weights(back))


def test_small_updates_add_up_although_the_weights_on_the_device_are_bfloat16_also_after_a_checkpoint():
    samples, adds_up, lost = episodes_of(), in_bfloat16(True, lr=1e-5), in_bfloat16(False, lr=1e-5)
    begun = weights(adds_up)
    for step in range(40):
        learn(adds_up, samples, step)
        learn(lost, samples, step)
        if step == 20:
            adds_up = go_on(adds_up, in_bfloat16(True, lr=1e-5))  # which forgets what bfloat16 does not hold, or not
    moved, kept = (
        sum(int((now != then).sum()) for now, then in zip(weights(made), begun, strict=True))
        for made in (adds_up, lost)
    )
    assert moved > 4 * kept
    again = go_on(adds_up, in_bfloat16(True, lr=1e-5))
    ours, theirs = adds_up.tensors(), again.tensors()
    assert sum(name.startswith("master.") for name in ours) == len(begun)
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    rounded = [ours[f"master.{number}"].bfloat16() for number in range(len(begun))]
    assert equal(rounded, weights(again))


async def steps(config: Any, folder: Path) -> str:
    async with open_run(config) as run:
        with RunFolder(folder, resume=False) as written:
            written.write_config(run.config)
            state, learner = State(), run.only.learner
            learner.begin_reinforcement()
            for _ in range(2):
                await train_step(run, state, written)
            assert learner.model.device.type == "cuda"
            kept = [value for moments in learner.optimizer.adamw.state.values() for value in moments.values()]
            assert {value.device.type for value in kept} == {"cpu" if config.learner.offload_optimizer else "cuda"}
            return weights_hash(learner.model)


@pytest.mark.deep
def test_a_run_that_has_moments_in_the_hosts_memory_is_the_run_that_has_them_on_the_device(tmp_path):
    found = []
    for offload in (False, True):
        more = {"learner": {"engine_alarm": "note", "offload_optimizer": offload}}
        with pretended():
            config = parse_config(overlay(overlay(load_recipe("gigpo"), SMALL), more))
            found.append(asyncio.run(steps(config, tmp_path / str(offload))))
    assert found[0] == found[1]


@pytest.mark.deep
def test_predictions_of_the_devices_memory_leave_moments_out_and_the_hosts_is_asked(monkeypatch):
    here, there = (learner("clip", offload_optimizer=offload) for offload in (False, True))
    numbers = sum(p.numel() for p in here.model.parameters())
    assert update_memory(here, 32).held - update_memory(there, 32).held == 8 * numbers
    engines = [EngineContext(here.model, frozenset({0}), moments=moments) for moments in (True, False)]
    assert _beside(engines[0], on_gpu=True) - _beside(engines[1], on_gpu=True) == 8 * numbers
    monkeypatch.setattr(memory_estimate, "main_memory", lambda: (15.0 * numbers, 0.0))
    assert check_fits(here, 32, 0.0) is None
    with pytest.raises(
        ConfigError, match=r"keeps .* in the host's memory, which has .*: leave it out, or set learner\.l"
    ):
        check_fits(there, 32, 0.0)


def test_a_run_without_a_gpu_is_refused_before_it_has_begun(tmp_path):
    async def opened() -> None:
        async with open_run(parse_config(overlay(overlay(load_recipe("gigpo"), SMALL), ON_ITS_OWN))):
            pass

    ON_ITS_OWN = {"device": "auto", "learner": {"offload_optimizer": True}}
    with pytest.raises(
        ConfigError, match="has no effect on a CPU, whose memory AdamW's moments are in anyway: leave it"
    ):
        asyncio.run(opened())
