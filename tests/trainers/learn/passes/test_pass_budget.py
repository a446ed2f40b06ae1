"""Memory that runs out while the learner computes: an update begins again in smaller passes; nothing counts twice."""

from typing import Any

import pytest
import torch
from learner_steps import earned, episodes_of, learn, learner, weights

from manyturn.trainers.learn.heads.head_config import HeadConfig, ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.heads.heads import HeadTargets
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.passes.pass_budget import LearningFailed, PassBudget

HEADS: list[tuple[HeadConfig, ...]] = [
    (),
    (ValueHeadConfig(lr=0.05, into_policy=0.3),),
    (ValueHeadConfig(fit="least_squares"), ProgressHeadConfig(fit="least_squares")),
    (ProgressHeadConfig(lr=0.05),),
    (ValueHeadConfig.model_validate({"body": "own", "own": {"lr": 0.01}}),),
]


class Scarce:
    """The policy's passes with gradient fail once, at the given number, as where memory is short."""

    def __init__(self, made: Learner, fails_at: int):
        self.passes, self._fails_at = 0, fails_at
        made.model.get_decoder().register_forward_pre_hook(self._take)

    def _take(self, *_: Any) -> None:
        self.passes += torch.is_grad_enabled()
        if self.passes == self._fails_at and torch.is_grad_enabled():
            self.passes += 1
            torch.empty(2**60)


def given(samples: list[Any], heads: tuple[HeadConfig, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if any(isinstance(head, ValueHeadConfig) for head in heads):
        found["targets_T"] = earned(samples) + 1.0
    if any(isinstance(head, ProgressHeadConfig) for head in heads):
        found["outcome_E"] = torch.arange(1 + max(sample.episode for sample in samples)).numpy() % 2.0
    return found


def everything(made: Learner) -> dict[str, torch.Tensor]:
    found = {name: value.clone() for name, value in made.tensors().items()}
    return found | {str(number): value for number, value in enumerate(weights(made))}


@pytest.mark.parametrize("heads", HEADS, ids=["none", "critic", "least squares", "estimator", "own critic"])
def test_an_update_that_runs_out_in_its_second_pass_is_the_update_in_smaller_passes(heads):
    samples = episodes_of(6, noise=0.2)
    scarce, small = (learner("clip", *heads, double=True, micro_tokens=64) for _ in range(2))
    watch = Scarce(scarce, fails_at=2)
    figures = learn(scarce, samples, **given(samples, heads))
    assert watch.passes > 3 and scarce.budget.tokens < 64

    step = small.read(samples)
    assert step.logprob  # read now, as the other did before its memory ran out
    for head in small.heads:
        assert step.head_values(head.name)
    small.budget.tokens = scarce.budget.tokens
    needed = given(samples, heads)
    targets = HeadTargets(needed.get("targets_T"), needed.get("outcome_E"))
    small.learn(step, earned(samples), 1.0, (0,), targets)
    ours, theirs = everything(scarce), everything(small)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert figures["learner_out_of_memory"] == 1 and figures["micro_tokens"] == scarce.budget.tokens
    assert learn(scarce, samples, 1, **given(samples, heads))["learner_out_of_memory"] == 0


def test_imitation_that_runs_out_learns_each_demonstration_once():
    samples = episodes_of(6)
    scarce, small = (learner("clip", double=True, micro_tokens=64) for _ in range(2))
    Scarce(scarce, fails_at=2)
    found = scarce.imitate(samples, 1e-2, observed=0.1)
    small.budget.tokens = scarce.budget.tokens
    assert scarce.budget.tokens < 64 and found == small.imitate(samples, 1e-2, observed=0.1)
    assert all(map(torch.equal, weights(scarce), weights(small)))


def test_a_single_sequence_that_is_too_long_stops_the_run_and_says_what_to_change():
    made = learner("clip")
    made.model.get_decoder().register_forward_pre_hook(lambda *_: torch.empty(2**60) and None)
    with pytest.raises(LearningFailed, match=r"a single sequence of \d+ tokens.*gradient_checkpointing"):
        learn(made, episodes_of(3))


def test_another_error_is_no_want_of_memory():
    budget, tries = PassBudget(64), []
    budget.passing(8, 64)

    def work() -> None:
        tries.append(1)
        raise ValueError("the story ran out of memory")

    with pytest.raises(ValueError, match="the story"):
        budget.within(work)
    assert len(tries) == 1 and budget.tokens == 64
