"""A small random model that knows the words of mazes, as a folder that any trainer loads; packages for skyrl-gym."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exported_skyrl import Package  # pyright: ignore[reportMissingImports]

import manyturn as mt


def maze_words() -> list[str]:
    """Words of some mazes and of their commands."""
    words: set[str] = set()
    for seed in range(20):
        env = mt.make("manyturn/Maze-v0")
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            words.update(re.findall(r"\w+|[^\w\s]", " ".join([observation, *info["admissible"]])))
            observation, _, terminated, truncated, info = env.step(env.expert())
            over = terminated or truncated
    return sorted(words)


@pytest.fixture(scope="session")
def maze_model(tmp_path_factory) -> Path:
    """The folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = ["<pad>", "<end>", "<unknown>", *maze_words()]
    core = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unknown>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<end>", unk_token="<unknown>"
    )
    torch.set_num_threads(1)  # threads that wait for each other take minutes where others work too
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(words), max_position_embeddings=1024, **shape, **ends))
    folder = tmp_path_factory.mktemp("maze-model")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def exported_skyrl(command, monkeypatch, tmp_path) -> Iterator[Callable[..., Package]]:
    """Exports an environment and installs its package, which skyrl-gym has forgotten after the test."""
    from skyrl_gym.envs.registration import registry

    before = set(registry)
    yield lambda env, *words: Package(command, monkeypatch, env, tmp_path, *words)
    for name in set(registry) - before:
        registry.pop(name)
        sys.modules.pop(name.replace("-", "_"), None)
