"""Logits that are rounded where somebody asked for float32, or by one of engine and learner alone."""

import asyncio

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.float32_head import Float32Head, put_float32_head
from manyturn.agents.model.language_model import LanguageModel, build_tiny, load_pretrained
from manyturn.agents.model.model_config import MODELS, ModelContext, ModelError
from manyturn.agents.model.model_internals import allowed_logits, move, output_head, without_peft_warning
from manyturn.agents.model.models.pretrained import PretrainedModel
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.trainers.learn.passes import token_logprobs
from manyturn.trainers.learn.passes.forward import read
from manyturn.trainers.learn.passes.samples import Sample

pytestmark = pytest.mark.versions

CPU = torch.device("cpu")


def coarse(head: bool = True) -> LanguageModel:
    """A tiny model in bfloat16 with large logits."""
    language = build_tiny(["go north", "take the key"], 0, 64, CPU, width=32, layers=1, heads=2)
    with torch.no_grad():
        language.model.get_input_embeddings().weight.mul_(6)
    move(language.model, torch.bfloat16)
    if head:
        put_float32_head(language.model)
    return language


def sample() -> Sample:
    ids = np.arange(5, 45)
    said = np.arange(40) >= 10
    return Sample(0, ids, said, np.zeros(40), np.where(said, 0, -1), 1)


def exact(language: LanguageModel) -> torch.Tensor:
    """Log-probabilities out of the model's own hidden states in float64."""
    ids = torch.from_numpy(sample().ids)[None]
    states = language.model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state[0].double()
    scores = torch.log_softmax(states @ output_head(language.model).weight.double().T, -1)
    return scores[:-1].gather(-1, ids[0, 1:, None])[9:, 0]


@pytest.mark.parametrize("at_once", [2**22, 64], ids=["all at once", "block by block"])
@torch.no_grad()
def test_log_probabilities_are_those_of_float32_logits(at_once, monkeypatch):
    monkeypatch.setattr(token_logprobs, "AT_ONCE", at_once)
    errors = []
    for head in (True, False):
        language = coarse(head)
        found = read(language.model, [sample()], 1.0).logprob[0, 10:]
        errors.append(float((found - exact(language)).abs().max()))
    assert errors[0] < 1e-4 < 1e-2 < errors[1], errors


@torch.no_grad()
def test_those_among_admissible_words_are_too():
    states, words = torch.randn(3, 32, dtype=torch.bfloat16), [[4, 9], [7], [4, 60, 61]]
    language = coarse()
    head = output_head(language.model)
    ids, logits, possible = allowed_logits(head, states, words)
    assert logits.dtype == torch.float32
    whole = head(states)[:, ids]
    torch.testing.assert_close(logits[possible], whole[possible])


def test_engine_and_learner_compute_with_the_same_head():
    async def drawn(language: LanguageModel, begin: int) -> float:
        engine = TransformersEngine(language.model, frozenset(), max_batch=1)
        key = EpisodeKey(0, "head", "task", 0)
        engine.open(key)
        prompt = list(range(begin, begin + 10))
        sampling = Sampling(temperature=1.0, max_tokens=8)
        reply = await engine.generate(key, 0, prompt, sampling)
        engine.close(key)
        await engine.shutdown()
        ids = np.array([*prompt, *reply.ids])
        said = np.arange(len(ids)) >= len(prompt)
        asked = Sample(0, ids, said, np.zeros(len(ids)), np.where(said, 0, -1), 1)
        with torch.no_grad():
            found = read(language.model, [asked], 1.0).logprob[0, len(prompt) :]
        return float((found - torch.tensor(reply.logprobs)).abs().max())

    gaps = [asyncio.run(drawn(coarse(), begin)) for begin in range(5, 14)]
    assert sorted(gaps)[len(gaps) // 2] < 1e-4, "one of them alone is off by 0.01 and more, states now and then"


def test_adapters_leave_it_alone_and_what_is_saved_is_an_ordinary_model(tmp_path):
    language = coarse()
    with without_peft_warning():
        model = get_peft_model(language.model, LoraConfig(r=2, target_modules="all-linear"))
    assert type(model.get_output_embeddings()) is Float32Head
    language = coarse()
    language.save(tmp_path)
    again = load_pretrained(str(tmp_path), CPU, dtype="bfloat16").model
    assert type(output_head(again)) is torch.nn.Linear
    assert output_head(again).weight is again.get_input_embeddings().weight, "tied as before"


@pytest.mark.parametrize("dtype", ["float32", "auto"])
def test_where_nothing_is_rounded_it_is_refused(dtype, tmp_path):
    build_tiny(["go north"], 0, 64, CPU, width=16, layers=1, heads=2).save(tmp_path)
    config = PretrainedModel(path=str(tmp_path), dtype=dtype, head_dtype="float32")
    with pytest.raises(ModelError, match="head_dtype = 'float32' has no effect"):
        MODELS.apply(config, ModelContext(CPU, max_context=64))
    MODELS.apply(config.model_copy(update={"dtype": "bfloat16"}), ModelContext(CPU, max_context=64))
