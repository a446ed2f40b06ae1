import pytest
import torch
from drawn_rows import Drawing, assert_right, make_model, row
from peft import LoraConfig, get_peft_model

from manyturn.agents.engine.decoding import decoder as decoding
from manyturn.agents.engine.decoding.row import Row
from manyturn.agents.engine.decoding.sampling import sample
from manyturn.agents.engine.engine import EngineError
from manyturn.agents.model.model_internals import without_peft_warning
from manyturn.envs.contract.random_keys import generator

pytestmark = pytest.mark.versions


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2"])
def test_rows_of_all_lengths_and_limits_draw_what_each_would_draw_alone(kind):
    model = make_model(kind)
    rows = {n: row(n, length=1 + 17 * n % 150, limit=1 + n % 9, heat=(1.0, 0.5, 0.0)[n % 3]) for n in range(13)}
    Drawing(model).draw(rows)
    assert len({len(one.ids) for one in rows.values()}) > 3, "rows should end early, late and by their limit"
    for one in rows.values():
        assert_right(model, one)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_what_was_kept_of_earlier_turns_is_as_good_as_computing_them_again(kind):
    model = make_model(kind)
    drawing, prompts, known = Drawing(model), {n: row(n, 5 + n, 1).prompt for n in range(6)}, dict.fromkeys(range(6), 0)
    for turn in range(8):
        rows = {n: Row(prompt, row(10 * turn + n, 1, 1 + n).noise, 1.0) for n, prompt in prompts.items()}
        drawing.draw(rows)
        for n, one in rows.items():
            assert_right(model, one)
            assert one.cached == known[n], "only what is new is computed"
            known[n] = one.length - 1
            prompts[n] = one.prompt + one.ids + row(turn, 3 + n, 1).prompt


def test_a_prompt_that_only_begins_like_the_kept_one_is_computed_from_where_it_differs():
    model = make_model("llama")
    first = row(0, 40, 4)
    cases = {
        "edited": ([*first.prompt[:21], 39, 39, *first.prompt[23:]], 21),
        "other": ([39, 38, 37], 0),
        "shorter": (first.prompt[:7], 6),
        "same": (list(first.prompt), 39),
    }
    for prompt, known in cases.values():
        drawing, again = Drawing(model), Row(prompt, row(1, 1, 5).noise, 1.0)
        drawing.draw({0: row(0, 40, 4)})
        drawing.draw({0: again})
        assert again.cached == known
        assert_right(model, again)


def test_long_prompts_are_read_in_pieces_without_a_difference(monkeypatch):
    model = make_model("llama")
    monkeypatch.setattr(decoding, "_MASK_ENTRIES", 2000)
    rows = {n: row(n, length=(3, 40, 260, 100)[n], limit=4) for n in range(4)}
    drawing = Drawing(model)
    drawing.decoder.pass_tokens = 48
    drawing.draw(rows)
    assert drawing.passes > 8
    for one in rows.values():
        assert_right(model, one)


def test_adapters_are_drawn_with():
    model = make_model("llama")
    plain, drawn = row(0, 20, 6), row(0, 20, 6)
    Drawing(model).draw({0: plain})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        with without_peft_warning():
            adapted = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    Drawing(adapted).draw({0: drawn})
    assert drawn.logprobs != plain.logprobs
    assert_right(adapted.eval(), drawn)


def test_damaged_weights_are_an_engine_error_and_leave_the_model_in_its_mode():
    model = make_model("llama").train()
    with torch.no_grad():
        model.model.norm.weight[3] = float("nan")
    with pytest.raises(EngineError, match="NaN"):
        Drawing(model).draw({0: row(0, 5, 3)})
    assert model.training and model.config._attn_implementation == "sdpa"


def test_drawing_neither_uses_dropout_nor_touches_the_global_generator():
    model = make_model("gpt2").train()
    before = torch.get_rng_state()
    first, second = row(0, 30, 8), row(0, 30, 8)
    for one in (first, second):
        Drawing(model).draw({0: one})
    assert (first.ids, first.logprobs) == (second.ids, second.logprobs)
    assert model.training and torch.equal(torch.get_rng_state(), before)


def test_draws_follow_the_distribution():
    logits = torch.tensor([[0.0, 2.0, -1.0, 1.0]]).expand(20_000, -1)
    noise = torch.from_numpy(generator("draws").random(20_000))
    tokens, scores, entropies = sample(logits, noise, torch.full((20_000,), 0.7))
    share = torch.bincount(tokens, minlength=4) / 20_000
    assert torch.allclose(share, torch.softmax(logits[0] / 0.7, -1), atol=0.012)
    assert torch.allclose(scores, torch.log_softmax(logits[0] / 0.7, -1)[tokens])
    assert torch.allclose(entropies, torch.distributions.Categorical(logits=logits[0] / 0.7).entropy())


def test_noise_at_its_limits_draws_no_impossible_token():
    logits = torch.tensor([[-200.0, 0.0, 0.0, -200.0]]).expand(2, -1)
    tokens, *_ = sample(logits, torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64), torch.ones(2))
    assert set(tokens.tolist()) <= {1, 2}
