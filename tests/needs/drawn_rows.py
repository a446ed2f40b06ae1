"""Tiny models, and rows that they draw to their end."""

import math
from collections import Counter

import numpy as np
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from manyturn.agents.engine.decoding.decoder import Decoder
from manyturn.agents.engine.decoding.memory import cache_shape
from manyturn.agents.engine.decoding.page_pool import PagePool
from manyturn.agents.engine.decoding.prefix_cache import Caches
from manyturn.agents.engine.decoding.recorded_pass import Recorder
from manyturn.agents.engine.decoding.row import Row
from manyturn.envs.contract.random_keys import generator

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


class Drawing:
    """A model that draws rows to their end, all that there is room for together."""

    def __init__(self, model: PreTrainedModel, pages: int = 400, recorder: Recorder | None = None):
        self.pool = PagePool(cache_shape(model.config, model.dtype), pages, model.device)
        self.caches, self.decoder = Caches(self.pool), Decoder(model, ENDS, self.pool, recorder)
        self.passes = 0

    def draw(self, rows: dict[int, Row]) -> None:
        waiting, running = dict(rows), dict[int, Row]()
        while waiting or running:
            for key in list(waiting):
                if self.caches.begin(key, waiting[key], waiting, alone=not running) == "begun":
                    running[key] = waiting.pop(key)
            before = [row.computed for row in running.values()]
            ended = self.decoder.advance(list(running.values()))
            self.passes += 1
            self.caches.learnt(list(running.values()), before)
            for key in [key for key, row in running.items() if row in ended]:
                self.caches.end(key, running.pop(key), keep=True)


def row(number: int, length: int, limit: int, heat: float = 1.0) -> Row:
    rng = generator("row", number)
    return Row(rng.integers(4, 40, length).tolist(), rng.random(limit).tolist(), heat)


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


def assert_right(model: PreTrainedModel, drawn: Row) -> None:
    ids, scores = recomputed(model, drawn)
    assert drawn.ids == ids
    assert np.allclose(drawn.logprobs, scores, atol=1e-4)


def step_by_step(shares: dict[tuple[int, ...], float], ids: list[int]) -> tuple[list[float], list[float]]:
    """A reply's tokens, each among those that go on to a command, and their entropies, from shares of commands."""
    logprobs, entropies = [], []
    for place, token in enumerate(ids):
        nexts = Counter()
        for reply, share in shares.items():
            if list(reply[:place]) == ids[:place]:
                nexts[reply[place]] += share
        parts = np.array(list(nexts.values())) / sum(nexts.values())
        logprobs.append(math.log(nexts[token] / sum(nexts.values())))
        entropies.append(-float((parts * np.log(parts)).sum()))
    return logprobs, entropies
