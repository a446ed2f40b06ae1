"""An engine that cannot do what a run asks of it must be refused before the run, not after its warm-up."""

import asyncio
from dataclasses import replace
from typing import Any, Literal

import pytest

from manyturn.agents.engine.engine import Capabilities
from manyturn.agents.engine.engine_config import ENGINES, EngineConfig, EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import parse_config, to_toml

BASE: dict[str, Any] = {"env": {"id": "manyturn/Maze-v0"}}


class BareConfig(EngineConfig):
    name: Literal["test_bare"] = "test_bare"


class BoastfulConfig(EngineConfig):
    name: Literal["test_boastful"] = "test_boastful"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(keeps_bits=True, entropy=True, lora=True)


@pytest.fixture
def registered(monkeypatch):
    """Engines that are forgotten after the test."""
    ENGINES.names()
    monkeypatch.setattr(ENGINES, "_entries", dict(ENGINES._entries))

    def bare(context: EngineContext, config: EngineConfig) -> TransformersEngine:
        return TransformersEngine(context.model, context.end_ids, reproducible=False)

    ENGINES.register(BareConfig)(bare)
    ENGINES.register(BoastfulConfig)(bare)


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"rollout": {"group": 4, "branching": {"initial": 2}}},
        "rollout.branching goes by the entropies .* engine test_bare does not know: take one that does, .* or leave "
        "rollout.branching out",
    ),
    ({"credit": {"advantage": "gigpo", "modulation": ["empg"]}}, "empg goes by the entropies .* leave empg out"),
    ({"credit": {"advantage": "gigpo", "modulation": ["entropy_weight"]}}, "entropy_weight goes by the entropies"),
    ({"agent": {"only_admissible": True}}, "agent.only_admissible limits .* agent.only_admissible out"),
    (
        {"agent": {"only_admissible": True, "choices": "command"}, "engine": "vllm"},
        "agent.choices = 'command' chooses among whole commands, which engine vllm cannot: .* agent.choices out",
    ),
    ({"learner": {"lora_rank": 4}}, "learner.lora_rank learns adapters, .* leave learner.lora_rank at 0"),
]


@pytest.mark.parametrize(("sections", "told"), REFUSED, ids=[told.split()[0] for _, told in REFUSED])
def test_what_an_engine_cannot_do_is_refused_and_the_fix_works(registered, sections, told):
    with pytest.raises(ConfigError, match=told) as refusal:
        parse_config({**BASE, "engine": "test_bare", **sections})
    assert "\n" not in str(refusal.value)
    parse_config({**BASE, **sections, "engine": "transformers"})
    parse_config({**BASE, "engine": "test_bare"})


def test_an_engine_must_be_what_its_options_promise(registered, tiny):
    context = EngineContext(tiny().model, frozenset({0}))
    with pytest.raises(ConfigError, match=r"engine test_boastful has .*keeps_bits=False.* promise .*keeps_bits=True"):
        build_engine(BoastfulConfig(), context)


@pytest.mark.parametrize("reproducible", [True, False])
def test_bits_are_kept_by_a_batch_that_waits_for_all(tiny, reproducible):
    config = TransformersConfig(reproducible=reproducible)
    assert config.capabilities.keeps_bits == reproducible
    asyncio.run(build_engine(config, EngineContext(tiny().model, frozenset({0}))).shutdown())


def test_the_engine_of_a_run_comes_back_from_its_recipe_as_it_was():
    for given in ("transformers", {"name": "transformers", "max_batch": 3, "cache_gb": 1.5}):
        config = parse_config({**BASE, "engine": given})
        assert parse_config({**BASE, "engine": config.model_dump(mode="json")["engine"]}) == config
    assert 'name = "transformers"\nmax_batch = 3\nreproducible = true\ncache_gb = 1.5' in to_toml(config)


def test_the_patience_of_old_recipes_is_answered_with_its_new_place():
    for section, given in (("rollout", {"patience": 5.0}), ("engine", {"name": "transformers", "patience": 5.0})):
        with pytest.raises(ConfigError, match=r"patience is no option here: set engine.reproducible = false instead$"):
            parse_config({**BASE, section: given})


def test_engines_of_one_run_share_its_barrier(tiny):
    """Each would otherwise wait for episodes that wait for the other."""
    first = EngineContext(tiny().model, frozenset({0}))
    engines = [build_engine(TransformersConfig(), context) for context in (first, replace(first, model=tiny(1).model))]
    assert first.barrier.members == engines
