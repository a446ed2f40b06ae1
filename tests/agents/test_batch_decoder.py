import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from manyturn.agents import batch_decoder
from manyturn.agents.batch_decoder import BatchDecoder, Drawn, Past, Row
from manyturn.agents.engine import EngineError
from manyturn.envs.contract.keys import generator

ENDS = frozenset({1, 2, 3})
SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 40}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}


def make_model(kind: str) -> PreTrainedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "llama":
            model = LlamaForCausalLM(LlamaConfig(**SHAPE, **HEADS))
        elif kind == "qwen3":
            model = Qwen3ForCausalLM(Qwen3Config(**SHAPE, **HEADS, head_dim=8))
        else:
            model = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=40, n_positions=300))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(6)  # random weights as they come are nearly blind to what they read
    return model.eval()


def row(number: int, length: int, limit: int, past: Past | None = None, heat: float = 1.0) -> Row:
    rng = generator("row", number)
    return Row(rng.integers(4, 40, length).tolist(), past, rng.random(limit).tolist(), heat)


def recomputed(model: PreTrainedModel, row: Row) -> tuple[list[int], list[float]]:
    """The same draw, token by token, each by a forward pass over everything and with numpy's arithmetic."""
    ids, scores = [], []
    for noise in row.noise:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([row.prompt + ids]), use_cache=False).logits[0, -1].double().numpy()
        logits = logits / (row.temperature or 1.0)
        logprobs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        mass = np.exp(logprobs).cumsum()
        token = int(np.searchsorted(mass, noise * mass[-1], side="right")) if row.temperature else int(logits.argmax())
        ids.append(token)
        scores.append(float(logprobs[token]))
        if token in ENDS:
            break
    return ids, scores


def assert_same(drawn: Drawn, expected: tuple[list[int], list[float]]) -> None:
    assert drawn.ids == expected[0]
    assert np.allclose(drawn.logprobs, expected[1], atol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2"])
def test_rows_of_all_lengths_and_limits_draw_what_each_would_draw_alone(kind):
    model = make_model(kind)
    rows = [row(n, length=1 + 17 * n % 150, limit=1 + n % 9, heat=(1.0, 0.5, 0.0)[n % 3]) for n in range(13)]
    expected = [recomputed(model, one) for one in rows]
    assert len({len(ids) for ids, _ in expected}) > 3, "rows should end early, late and by their limit"
    decoder = BatchDecoder(model, ENDS)
    for drawn, answer in zip(decoder.draw(rows), expected, strict=True):
        assert_same(drawn, answer)
    for drawn, answer in zip(reversed(decoder.draw(rows[::-1])), expected, strict=True):
        assert_same(drawn, answer)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_what_was_kept_of_earlier_turns_is_as_good_as_computing_them_again(kind):
    model = make_model(kind)
    decoder = BatchDecoder(model, ENDS)
    rows = [row(n, length=5 + n, limit=1 + n) for n in range(6)]
    for turn in range(4):
        drawn = decoder.draw(rows)
        for one, answer in zip(rows, drawn, strict=True):
            assert_same(answer, recomputed(model, one))
            assert answer.past.ids == (one.prompt + answer.ids)[:-1]
            assert answer.past.keys.shape[-2] == answer.past.values.shape[-2] == len(answer.past.ids)
        rows = [
            Row(one.prompt + answer.ids + row(turn, 3 + n, 1).prompt, answer.past, one.noise, 1.0)
            for n, (one, answer) in enumerate(zip(rows, drawn, strict=True))
        ]


def test_a_prompt_that_only_begins_like_the_kept_one_is_computed_from_where_it_differs():
    model = make_model("llama")
    decoder = BatchDecoder(model, ENDS)
    (first,) = decoder.draw([row(0, 20, 4)])
    cases = {
        "edited": [*first.past.ids[:10], 39, *first.past.ids[11:]],
        "other": [39, 38, 37],
        "shorter": first.past.ids[:7],
        "same": list(first.past.ids),
    }
    rows = [Row(prompt, first.past, row(1, 1, 5).noise, 1.0) for prompt in cases.values()]
    assert [first.past.shared(one.prompt) for one in rows] == [10, 0, 6, len(first.past.ids) - 1]
    for one, drawn in zip(rows, decoder.draw(rows), strict=True):
        assert_same(drawn, recomputed(model, one))


def test_long_prompts_are_read_in_pieces_without_a_difference(monkeypatch):
    model = make_model("llama")
    rows = [row(n, length=(3, 40, 260, 100)[n], limit=4) for n in range(4)]
    whole = BatchDecoder(model, ENDS).draw(rows)
    monkeypatch.setattr(batch_decoder, "_MASK_BUDGET", 2000)
    pieces = BatchDecoder(model, ENDS).draw(rows)
    for one, other in zip(whole, pieces, strict=True):
        assert_same(one, (other.ids, other.logprobs))
    assert_same(whole[2], recomputed(model, rows[2]))


def test_adapters_are_drawn_with():
    model = make_model("llama")
    plain = BatchDecoder(model, ENDS).draw([row(0, 20, 6)])[0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        adapted = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    drawn = BatchDecoder(adapted, ENDS).draw([row(0, 20, 6)])[0]
    assert drawn.logprobs != plain.logprobs
    assert_same(drawn, recomputed(adapted.eval(), row(0, 20, 6)))


def test_damaged_weights_are_an_engine_error_and_leave_the_model_in_its_mode():
    model = make_model("llama").train()
    with torch.no_grad():
        model.model.norm.weight[3] = float("nan")
    with pytest.raises(EngineError, match="NaN"):
        BatchDecoder(model, ENDS).draw([row(0, 5, 3)])
    assert model.training


def test_drawing_neither_uses_dropout_nor_touches_the_global_generator():
    model = make_model("gpt2").train()
    before = torch.get_rng_state()
    first, second = (BatchDecoder(model, ENDS).draw([row(0, 30, 8)])[0] for _ in range(2))
    assert (first.ids, first.logprobs) == (second.ids, second.logprobs)
    assert model.training and torch.equal(torch.get_rng_state(), before)


def test_draws_follow_the_distribution():
    logits = torch.tensor([[0.0, 2.0, -1.0, 1.0]]).expand(20_000, -1)
    noise = torch.from_numpy(generator("draws").random(20_000))
    tokens, scores, entropies = batch_decoder.sample(logits, noise, torch.full((20_000,), 0.7))
    share = torch.bincount(tokens, minlength=4) / 20_000
    assert torch.allclose(share, torch.softmax(logits[0] / 0.7, -1), atol=0.012)
    assert torch.allclose(scores, torch.log_softmax(logits[0] / 0.7, -1)[tokens])
    assert torch.allclose(entropies, torch.distributions.Categorical(logits=logits[0] / 0.7).entropy())


def test_noise_at_its_limits_draws_no_impossible_token():
    logits = torch.tensor([[-200.0, 0.0, 0.0, -200.0]]).expand(2, -1)
    tokens, *_ = batch_decoder.sample(logits, torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64), torch.ones(2))
    assert set(tokens.tolist()) <= {1, 2}
