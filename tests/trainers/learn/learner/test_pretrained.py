"""A Hugging Face model from a folder goes the same way as the tiny one, whole or with adapters."""

import asyncio
import json
import re
import shutil
import signal

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from manyturn.agents.model import language_model
from manyturn.agents.model.language_model import ModelError, build_tiny, load_pretrained
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.agents.text.chat_template import TemplateError
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.checkpoint import newest_checkpoint, weights_hash
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A model that came from elsewhere: random weights in the Hugging Face layout."""
    folder = tmp_path_factory.mktemp("model")
    texts = asyncio.run(texts_of(InlineSeats("manyturn/Maze-v0"), AgentConfig(), 4, 0))
    build_tiny(texts, 0, 512, CPU, width=16, layers=2, heads=2).save(folder)
    return folder


def run_config(folder, **changes):
    return parse_config(
        {
            "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 5}},
            "model": {"name": "pretrained", "path": str(folder)},
            "agent": {"format": "free_text", "instructions": False},
            "sampling": {"max_tokens": 6},
            "warmup": {
                "episodes": 12,
                "must_succeed": False,
                "batch": 4,
                "max_updates": 4,
                "check_every": 4,
                "check_episodes": 2,
            },
            "rollout": {"tasks": 2, "group": 2},
            # No episode of so few succeeds: what is paid for is brevity, so that every update moves the weights.
            "credit": {
                "advantage": "gigpo",
                "rewards": [{"name": "overlong", "max_tokens": 6, "buffer": 5, "over": "reply"}],
            },
            "objective": {"name": "clip", "kl": {"coef": 0.1}},
            "evaluation": {"limit": 3},
            "steps": 2,
            "threads": 1,
            "checkpoint_every": 1,
            **changes,
        }
    )


def learner_of(rank):
    return {"minibatch": 2, "lr": 5e-4, "lora_rank": rank} | ({"lora_alpha": 8} if rank else {})


@pytest.mark.parametrize("rank", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_a_pretrained_model_trains_and_its_checkpoint_loads_as_a_model(model_folder, tmp_path, rank):
    start = load_pretrained(str(model_folder), CPU)
    run = tmp_path / "run"
    config = run_config(model_folder, learner=learner_of(rank))
    summary = asyncio.run(train(config, run))
    checkpoint, _ = newest_checkpoint(run / "checkpoints")
    ended = load_pretrained(str(checkpoint / "model"), CPU)
    before, after = (dict(m.model.named_parameters()) for m in (start, ended))
    assert before.keys() == after.keys()
    moved = [name for name in before if not torch.equal(before[name], after[name])]
    assert moved and (rank == 0 or not any("embed" in name for name in moved))
    if rank == 0:
        assert weights_hash(ended.model) == summary["weights"]


@pytest.mark.deep
@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 4])
def test_resuming_gives_the_same_bits_with_adapters_too(model_folder, tmp_path, rank):
    learner = learner_of(rank)
    whole = asyncio.run(train(run_config(model_folder, learner=learner), tmp_path / "whole"))
    run = tmp_path / "halves"
    asyncio.run(train(run_config(model_folder, learner=learner, steps=2), run))
    newest, _ = newest_checkpoint(run / "checkpoints")
    (newest / "manifest.json").unlink()  # as if the last step had never been saved
    (run / "summary.json").unlink()
    resumed = asyncio.run(train(None, run, resume=True))
    assert resumed["weights"] == whole["weights"]


def test_the_reference_is_the_warmed_up_policy(model_folder, tmp_path):
    """KL to the reference starts at zero on the first step and only there."""
    run = tmp_path / "run"
    # The entropy bonus moves the policy even if no episode of so few succeeds.
    objective = {"name": "clip", "kl": {"coef": 0.1}, "entropy": {"coef": 0.1}}
    asyncio.run(
        train(run_config(model_folder, learner={**learner_of(0), "minibatch": 4}, objective=objective, steps=3), run)
    )
    values = [line["reference_kl"] for line in read_metrics(run) if line["phase"] == "train"]
    assert abs(values[0]) < 1e-6 < values[-1]


def test_a_folder_without_a_model_says_what_to_give(tmp_path):
    with pytest.raises(ModelError, match=r"config\.json"):
        load_pretrained(str(tmp_path), CPU)


def test_a_model_that_the_hub_cannot_give_says_so(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # the variable is read at import
    with pytest.raises(ModelError, match="local folder"):
        load_pretrained("nobody/no-such-model", CPU)


def test_logits_that_are_scaled_after_the_head_are_refused(tmp_path):
    """Engine and learner would both be wrong in the same way, and nothing else would show it."""
    from transformers import GraniteConfig, GraniteForCausalLM

    texts = asyncio.run(texts_of(InlineSeats("manyturn/Maze-v0"), AgentConfig(), 2, 0))
    language = build_tiny(texts, 0, 128, CPU, width=16, heads=2)
    config = GraniteConfig(
        vocab_size=len(language.tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        logits_scaling=8.0,
        initializer_range=0.5,
    )
    GraniteForCausalLM(config).save_pretrained(tmp_path)
    language.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="logits"):
        load_pretrained(str(tmp_path), CPU)


def test_settings_that_cannot_learn_are_refused(model_folder):
    with pytest.raises(ValueError, match="temperature"):
        run_config(model_folder, sampling={"temperature": 0.0})


def test_gradient_checkpointing_is_really_on(model_folder):
    """Models are loaded in evaluation mode, in which transformers leaves checkpointing out without a word."""
    from manyturn.trainers.learn.learner.learner import Learner
    from manyturn.trainers.learn.learner.learner_config import LearnerConfig
    from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
    from manyturn.trainers.learn.passes.samples import Sample

    language = load_pretrained(str(model_folder), CPU)
    learner = Learner(language, LearnerConfig(gradient_checkpointing=True), ClipConfig(), 1.0)
    calls = []
    for layer in language.model.get_decoder().layers:
        inner = layer._gradient_checkpointing_func
        layer._gradient_checkpointing_func = lambda *a, inner=inner, **k: (calls.append(1), inner(*a, **k))[1]
    said = np.array([False, True, True])
    learner.imitate([Sample(0, np.array([5, 6, 7]), said, np.zeros(3), said - 1)], 1e-3)
    assert len(calls) == 2


def test_adapters_that_are_a_pickle_are_not_opened(model_folder, tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(model_folder)}))
    for file in model_folder.glob("tokenizer*"):
        shutil.copy(file, tmp_path)
    (tmp_path / "adapter_model.bin").write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(ModelError, match=r"no adapter_model\.safetensors"):
        load_pretrained(str(tmp_path), CPU)


@pytest.mark.parametrize(
    ("base", "fix"),
    [
        ("some-stranger/model", "hf download some-stranger/model"),
        ("/dev/zero", "correct it there"),
        ("adapters", "correct it there"),
        ("no/such/place/at/all", "if you trust it"),
    ],
)
def test_a_file_s_word_for_a_base_model_fetches_nothing_and_opens_no_device(model_folder, tmp_path, base, fix):
    named = str(tmp_path) if base == "adapters" else base
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": named, "peft_type": "LORA"}))
    for file in (model_folder / "config.json", *model_folder.glob("tokenizer*")):
        shutil.copy(file, tmp_path)
    save_file({"x": np.zeros(1)}, tmp_path / "adapter_model.safetensors")
    with pytest.raises(ModelError, match=re.escape(fix)):
        load_pretrained(str(tmp_path), CPU)


def test_the_alarm_of_the_program_around_goes_on(model_folder):
    signal.setitimer(signal.ITIMER_REAL, 600.0)
    try:
        load_pretrained(str(model_folder), CPU)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 600
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}", "takes over 0.5 s"),
        ("{{ 'a' * 20000000000000 }}", "more memory than there is"),
    ],
)
def test_a_chat_template_that_never_ends_is_refused_in_time(model_folder, tmp_path, template, words, monkeypatch):
    monkeypatch.setattr(language_model, "_TEMPLATE_SECONDS", 0.5)
    folder = shutil.copytree(model_folder, tmp_path / "model")
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(ModelError, match=words):
        load_pretrained(str(folder), CPU)


def test_a_model_that_asks_for_layers_without_weights_is_refused_and_not_built(model_folder, tmp_path):
    """Five million layers were built until the machine killed the process; three of two had one that was random."""
    folder = shutil.copytree(model_folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    for layers in (5_000_000, config["num_hidden_layers"] + 1):
        (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))
        with pytest.raises(ModelError, match=f"asks for {layers:,} layers, and its weights hold at most"):
            load_pretrained(str(folder), CPU)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("text", ["", "[]", '{"model_type": "llama", "vocab_size": "many"}', '{"auto_map": 3'])
def test_a_model_folder_with_a_broken_file_costs_one_error_of_ours(model_folder, tmp_path, file, text):
    folder = shutil.copytree(model_folder, tmp_path / "model")
    (folder / file).write_text(text)
    try:
        load_pretrained(str(folder), CPU)
    except (ModelError, TemplateError) as error:
        assert "trust_remote_code" not in str(error)
