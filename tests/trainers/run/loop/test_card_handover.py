"""Memory that a learner still holds when the engine of the same card wakes, at any moment of a run."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from pretended_gpu import ledger, pretended
from pretended_steps import SMALL, steps

from manyturn.agents.engine.card import card_plan
from manyturn.agents.engine.card.card_plan import CardPlan
from manyturn.agents.engine.vllm import engine as vllm_engine
from manyturn.agents.engine.vllm import versions
from manyturn.agents.engine.vllm.reply_request import Drawn, DrawRequest
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import RunConfig, parse_config

VLLM: dict[str, Any] = {
    "engine": {"name": "vllm", "max_batch": 16_384},
    "model": {"width": 32, "layers": 2, "heads": 1},
    "agent": {"max_context": 512},
}


class CardProcess:
    """What vLLM's processes take of the card, by vLLM's own rules; its tokens mean nothing.

    It starts where ``ceil(total * utilization)`` is free, and maps memory that the learner must have given back.
    """

    levels: list[int] = []
    plans: list[CardPlan] = []

    def __init__(self, folder: Path, config: Any, dtype: str, rank: int, plan: CardPlan):
        self.plan, self.is_dead, self.folder = plan, False, folder
        self.plans.append(plan)
        if ledger.free() < math.ceil(plan.total * plan.utilization):
            raise ValueError("Free memory on device is less than desired GPU memory utilization")
        self._hold(plan.awake)

    def _hold(self, size: float) -> None:
        ledger.others = int(size)
        if ledger.free() < 0:
            raise MemoryError("CUDA Error: out of memory at cumem_allocator")

    async def draw(self, request: DrawRequest) -> Drawn:
        end = min(request.ends)
        return Drawn([end], [-1.0], 0)

    async def reload(self, file: Path) -> list[str]:
        from safetensors.torch import load_file

        from manyturn.agents.engine.vllm.model_folder import combined, tensor_digest

        return [combined({name: tensor_digest(tensor) for name, tensor in load_file(file).items()})]

    async def take_adapters(self, adapters: Path, old: Path | None) -> None: ...

    async def forget(self) -> None: ...

    async def sleep(self, *, keeps_weights: bool) -> None:
        self.levels.append(1 if keeps_weights else 2)
        self._hold(self.plan.awake - self.plan.wake_bytes)

    async def wake_weights(self) -> None:
        self._hold(ledger.others + self.plan.model.weights)

    async def wake(self) -> None:
        self._hold(self.plan.awake)

    def end(self) -> None:
        ledger.others = 0


def card_config(more: dict[str, Any]) -> RunConfig:
    return parse_config(overlay(overlay(overlay(load_recipe("gigpo"), SMALL), VLLM), more))


@pytest.fixture
def small_card(monkeypatch: pytest.MonkeyPatch) -> type[CardProcess]:
    """A card of a few megabytes: nothing is spare, and contexts and graphs take nothing."""
    for name in ("CONTEXT", "GRAPHS", "SPARE"):
        monkeypatch.setattr(card_plan, name, 0.0)
    monkeypatch.setattr(vllm_engine, "Process", CardProcess)
    monkeypatch.setattr(versions, "installed", lambda: "0.32.0")
    monkeypatch.setattr(CardProcess, "levels", [])
    monkeypatch.setattr(CardProcess, "plans", [])
    return CardProcess


@pytest.mark.parametrize(
    ("rank", "level"), [(0, 2), pytest.param(2, 1, marks=pytest.mark.slow)], ids=["all", "adapters"]
)
@pytest.mark.deep
def test_at_each_wake_the_learner_has_given_back_what_the_plan_leaves_the_engine(small_card, tmp_path, rank, level):
    with pretended(2e9):
        lines = asyncio.run(steps(card_config({"learner": {"lora_rank": rank}}), tmp_path / "run", 3))
        [plan] = small_card.plans
        looks, total = ledger.looks, ledger.total
    assert len(lines) == 3 and all(math.isfinite(line["grad_norm"]) for line in lines)
    assert len(looks) >= 3, "at the start, and at each step"
    assert all(reserved == allocated <= total - plan.awake for reserved, allocated, _ in looks)
    assert max(before for *_, before in looks) > total - plan.awake, "what was cached is more than the engine leaves"
    assert set(small_card.levels) == {level}, "weights that are replaced are forgotten, others kept"


@pytest.mark.slow
def test_an_engine_that_dies_starts_again_on_the_same_share(small_card, tmp_path, monkeypatch):
    drawn: list[int] = []

    async def draw(self: CardProcess, request: DrawRequest) -> Drawn:
        drawn.append(1)
        if len(drawn) == 20:
            self.is_dead = True
            raise RuntimeError("EngineDeadError")
        return Drawn([min(request.ends)], [-1.0], 0)

    monkeypatch.setattr(CardProcess, "draw", draw)
    with pretended(2e9):
        lines = asyncio.run(steps(card_config({}), tmp_path / "run", 3))
    assert len(lines) == 3 and len(small_card.plans) == 2 and small_card.plans[0] == small_card.plans[1]


def test_a_card_that_others_use_is_refused_with_how_much_is_missing(small_card, tmp_path):
    with pretended(2e9), pytest.raises(ConfigError, match=r"lower engine.kv_gib by 0.9\d"):
        ledger.others = int(1e9)
        asyncio.run(steps(card_config({}), tmp_path / "run", 1))


def test_the_defaults_of_an_engine_follow_the_device():
    on_gpu = {"device": "cuda", "env": SMALL["env"]}
    assert parse_config(on_gpu).engine.reproducible is False and not parse_config(on_gpu).engine.merge_adapters
    assert parse_config({**on_gpu, "learner": {"lora_rank": 2}}).engine.merge_adapters
    assert parse_config({**on_gpu, "engine": {"reproducible": True}}).engine.reproducible, "what was given stays"
    on_cpu = parse_config({**on_gpu, "device": "cpu", "learner": {"lora_rank": 2}})
    assert on_cpu.engine.reproducible and not on_cpu.engine.merge_adapters
    with pytest.raises(ConfigError, match=r"engine.merge_adapters has no effect .*: set learner.lora_rank"):
        parse_config({**on_gpu, "engine": {"merge_adapters": True}})
