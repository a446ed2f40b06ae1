"""A pass in which samples share tokens that gives other numbers or gradients than samples of their own."""

from collections.abc import Sequence

import pytest
import torch
from branching import steps
from hypothesis import HealthCheck, given, settings
from learner_steps import episodes_of, equal, in_double, model
from transformers import (
    BloomConfig,
    BloomModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    Qwen3Config,
    Qwen3Model,
)

from manyturn.agents.model.language_model import ModelError
from manyturn.trainers.learn.passes.forward import BodyReader, Reader, encoded, recompute_activations
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.learn.passes.trie import attention
from manyturn.trainers.learn.passes.trie.attention import IN_ONE_CALL, IN_PIECES, attend_by_tree
from manyturn.trainers.learn.passes.trie.packing import LEAST

FEW = settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
EXACT = {torch.float64: 1e-9, torch.float32: 1e-5}
SMALL = {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
GROUPED = {**SMALL, "intermediate_size": 24, "num_key_value_heads": 2, "head_dim": 4}


def numbers(reader: Reader, samples: Sequence[Sample]) -> list[torch.Tensor]:
    """All that a pass says of each said token, and the gradients of a sum in which each weighs otherwise."""
    reading = reader.read(samples)
    row, column = place = reading.reply_mask.nonzero(as_tuple=True)
    values = reading.before_each(lambda hidden: hidden.square().sum(-1))[place]
    found = [reading.logprob[place], reading.entropy[place], values, reading.hidden_at(row, column)]
    noise = torch.randn(len(row), generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(values)
    weights = [p for p in reader.model.parameters() if p.requires_grad]
    loss = sum((noise * (each if each.ndim == 1 else each.sum(-1))).sum() for each in found)
    return [
        *(each.detach() for each in found),
        *torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True),
    ]


def assert_alike(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    """Equal, relative to the largest number of each tensor."""
    for one, other in zip(ours, theirs, strict=True):
        bound = EXACT[other.dtype] * max(float(other.abs().max()), 1e-3)
        torch.testing.assert_close(one, other, rtol=0, atol=bound)


@pytest.mark.parametrize(("double", "least"), [(True, 1), (True, 16), (True, None), (False, 1)])
def test_shared_tokens_are_those_of_samples_of_their_own(double, least, monkeypatch):
    monkeypatch.setitem(LEAST, "trie", least)
    ours, theirs = (Reader(model(double).model, PassBudget(10_000), 0.7, packing) for packing in ("trie", "padding"))

    @FEW
    @given(steps())
    def check(samples):
        assert_alike(numbers(ours, samples), numbers(theirs, samples))

    check()


@pytest.mark.parametrize(
    "body",
    [
        lambda: LlamaModel(LlamaConfig(**GROUPED)),
        lambda: Qwen3Model(Qwen3Config(**GROUPED)),
        lambda: GPT2Model(GPT2Config(vocab_size=64, n_embd=16, n_layer=2, n_head=4, resid_pdrop=0.1, attn_pdrop=0.1)),
    ],
    ids=["groups of query heads", "normalised queries", "learnt positions"],
)
@pytest.mark.parametrize(
    ("recomputed", "way"),
    [(False, IN_PIECES), (True, IN_PIECES), (True, IN_ONE_CALL)],
    ids=["plain", "again", "one call"],
)
def test_every_kind_of_full_attention_attends_to_ancestors(body, recomputed, way, monkeypatch):
    monkeypatch.setattr(attention, "tree_attentions", lambda *_: (way,))
    torch.manual_seed(0)
    decoder = body().eval()
    in_double(decoder)
    if recomputed:
        recompute_activations(decoder)
    ours, theirs = (BodyReader(decoder, PassBudget(10_000), packing) for packing in ("trie", "padding"))

    @settings(FEW, max_examples=3)
    @given(steps())
    def check(samples):
        found = [[], []]
        for reader, into in zip((ours, theirs), found, strict=True):
            reading = reader.read(samples)
            states = reading.hidden_at(*reading.reply_mask.nonzero(as_tuple=True))
            slopes = torch.linspace(-1, 1, states.numel(), dtype=states.dtype).reshape(states.shape)
            into += [
                states.detach(),
                *torch.autograd.grad(
                    (states * slopes).sum(), list(decoder.parameters()), allow_unused=True, materialize_grads=True
                ),
            ]
        assert_alike(*found)

    check()


def test_a_pass_without_a_tree_keeps_its_bits():
    samples, language = episodes_of(), model()
    before = encoded(language.model.get_decoder(), samples)[1].hidden
    reader = Reader(language.model, PassBudget(10_000), 1.0, "trie")
    assert language.model.config._attn_implementation == IN_PIECES
    assert equal([before], [encoded(reader.body, samples)[1].hidden])


def test_a_model_that_is_saved_does_not_ask_for_this_attention(tmp_path):
    language = model()
    Reader(language.model, PassBudget(10_000), 1.0, "trie")
    language.model.save_pretrained(tmp_path)
    assert IN_PIECES not in (tmp_path / "config.json").read_text()


class Deaf(LlamaModel):
    """Finds out positions by itself."""

    def forward(self, *args, position_ids=None, **others):
        return super().forward(*args, **others)


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        (lambda: BloomModel(BloomConfig(vocab_size=64, hidden_size=16, n_layer=1, n_head=2)), "BloomModel has no"),
        (lambda: Deaf(LlamaConfig(**GROUPED, initializer_range=1.0)), "Deaf does not compute tokens by their position"),
    ],
)
def test_a_model_that_would_compute_something_else_is_refused_by_name(decoder, words):
    made = decoder().eval()
    before = made.config._attn_implementation
    with pytest.raises(ModelError, match=f'{words}.*learner.packing = "padding"'):
        attend_by_tree(made)
    assert made.config._attn_implementation == before
