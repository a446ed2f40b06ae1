"""Hidden states of layers that do not learn: kept ones that change what is learnt, or that are computed again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learner_steps import CPU, episodes_of, learn
from safetensors.torch import load_file

from manyturn.agents.model.language_model import LanguageModel, build_tiny, load_pretrained
from manyturn.agents.model.model_internals import layers_of
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.trainers.learn.heads.head_config import HeadConfig, ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.samples import Sample, at_replies
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

DEEP = 4
HEADS: dict[str, Sequence[HeadConfig]] = {
    "none": (),
    "on the policy": (ValueHeadConfig(into_policy=0.3, hidden=4), ProgressHeadConfig(lr=0.05)),
    "solved": (ValueHeadConfig.model_validate({"fit": "least_squares"}),),
    "of their own": (ValueHeadConfig.model_validate({"body": "own"}),),
}


def deep_model(config: LearnerConfig) -> LanguageModel:
    language = build_tiny(["go north", "take the key"], 0, 64, CPU, width=16, layers=DEEP, heads=2)
    add_adapters(language, config, seed=0)
    return language


def adapted(double: bool, heads: Sequence[HeadConfig] = (), kl: bool = False, **options: Any) -> Learner:
    config = LearnerConfig.model_validate({"minibatch": 64, "lr": 1e-2, "lora_rank": 2, **options})
    language = deep_model(config)
    if double:
        language.model.double()
    objective = OBJECTIVES.parse({"name": "clip", **({"kl": {"coef": 0.1}} if kl else {})})
    return Learner(language, config, objective, 1.0, heads)


def trained(made: Learner, samples: list[Sample]) -> dict[str, torch.Tensor]:
    """All that two warm-up updates and two steps have made of a learner."""
    for _ in range(2):
        made.imitate(samples, 1e-2)
    made.begin_reinforcement()
    names = {head.name for head in made.heads}
    asked: dict[str, Any] = {}
    if "value" in names:
        asked["targets_T"] = at_replies(samples, [sample.ids % 3 for sample in samples]).astype(float)
    if "progress" in names:
        asked["outcome_E"] = np.arange(1.0 + max(sample.episode for sample in samples)) % 2
    for step in range(2):
        learn(made, samples, step, **asked)
    policy = {name: p.detach().clone() for name, p in made.model.named_parameters() if p.requires_grad}
    return policy | made.tensors()


def computed_tokens(made: Learner) -> list[int]:
    """Receives the tokens that each pass through the lowest layer had."""
    counts: list[int] = []
    _, layers = layers_of(made.model.get_decoder())
    layers[0].register_forward_hook(lambda module, given, found: counts.append(given[0].shape[0] * given[0].shape[1]))
    return counts


@settings(max_examples=6, deadline=None)
@given(
    layers=st.tuples(st.integers(1, DEEP - 1), st.integers(2, DEEP)).filter(lambda pair: pair[0] < pair[1]),
    heads=st.sampled_from(sorted(HEADS)),
    kl=st.booleans(),
    most=st.sampled_from([1.0, 5e-6, 1e-9]),
    minibatch=st.sampled_from([2, 64]),
    options=st.fixed_dictionaries(
        {
            "micro_tokens": st.sampled_from([64, 4096]),
            "epochs": st.integers(1, 2),
            "old_logprobs": st.sampled_from(["learner", "engine"]),
            "gradient_checkpointing": st.booleans(),
        }
    ),
)
def test_what_is_kept_of_frozen_layers_changes_nothing_that_is_learnt(layers, heads, kl, most, minibatch, options):
    """In float64 to 1e-9: weights, momentum (which are sums of gradients), heads, bodies of their own, reference."""
    samples = episodes_of(noise=0.1)
    options = {**options, "minibatch": minibatch, "lora_layers": layers}
    kept = trained(adapted(True, HEADS[heads], kl, states_gb=most, **options), samples)
    whole = trained(adapted(True, HEADS[heads], kl, states_gb=0, **options), samples)
    assert kept.keys() == whole.keys()
    for name, value in kept.items():
        torch.testing.assert_close(value, whole[name], rtol=0, atol=1e-9, msg=name)


def test_in_float32_the_weights_agree_up_to_rounding():
    samples, options = episodes_of(noise=0.1), {"lora_layers": (2, 4), "epochs": 2, "micro_tokens": 64}
    kept, whole = (trained(adapted(False, states_gb=gb, **options), samples) for gb in (1.0, 0))
    for name, value in kept.items():
        if ".lora_" in name:
            torch.testing.assert_close(value, whole[name], rtol=0, atol=2e-4)


@pytest.mark.parametrize("heads", ["none", "of their own"])
def test_no_pass_of_a_step_computes_a_frozen_layer_again(heads):
    samples = episodes_of(noise=0.1)
    made = adapted(False, HEADS[heads], kl=True, lora_layers=(2, 4), epochs=2, micro_tokens=64)
    counts = computed_tokens(made)
    trained(made, samples)
    once = {sample.ids.tobytes(): len(sample) for sample in samples}
    padding = 64 * len(samples)
    assert counts, "nothing was counted"
    # One warm-up and two steps, each of which reads every sequence: anything beyond is a pass that was not spared.
    assert 3 * sum(once.values()) <= sum(counts) < 3 * sum(once.values()) + padding
    assert made.frozen is not None and made.frozen.bytes == 0, "it is kept after the step, when other tokens come"


def test_kept_states_stay_within_their_bound():
    made, samples = adapted(False, lora_layers=(1, 3), states_gb=3e-6), episodes_of()
    made.read(samples).logprob  # noqa: B018  # a pass over all
    assert made.frozen is not None
    assert 0 < made.frozen.bytes <= 3000 < sum(len(sample) * 16 * 4 for sample in samples)


def test_something_that_learns_below_is_refused_by_its_name():
    config = LearnerConfig(lora_rank=2, lora_layers=(2, 4))
    language = deep_model(config)
    language.model.get_input_embeddings().weight.requires_grad_(True)
    with pytest.raises(ConfigError, match=r"embed_tokens.* learns below layer 2, .*: set learner.states_gb to 0"):
        Learner(language, config, OBJECTIVES.parse("clip"), 1.0)


def test_a_model_that_is_more_than_its_layers_is_refused():
    config = LearnerConfig(lora_rank=2, lora_layers=(2, 4))
    language = deep_model(config)
    decoder: Any = language.model.get_decoder()
    plain = decoder.forward

    def scaled(**given: Any) -> Any:
        found = plain(**given)
        found.last_hidden_state = found.last_hidden_state * len(decoder.layers)
        return found

    decoder.forward = scaled
    with pytest.raises(ConfigError, match=r"LlamaModel cannot be entered at layer 2, .*: set learner.states_gb to 0"):
        Learner(language, config, OBJECTIVES.parse("clip"), 1.0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lora_rank": 2, "lora_layers": [2, 2]}, "holds no layer"),
        ({"lora_layers": [1, 2]}, None),
    ],
)
def test_a_range_that_does_nothing_is_refused(options, told):
    values = {"env": {"id": "manyturn/Maze-v0"}, "learner": options}
    if told is None:  # a recipe may wait for the switch; nothing is kept then
        assert parse_config(values).learner.states_bytes == 0
        return
    with pytest.raises(ConfigError, match=told):
        parse_config(values)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    texts = asyncio.run(texts_of(InlineSeats("manyturn/Maze-v0"), AgentConfig(), 4, 0))
    build_tiny(texts, 0, 512, CPU, width=16, layers=3, heads=2).save(folder)
    return folder


def run_config(folder: Path, **learner: Any) -> Any:
    return parse_config(
        {
            "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 6}},
            "model": {"name": "pretrained", "path": str(folder)},
            "agent": {"format": "free_text", "instructions": False},
            "sampling": {"max_tokens": 6},
            "warmup": {
                "episodes": 12,
                "noise": 0.0,
                "must_succeed": False,
                "batch": 4,
                "max_updates": 2,
                "check_every": 2,
            },
            "rollout": {"tasks": 2, "group": 2},
            "credit": {
                "advantage": "gigpo",
                "rewards": [{"name": "overlong", "max_tokens": 6, "buffer": 5, "over": "reply"}],
            },
            "learner": {"minibatch": 2, "lr": 1e-3, "lora_rank": 2, **learner},
            "evaluation": {"limit": 2},
            "steps": 1,
            "threads": 1,
        }
    )


@pytest.mark.filterwarnings("error:.*_checkpointing:FutureWarning")  # it would stand in front of every run
def test_a_run_learns_in_the_layers_that_it_names_and_in_no_other(model_folder, tmp_path):
    asyncio.run(train(run_config(model_folder, lora_layers=[1, 2]), tmp_path / "run"))
    folder = tmp_path / "run/checkpoints/step_000001/model"
    found = load_file(folder / "adapter_model.safetensors")
    assert len(found) == 2 * 7 and all(".layers.1." in name for name in found)
    before, after = (dict(load_pretrained(str(path), CPU).model.named_parameters()) for path in (model_folder, folder))
    moved = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert moved and all(".layers.1." in name for name in moved)


def test_a_range_outside_the_model_is_refused_before_the_run_begins(model_folder, tmp_path):
    with pytest.raises(ConfigError, match=r"\[2, 9\] ends outside the model, which has 3 layers: give a range within"):
        asyncio.run(train(run_config(model_folder, lora_layers=[2, 9]), tmp_path / "run"))
    assert not (tmp_path / "run").exists()
