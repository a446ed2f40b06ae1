"""Scores out of blocks of logits are those out of all logits, forwards and backwards, and blocks stay small."""

from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learner_steps import episodes_of, learn, learner, weights
from torch.utils._python_dispatch import TorchDispatchMode

from manyturn.trainers.learn.learner.operation_count import OperationCounter
from manyturn.trainers.learn.passes import token_logprobs, vocabulary_blocks
from manyturn.trainers.learn.passes.token_logprobs import free_scores
from manyturn.trainers.learn.passes.vocabulary_blocks import blockwise_scores

Slopes = list[torch.Tensor]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_blocks, "AT_ONCE", 35)
    monkeypatch.setattr(vocabulary_blocks, "_WORDS", 7)


def case(tokens: int, words: int, bias: bool, seed: int, kind: torch.dtype) -> tuple[torch.nn.Linear, Slopes]:
    torch.manual_seed(seed)
    head = torch.nn.Linear(5, words, bias=bias).to(kind)
    states = (4 * torch.randn(tokens, 5, dtype=kind)).requires_grad_()
    targets = torch.randint(words, (tokens,))
    return head, [states, targets, torch.randn(tokens, dtype=kind), torch.randn(tokens, dtype=kind)]


def plain(head: torch.nn.Linear, states: torch.Tensor, targets: torch.Tensor, temperature: float) -> Slopes:
    scores = torch.log_softmax(head(states) / temperature, -1)
    return [scores.gather(-1, targets[:, None])[:, 0], -(scores.exp() * scores).sum(-1)]


def with_slopes(scores: Any, head: torch.nn.Linear, given_: Slopes, temperature: float, entropy: bool = True) -> Slopes:
    states, targets, by_logprob, by_entropy = given_
    found = scores(head, states, targets, temperature)
    loss = (found[0] * by_logprob).sum() + ((found[1] * by_entropy).sum() if entropy else 0.0)
    return [*(part.detach() for part in found), *torch.autograd.grad(loss, [states, *head.parameters()])]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 23), st.booleans(), st.integers(0, 9), st.booleans(), st.floats(0.2, 3.0))
def test_scores_and_gradients_out_of_blocks_are_those_out_of_all_logits(
    tokens: int, words: int, bias: bool, seed: int, entropy: bool, temperature: float
) -> None:
    head, given_ = case(tokens, words, bias, seed, torch.float64)
    ours, theirs = (with_slopes(each, head, given_, temperature, entropy) for each in (blockwise_scores, plain))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)


def test_in_float32_large_logits_cost_no_more_digits_than_all_at_once() -> None:
    head, given_ = case(9, 20, True, 0, torch.float32)
    with torch.no_grad():
        head.weight.mul_(60)
    double = torch.nn.Linear(5, 20).double()
    double.load_state_dict({name: value.double() for name, value in head.state_dict().items()})
    finer = [part.double() if part.is_floating_point() else part for part in given_]
    finer[0] = finer[0].detach().requires_grad_()
    exact = with_slopes(plain, double, finer, 1.0)
    blocks, at_once = (with_slopes(each, head, given_, 1.0) for each in (blockwise_scores, plain))
    for mine, other, right in zip(blocks, at_once, exact, strict=True):
        assert (mine - right).abs().max() <= 2 * (other - right).abs().max() + 1e-6 * right.abs().max()


def test_sums_of_bfloat16_products_are_in_float32() -> None:
    head, given_ = case(9, 20, False, 1, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = blockwise_scores(head, *given_[:2], 1.0)
    assert {part.dtype for part in found} == {torch.float32}
    for mine, other in zip(found, plain(head, *given_[:2], 1.0), strict=True):
        torch.testing.assert_close(mine, other, rtol=0.05, atol=0.05)
    found[0].sum().backward()
    assert head.weight.grad is not None and head.weight.grad.dtype == torch.float32


def test_what_is_frozen_costs_no_gradient_and_the_rest_has_the_same() -> None:
    head, given_ = case(6, 20, True, 2, torch.float64)
    states, targets, by_logprob, _ = given_
    _, _, slope, *_ = with_slopes(plain, head, given_, 1.3, entropy=False)
    head.requires_grad_(False)
    (blockwise_scores(head, states, targets, 1.3)[0] * by_logprob).sum().backward()
    torch.testing.assert_close(states.grad, slope)
    assert head.weight.grad is None and head.bias.grad is None


class Largest(TorchDispatchMode):
    """The number of elements of the largest tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for part in found if isinstance(found, (tuple, list)) else [found]:
            if isinstance(part, torch.Tensor):
                self.elements = max(self.elements, part.numel())
        return found


def test_large_passes_never_hold_the_logits_of_all_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_logprobs, "AT_ONCE", 35)
    head, given_ = case(40, 60, True, 3, torch.float32)
    with Largest() as watch:
        with_slopes(free_scores, head, given_, 1.0)
    assert watch.elements <= 5 * 60  # the gradient of the head's weights, where all logits are 40 times 60
    monkeypatch.setattr(token_logprobs, "AT_ONCE", 10**9)
    with Largest() as watch:
        with_slopes(free_scores, head, given_, 1.0)
    assert watch.elements == 40 * 60


@pytest.mark.parametrize("packing", ["padding", "trie"])
def test_a_step_of_learning_moves_the_weights_as_it_does_with_all_logits(
    monkeypatch: pytest.MonkeyPatch, packing: str
) -> None:
    episodes = episodes_of(noise=0.3)
    config = {"name": "clip", "kl": {"coef": 0.1}, "epo": {"coef": 0.05, "horizon": 8}}
    found = {}
    for at_once in (35, 10**9):
        monkeypatch.setattr(token_logprobs, "AT_ONCE", at_once)
        made = learner(config, double=True, packing=packing)
        for step in range(3):
            figures = learn(made, episodes, step)
        found[at_once] = [*weights(made), torch.tensor([figures["entropy"], figures["grad_norm"]])]
    for mine, other in zip(found[35], found[10**9], strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-7, atol=1e-9)


def test_a_gpu_takes_fewer_and_larger_blocks_with_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_logprobs, "AT_ONCE", 1)
    monkeypatch.setattr(vocabulary_blocks, "GPU_AT_ONCE", 10 * vocabulary_blocks.AT_ONCE)
    head, given_ = case(50, 20, True, 0, torch.float64)
    found, products = list[Slopes](), list[int]()
    for place in (None, "cuda"):
        with OperationCounter() as counter:
            found.append(with_slopes(partial(free_scores, place=place), head, given_, 1.0))
        products.append(len(counter.operations))
    assert products[1] < products[0] / 5
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
