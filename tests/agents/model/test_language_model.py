import json
import subprocess
import sys

import pytest
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM, MistralConfig, MistralForCausalLM

from manyturn.agents.model.gguf_conversion import converted
from manyturn.agents.model.language_model import build_tiny, check_supported, load_pretrained, tiny_tokenizer
from manyturn.agents.model.model_config import MODELS, ModelContext, ModelError
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import configure

pytestmark = pytest.mark.versions

CPU = torch.device("cpu")
SMALL = {
    "vocab_size": 64,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}


def test_a_word_of_the_environment_is_one_token_and_unknown_words_are_lossless(tiny_template):
    assert len(tiny_template.encode("take key")) == 2
    strange = "Übergrößenträger \U0001f5dd\x00\u200b"
    assert len(tiny_template.encode(strange)) > 3
    assert tiny_template.decode(tiny_template.encode(strange)) == strange


def test_a_number_never_seen_is_spelt_in_digits_that_were_seen():
    tokenizer = tiny_tokenizer(["order 1234 of C-58 costs 60.79"], digits=True)
    ids = tokenizer("order 9876 of C-12 costs 3.5")["input_ids"]
    pieces = [piece.removeprefix("Ġ") for piece in tokenizer.convert_ids_to_tokens(ids)]
    assert [piece for piece in pieces if piece.isdigit()] == list("98761235") and len(ids) == 14, "no token for a space"
    assert tokenizer.decode(ids) == "order 9876 of C-12 costs 3.5"
    assert not any(any(c.isdigit() for c in piece) for piece in tokenizer.get_vocab() if len(piece) > 2)


@pytest.mark.parametrize(("name", "millions"), [("tiny-100k", 0.13), ("tiny-1m", 1.05), ("tiny-5m", 5.25)])
def test_a_model_has_the_size_that_its_name_says(name, millions, maze_texts):
    model = MODELS.apply(MODELS.parse(name), ModelContext(CPU, texts=maze_texts)).model
    layers = sum(weights.numel() for weights in model.model.layers.parameters())
    assert layers / 1e6 == pytest.approx(millions, rel=0.02)


def test_the_vocabulary_does_not_depend_on_the_order_of_texts(maze_texts):
    one, other = tiny_tokenizer(maze_texts), tiny_tokenizer(reversed(maze_texts))
    assert one.get_vocab() == other.get_vocab()


def test_weights_depend_on_the_seed_alone_and_leave_the_global_generator_untouched(maze_texts):
    def weights(seed: int) -> torch.Tensor:
        return build_tiny(maze_texts, seed, 64, CPU, width=16).model.model.embed_tokens.weight

    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = weights(1)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert torch.equal(weights(1), first)
    assert not torch.equal(weights(2), first)


def test_a_saved_tiny_model_loads_as_the_same_model_with_the_same_tokens(maze_texts, tmp_path):
    language = build_tiny(maze_texts, 0, 64, CPU, width=16)
    language.save(tmp_path)
    again = load_pretrained(str(tmp_path), CPU)
    ids = language.template.opening("Rules.", "The red room. \U0001f5dd")
    assert again.template.opening("Rules.", "The red room. \U0001f5dd") == ids
    assert again.template.bridge("x", ended=False) == language.template.bridge("x", ended=False)
    assert again.template.end_ids == language.template.end_ids
    batch = torch.tensor([ids])
    assert torch.equal(again.model(batch).logits, language.model(batch).logits)
    again.template.check()


def test_loaded_weights_replace_the_old_ones_and_those_of_another_model_are_refused(maze_texts, tmp_path):
    first, second = (build_tiny(maze_texts, seed, 64, CPU, width=16) for seed in (0, 1))
    first.save(tmp_path)
    second.load_weights(tmp_path)
    batch = torch.tensor([[1, 2, 3]])
    assert torch.equal(first.model(batch).logits, second.model(batch).logits)
    deeper = build_tiny(maze_texts, 0, 64, CPU, width=16, layers=3)
    with pytest.raises(ModelError, match="another model"):
        deeper.load_weights(tmp_path)


def test_width_that_heads_do_not_divide_is_refused(maze_texts):
    with pytest.raises(ModelError, match="must divide"):
        build_tiny(maze_texts, 0, 64, CPU, width=30, heads=4)


@pytest.mark.parametrize("path", ["/no/such/folder", "no-such-model-anywhere", "./nothing"])
def test_a_model_that_is_not_there_says_what_would_help(path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"give a .*folder.* or an id"):
        load_pretrained(path, CPU)


def test_a_folder_without_a_model_and_damaged_weights_are_model_errors(maze_texts, tmp_path):
    with pytest.raises(ModelError, match="holds no model"):
        load_pretrained(str(tmp_path), CPU)
    build_tiny(maze_texts, 0, 64, CPU, width=16).save(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ModelError, match="cannot load"):
        load_pretrained(str(tmp_path), CPU)


def test_models_that_the_engine_would_compute_wrongly_are_refused():
    capped = Gemma2Config(**SMALL, final_logit_softcapping=0.001, layer_types=["full_attention"] * 2)
    with pytest.raises(ModelError, match="caps its logits"):
        check_supported(Gemma2ForCausalLM(capped).eval())
    with pytest.raises(ModelError, match="sliding_attention"):
        check_supported(MistralForCausalLM(MistralConfig(**SMALL, sliding_window=4)).eval())
    check_supported(MistralForCausalLM(MistralConfig(**SMALL, sliding_window=None)).eval())


def test_a_gguf_file_that_is_missing_or_damaged_is_a_model_error(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModelError, match=r"no GGUF file 'other\.gguf'.*bad\.gguf"):
        converted(tmp_path, "other.gguf")
    with pytest.raises(ModelError, match=r"bad\.gguf cannot be read"):
        converted(tmp_path, "bad.gguf")
    assert not list((tmp_path / "cache" / "gguf").iterdir())


def test_without_the_package_gguf_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("manyturn.agents.model.gguf_conversion.find_spec", lambda name: None)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"pip install 'manyturn\[gguf\]'"):
        converted(tmp_path, "model.gguf")


def test_a_saved_folder_holds_safetensors_and_json_and_no_pickle(maze_texts, tmp_path):
    build_tiny(maze_texts, 0, 64, CPU, width=16).save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert "model.safetensors" in names
    assert {path.suffix for path in tmp_path.iterdir()} <= {".safetensors", ".json", ".jinja"}
    json.loads((tmp_path / "config.json").read_text())


def test_a_recipe_that_names_its_model_under_another_key_is_answered_with_the_right_one():
    maze = {"env": {"id": "manyturn/Maze-v0"}}
    for layers in (({"model": {"kind": "tiny", "width": 16}},), ({}, {"model": {"kind": "tiny"}})):
        with pytest.raises(ConfigError, match="model: kind = 'tiny' does not choose the model: write name = 'tiny'"):
            configure(*layers, maze)


def test_models_are_checked_without_torch():
    code = """if True:
        import sys
        from manyturn.trainers.recipe.config import parse_config
        env = {"id": "manyturn/Maze-v0"}
        for model in ("tiny", {"name": "pretrained", "path": "x"}):
            parse_config({"env": env, "model": model})
        sys.exit("torch" in sys.modules)
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
