"""What an update takes is known before the first one, and a run that cannot fit is refused with what would."""

import asyncio
from typing import Any

import numpy as np
import pytest
import torch
from learner_steps import earned, episodes_of, learner
from short_runs import short_run

from manyturn.agents.engine.decoding import memory as engine_memory
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.heads.head_config import ValueHeadConfig
from manyturn.trainers.learn.heads.heads import HeadTargets
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.memory_estimate import LiveBytes, check_fits, update_memory
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run

pytestmark = pytest.mark.versions

ROWS, LENGTH = 8, 128


def made(own_critic: bool = False, **options: Any) -> Learner:
    language: LanguageModel = build_tiny(["go north"], 0, 512, torch.device("cpu"), width=128, layers=4, heads=4)
    config = LearnerConfig.model_validate({"minibatch": ROWS, "micro_tokens": ROWS * LENGTH // 2, **options})
    if config.lora_rank:
        add_adapters(language, config, 0)
    heads = [ValueHeadConfig.model_validate({"body": "own"})] if own_critic else []
    return Learner(language, config, ClipConfig(), 1.0, heads)


def said_all() -> list[Sample]:
    rng = np.random.default_rng(0)
    ids = rng.integers(4, 200, (ROWS, LENGTH))
    said = np.arange(LENGTH) > 0
    reply = np.where(said, 0, -1)
    return [Sample(number, row, said, np.where(said, -5.0, 0.0), reply) for number, row in enumerate(ids)]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("critic", "options"),
    [
        (False, {}),
        (False, {"gradient_checkpointing": True}),
        (False, {"lora_rank": 4}),
        (False, {"lora_rank": 4, "lora_layers": (2, 4)}),
        (False, {"packing": "packed"}),
        (True, {}),
    ],
    ids=["all", "recomputed", "adapters", "upper layers", "packed", "own critic"],
)
def test_the_peak_of_a_real_update_is_the_predicted_one(critic: bool, options: dict[str, Any]) -> None:
    one = made(critic, **options)
    samples, before = said_all(), [p.clone() for p in one.model.parameters()]
    predicted = update_memory(one, LENGTH)
    assert all(map(torch.equal, before, one.model.parameters())), "a prediction changes no weights"
    assert all(p.grad is None for p in one.model.parameters())
    credit_T = np.ones(sum(int(sample.reply_mask.sum()) for sample in samples))
    one.learn(one.read(samples), credit_T, 1.0, (0,), targets=HeadTargets(credit_T))
    step = one.read(samples)
    assert step.logprob and all(step.head_values(head.name) for head in one.heads)
    with LiveBytes() as alive:  # counts what this update makes: gradients and what is passing
        one.learn(step, credit_T, 1.0, (1,), targets=HeadTargets(credit_T))
    gradients = sum(p.nbytes for p in one.model.parameters() if p.requires_grad) * (2 if critic else 1)
    assert alive.peak - gradients == pytest.approx(predicted.passing, rel=0.1)


@pytest.mark.deep
def test_what_cannot_fit_is_refused_with_the_pass_that_would(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(micro_tokens=4096, gradient_checkpointing=False)
    needs = update_memory(one, LENGTH)
    room = needs.held + needs.passing / 3
    monkeypatch.setattr(engine_memory, "main_memory", lambda: (room, room))
    with pytest.raises(
        ConfigError, match=r"an update takes .* of 4096 tokens.*: set learner.micro_tokens to (\d+)"
    ) as e:
        check_fits(one, LENGTH, 0.0)
    fits = int(str(e.value).rpartition(" ")[2])
    assert 4096 / 3 * 0.8 < fits < 4096 / 3
    assert check_fits(made(micro_tokens=fits, gradient_checkpointing=False), LENGTH, 0.0) is None
    with pytest.raises(ConfigError, match=r"gradient_checkpointing to true"):
        check_fits(one, 4096, 0.0)
    with pytest.raises(ConfigError, match=r"lower agent.max_context"):
        check_fits(made(micro_tokens=4096, gradient_checkpointing=True), 4096, needs.passing)


@pytest.mark.deep
def test_activations_are_computed_again_where_updates_fit_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    needs, saving = (
        update_memory(made(True, micro_tokens=4096, gradient_checkpointing=given), LENGTH) for given in (False, True)
    )
    room = needs.held + (needs.passing + saving.passing) / 2
    assert check_fits(made(True, micro_tokens=4096), LENGTH, 0.0) is None, "there is memory enough"
    monkeypatch.setattr(engine_memory, "main_memory", lambda: (room, room))
    one, samples = made(True, micro_tokens=4096), said_all()[:2]
    told = check_fits(one, LENGTH, 0.0)
    assert told is not None and "activations are computed again" in told
    assert update_memory(one, LENGTH) == saving, "the policy's and the critic's"
    small = update_memory(made(True, micro_tokens=256, gradient_checkpointing=False), LENGTH)
    monkeypatch.setattr(engine_memory, "main_memory", lambda: (small.held, small.held))
    with pytest.raises(ConfigError, match=r"set learner.micro_tokens to|lower agent.max_context"):
        check_fits(made(True, micro_tokens=4096), LENGTH, 0.0)
    plain = made(True, micro_tokens=4096, gradient_checkpointing=False)
    for each in (one, plain):
        credit_T = earned(samples)
        each.learn(each.read(samples), credit_T, 1.0, (0,), targets=HeadTargets(credit_T))
    assert all(map(torch.equal, one.model.parameters(), plain.model.parameters())), "and changes no result"


def test_a_model_that_needs_numbers_is_not_refused_for_lack_of_a_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made()
    one.model.get_decoder().register_forward_hook(
        lambda *given: bool(given[-1].last_hidden_state.nonzero().sum()) and None
    )
    monkeypatch.setattr(engine_memory, "main_memory", lambda: (1e6, 1e6))
    with pytest.warns(UserWarning, match="not known"):
        check_fits(one, LENGTH, 0.0)


def test_a_run_that_cannot_fit_does_not_begin(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_memory, "main_memory", lambda: (30e6, 30e6))
    config = short_run(engine={"cache_gb": 0.001, "max_batch": 4}, steps=1)
    with pytest.raises(ConfigError, match=r"an update takes .*: set learner.micro_tokens to \d+"):
        asyncio.run(train(config, tmp_path / "run"))


@pytest.mark.filterwarnings("error:.*_checkpointing:FutureWarning")  # it would stand in front of every run
def test_a_run_says_that_it_recomputes_and_goes_on(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"engine": {"cache_gb": 0.001, "max_batch": 4}, "steps": 1}

    async def peak(given: bool) -> float:
        async with open_run(short_run(**settings, learner={"gradient_checkpointing": given})) as run:
            return update_memory(run.trainees[0].learner, run.config.agent.max_context).peak

    room = sum(asyncio.run(peak(given)) for given in (False, True)) / 2
    monkeypatch.setattr(engine_memory, "main_memory", lambda: (room, room))
    told = list[dict[str, Any]]()
    asyncio.run(train(short_run(**settings), tmp_path / "run", report=told.append))
    assert sum("activations are computed again" in str(line.get("notice")) for line in told) == 1


@pytest.mark.deep
def test_other_learners_are_not_touched_by_a_prediction() -> None:
    samples, one, other = episodes_of(4), learner("clip"), learner("clip")
    update_memory(one, 16)
    for each in (one, other):
        each.learn(each.read(samples), earned(samples), 1.0, (0,))
    assert all(map(torch.equal, one.model.parameters(), other.model.parameters()))
