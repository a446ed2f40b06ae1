"""An update in which a shared token forgets one of its owners, or takes one's credit, ratio or mask for another's."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from branching import sample_of, steps
from hypothesis import HealthCheck, given, settings
from learner_steps import learn, learner, weights

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.heads.head_config import OwnCriticConfig, ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.samples import Sample, at_replies

FEW = settings(deadline=None, max_examples=2, suppress_health_check=list(HealthCheck))
ALONE = {"correction": {"level": "sequence"}, "reject": [{"divergence": "k2", "upper": 0.5}]}
MEANS = {"aggregation": "seq-mean-token-mean", "sequence": "branch"}
TERMS: list[dict[str, Any]] = [
    {"name": "clip", **MEANS, "ratio": "sequence", "kl": {"coef": 0.1}, "epo": {"coef": 0.1, "horizon": 8}},
    {"name": "clip", **ALONE, "epo": {"coef": 0.1, "horizon": 8, "form": "released"}},
    {"name": "gspo", "sequence": "branch", "entropy": {"coef": 0.1}},
]
CRITIC = ValueHeadConfig(into_policy=0.5, hidden=4)
OWN = ValueHeadConfig(body="own", own=OwnCriticConfig(lr=1e-2, hidden=4))
SOLVED = ValueHeadConfig(fit="least_squares")
ESTIMATOR = ProgressHeadConfig(lr=0.05, hidden=4)


def credits(samples: list[Sample]) -> np.ndarray:
    """A number for each said token of each sample, so that no two owners of a node ask for the same."""
    return generator("credits", *(len(sample) for sample in samples)).normal(
        size=sum(int(s.reply_mask.sum()) for s in samples)
    )


def learnt(samples: list[Sample], objective: Any, *heads: Any, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The mean gradients of a step, of the policy and of everything else that learns, and its figures."""
    made = learner(objective, *heads, double=True, **options)
    given: dict[str, Any] = {"advantage_T": credits(samples)}
    if any(head.name == "value" for head in made.heads):
        given["targets_T"] = at_replies(samples, [sample.ids % 3 for sample in samples]).astype(float)
    if any(head.name == "progress" for head in made.heads):
        given["outcome_E"] = np.arange(1.0 + max(sample.episode for sample in samples)) % 2
    figures = {name: value for name, value in learn(made, samples, **given).items() if value is not None}
    kept = {name: value for name, value in made.tensors().items() if "exp_avg" in name or ".solved." in name}
    return kept, figures


def assert_the_same(samples: list[Sample], *given: Any, packed: bool = False, **options: Any) -> None:
    """However many tokens fit into a pass: 64 cut most steps."""
    theirs, told = learnt(samples, *given, packing="padding", **options)
    if told.get("rejected_tokens") == 1:
        return  # there was no update
    del told["engine_gap"]  # of the first pass alone
    for packing, micro_tokens in [("trie", 10_000), ("trie", 64), *[("packed", 64)] * packed]:
        ours, figures = learnt(samples, *given, packing=packing, micro_tokens=micro_tokens, **options)
        ratio = figures.pop("packing_ratio")
        del figures["engine_gap"]
        assert ratio == 1 if packing == "packed" else ratio <= 1
        # A head that is solved for amplifies rounding where states are alike: to the root of what float64 resolves.
        rel = 1e-6 if any(".solved." in name for name in theirs) else 1e-9
        assert figures == pytest.approx(told, rel=rel, abs=1e-12, nan_ok=True)
        assert ours.keys() == theirs.keys() and any(name.startswith("optimizer") for name in ours)
        for name, value in theirs.items():
            close = (1e-6 if ".solved." in name else 1e-9) * max(float(value.abs().max()), 1e-3)
            torch.testing.assert_close(ours[name], value, rtol=0, atol=close)


@pytest.mark.parametrize("objective", [*OBJECTIVES.names(), *TERMS], ids=lambda each: str(each)[:40])
def test_every_owner_of_a_token_has_its_own_credit_ratio_and_mask(objective):
    @FEW
    @given(steps(most=3))
    def check(samples):
        old = "engine" if isinstance(objective, str) else "learner"
        assert_the_same(samples, objective, old_logprobs=old)

    check()


@pytest.mark.parametrize("heads", [(CRITIC, ESTIMATOR), (OWN,), (SOLVED,)], ids=["shared", "own body", "solved"])
def test_heads_learn_from_shared_states_what_each_owner_asks(heads):
    @FEW
    @given(steps(most=3))
    def check(samples):
        assert_the_same(samples, "clip", *heads, packed=True)

    check()


def test_a_demonstration_is_learnt_alike():
    """From tokens that were observed too, with which said tokens of another sample share their nodes."""
    instructions = list(range(20, 40))
    samples = [sample_of(n, [(instructions, -1), ([5, 6], 0), ([7, n], 1)], 2) for n in range(3)]
    made = {packing: learner(double=True, packing=packing) for packing in ("padding", "trie")}
    told = {packing: one.imitate(samples, 1e-2, observed=0.2) for packing, one in made.items()}
    assert told["trie"] == pytest.approx(told["padding"], rel=1e-9)
    for ours, theirs in zip(weights(made["trie"]), weights(made["padding"]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_a_token_that_two_owners_drew_among_others_has_a_probability_for_each():
    samples = [sample_of(n, [(list(range(20, 40)), -1), ([5, 6 + n // 2], 0)], 1) for n in range(3)]
    among = [{20: [5, 9]}, {}, {20: [5, 9, 11], 21: [7, 8]}]
    samples = [replace(sample, allowed=allowed) for sample, allowed in zip(samples, among, strict=True)]
    ours, theirs = (learner(double=True, packing=packing).read(samples) for packing in ("trie", "padding"))
    for one, other in zip([*ours.logprob, *ours.entropy], [*theirs.logprob, *theirs.entropy], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)
    assert len({float(row[20]) for row in ours.logprob}) == 3
    assert_the_same(samples, "clip")
