"""Attention of a tree in one call that differs from that of its runs, or that launches more and more operations."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from learner_steps import model
from torch.utils.flop_counter import FlopCounterMode
from transformers import Qwen2Config

from benchmarks.gpu_kit.flops import of_tree
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.operation_count import PassShape, count_pass
from manyturn.trainers.learn.passes.trie import attention
from manyturn.trainers.learn.passes.trie.attention import ATTENTION, IN_ONE_CALL, IN_PIECES, attend_by_tree
from manyturn.trainers.learn.passes.trie.piece_attention import Pieces
from manyturn.trainers.learn.passes.trie.segment_attention import Segments
from manyturn.trainers.learn.passes.trie.tree import Tree

pytestmark = pytest.mark.versions
CONFIG = Qwen2Config(
    hidden_size=48,
    intermediate_size=64,
    num_hidden_layers=2,
    vocab_size=97,
    num_attention_heads=6,
    num_key_value_heads=2,
)


def random_tree(number: int) -> Tree:
    """Few different tokens, so that rows part everywhere; every fourth tree has a long beginning, or nothing shared."""
    rng = generator("segments", number)
    rows = [rng.integers(0, 2, rng.integers(1, 12)) for _ in range(rng.integers(1, 9))]
    if not number % 4:
        rows = [np.r_[np.zeros(60, np.int64), row] for row in rows]
    return Tree.of(rows, None if number % 4 == 1 else 1)


@pytest.mark.parametrize("number", range(12))
def test_one_call_gives_what_each_run_by_itself_does(number):
    tree, groups, repeats = random_tree(number), 1 + number % 3, 1 + number % 4
    noise, size = torch.Generator().manual_seed(number), 8
    states = [
        torch.randn(1, heads, len(tree.ids), size, dtype=torch.float64, generator=noise).requires_grad_()
        for heads in (groups * repeats, groups, groups)
    ]
    module = SimpleNamespace(num_key_value_groups=repeats, is_causal=True)
    theirs = Pieces(tree.runs, torch.device("cpu")).attend(module, *states, scaling=0.3)  # type: ignore[arg-type]
    with FlopCounterMode(display=False) as counter:
        ours = Segments(tree.runs, torch.device("cpu")).attend(*states, 0.3)
    needed = Qwen2Config(hidden_size=groups * repeats * size, num_attention_heads=groups * repeats, num_hidden_layers=1)
    assert counter.get_total_flops() == of_tree(needed, tree.depth, 0).attention
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)
    slope = torch.randn(ours.shape, dtype=torch.float64, generator=noise)
    with FlopCounterMode(display=False) as counter:
        gradients = torch.autograd.grad((ours * slope).sum(), states)
    assert counter.get_total_flops() == 2.5 * of_tree(needed, tree.depth, 0).attention
    for one, other in zip(gradients, torch.autograd.grad((theirs * slope).sum(), states), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def layer_launches(rows: int, *, learns: bool) -> int:
    learner = LearnerConfig(gradient_checkpointing=learns)
    count = count_pass(CONFIG, PassShape(rows, length=24, shared=16, scored=4), learner, learns=learns)
    return len(count.more) - len(count.fewer)


def test_a_layer_launches_no_more_for_more_runs(monkeypatch):
    few, many = layer_launches(2, learns=False), layer_launches(12, learns=False)
    assert few == many < 60
    assert layer_launches(12, learns=True) < 4 * 60, "forwards, again, and backwards"
    monkeypatch.setattr("manyturn.trainers.learn.learner.operation_count.tree_attentions", lambda *_: (IN_PIECES,))
    assert layer_launches(12, learns=False) > 2 * many


def test_a_device_without_the_kernel_attends_run_by_run_and_says_so(monkeypatch):
    def missing(*_: object) -> torch.Tensor:
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")

    decoder = model().model.get_decoder()
    monkeypatch.setattr(attention, "tree_attentions", lambda *_: (IN_ONE_CALL, IN_PIECES))
    with monkeypatch.context() as broken, pytest.warns(UserWarning, match="Ampere.*each run attends by itself"):
        broken.setattr(Segments, "attend", missing)
        attend_by_tree(decoder)
    assert getattr(decoder.config, ATTENTION) == IN_PIECES
    decoder = model().model.get_decoder()
    with warnings.catch_warnings(action="error"):
        attend_by_tree(decoder)
    assert getattr(decoder.config, ATTENTION) == IN_ONE_CALL


@pytest.mark.parametrize(
    ("device", "size", "first"),
    [("cpu", 64, IN_PIECES), ("cuda", 64, IN_ONE_CALL), ("cuda", 20, IN_PIECES), ("cuda", 512, IN_PIECES)],
)
def test_the_way_follows_from_the_device_and_the_size_of_a_head(device, size, first):
    assert attention.tree_attentions(torch.device(device), Qwen2Config(head_dim=size))[0] == first
