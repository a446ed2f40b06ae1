"""Learns the same steps in one process and in the ranks that torchrun has started, and says how far both are apart.

``python -m torch.distributed.run --nproc-per-node 2 learning_together.py FILE``: rank 0 writes to the file, as JSON,
for each case the largest difference of any figure, that of any tensor in a checkpoint as a share of its largest number,
and how much of what one process computes rank 0 has.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from branching import listing, sample_of
from learner_steps import episodes_of, learn, model

from manyturn.agents.model.language_model import LanguageModel
from manyturn.trainers.learn.heads.head_config import HeadConfig, OwnCriticConfig, ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.heads.heads import SharedHead
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.learn.learner.head_factory import head_of
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.forward import Reader
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import Sample, at_replies
from manyturn.trainers.learn.ranks.process_group import Ranks
from manyturn.trainers.learn.ranks.rank_learner import RankLearner
from manyturn.trainers.learn.ranks.rank_zero import Leading

CPU = torch.device("cpu")
CRITIC = ValueHeadConfig(into_policy=0.5, hidden=4)
OWN = ValueHeadConfig(body="own", own=OwnCriticConfig(lr=1e-2, hidden=4))
SOLVED = ValueHeadConfig(fit="least_squares")
ESTIMATOR = ProgressHeadConfig(lr=0.05, hidden=4)
PLAIN: dict[str, Any] = {"name": "clip"}
TERMS = {"kl": {"coef": 0.1, "target": 0.1}, "epo": {"coef": 0.1, "horizon": 8}, "aggregation": "seq-mean-token-mean"}
CORRECTED = {"correction": {"level": "sequence"}, "reject": [{"divergence": "k2", "upper": 0.5}]}
Case = tuple[dict[str, Any], tuple[HeadConfig, ...], dict[str, Any]]
CASES: dict[str, Case] = {
    "plain": (PLAIN, (), {}),
    "small passes": (PLAIN, (), {"micro_tokens": 64, "epochs": 2, "minibatch": 3}),
    "an episode in an update, so that a rank has no row": (PLAIN, (), {"minibatch": 1}),
    "stopped": (PLAIN, (), {"epochs": 3, "stop_kl": 1e-3}),
    "clipped": (PLAIN, (), {"max_grad_norm": 1e-3}),
    "checkpointing": (PLAIN, (), {"gradient_checkpointing": True}),
    "packed": (PLAIN, (), {"packing": "packed"}),
    "trie": (PLAIN, (), {"packing": "trie", "micro_tokens": 64}),
    "adapters": (PLAIN, (), {"lora_rank": 2}),
    "whole commands": ({**PLAIN, **TERMS}, (), {"packing": "trie", "micro_tokens": 96}),
    "regularisers": ({**PLAIN, **TERMS}, (), {"minibatch": 4}),
    "corrected": ({**PLAIN, **CORRECTED}, (), {}),
    "critic": (PLAIN, (CRITIC,), {}),
    "critic that is solved for": (PLAIN, (SOLVED,), {"minibatch": 1}),
    "critic with a body of its own": (PLAIN, (OWN,), {"packing": "trie"}),
    "estimator": (PLAIN, (ESTIMATOR,), {"minibatch": 2}),
    "estimator that is solved for": (PLAIN, (ProgressHeadConfig(fit="least_squares"),), {}),
    **{name: ({"name": name}, (), {}) for name in ("gspo", "cispo", "topr")},
}


def built(options: LearnerConfig) -> LanguageModel:
    language = model(double=True)
    if options.lora_rank:
        add_adapters(language, options, 0)
        language.model.double()
    return language


def rank_learner(
    ranks: Ranks, case: Case, budget: PassBudget | None = None, heads: list[SharedHead] | None = None
) -> RankLearner:
    objective, wanted, given = case
    config = LearnerConfig.model_validate({"minibatch": 64, "lr": 1e-2, **given})
    own, budget = built(config).model, budget or PassBudget(config.micro_tokens)
    made: Any = heads or [head_of(head, own, config, budget, device=CPU) for head in wanted]
    reader = Reader(own, budget, 1.0, config.packing)
    return RankLearner(ranks, reader, CPU, config, OBJECTIVES.parse(objective), made)


def learner(case: Case, ranks: Ranks | None, number: int) -> Learner:
    objective, heads, given = case
    config = LearnerConfig.model_validate({"minibatch": 64, "lr": 1e-2, **given})

    def share(reader: Reader, own: Any) -> Leading:
        assert ranks is not None
        return Leading(ranks, number, reader.model, rank_learner(ranks, case, reader.budget, list(own)))

    return Learner(built(config), config, OBJECTIVES.parse(objective).over(8), 1.0, heads, share if ranks else None)


def steps(made: Learner, samples: list[Sample]) -> list[dict[str, Any]]:
    """Imitations, two steps, and the figures of all; between these a checkpoint, after which passes are smaller."""
    as_begun = [weights.clone() for weights in made.model.parameters()]
    figures: list[dict[str, Any]] = [made.imitate(samples[:3], 1e-2, observed=0.3)]
    if isinstance(made._learning, Leading):
        assert all(map(torch.equal, as_begun, made.model.parameters())), "nobody has asked for the policy yet"
    made.put_together()
    figures.append({name: float(value.double().abs().sum()) for name, value in made.model.state_dict().items()})
    figures.append(made.imitate(samples[1:4], 1e-2, observed=0.3))
    made.begin_reinforcement()
    for step in range(2):
        given: dict[str, Any] = {}
        if any(head.name == "value" for head in made.heads):
            given["targets_T"] = at_replies(samples, [sample.ids % 3 for sample in samples]).astype(float)
        if any(head.name == "progress" for head in made.heads):
            given["outcome_E"] = np.arange(1.0 + max(sample.episode for sample in samples)) % 2
        reading = made.read(samples, ("reply_tokens", "reply_ends"))
        rows = {
            "said": reading.hidden("reply_tokens"),
            "ends": reading.hidden("reply_ends"),
            "entropy": reading.entropy,
        }
        rows["reference"] = reading.reference or []
        figures += [{f"{name} {i}": float(row.abs().max()) for i, row in enumerate(rows[name])} for name in rows]
        kept_E = np.array([sample.episode != 1 for sample in samples])
        figures.append(learn(made, samples, step, 1.0 - 0.5 * step, kept_E=kept_E, **given))
        kept = {name: value.clone() for name, value in made.tensors().items()}
        less = {"micro_tokens": made.config.micro_tokens // 2}
        made.load_plain(json.loads(json.dumps({**made.plain(), **less})))
        made.load_tensors(kept)
    return figures


def apart(ours: Learner, theirs: Learner) -> float:
    """The largest difference of any tensor that a run keeps, as a share of that tensor's largest number."""
    mine = {**ours.model.state_dict(), **ours.tensors()}
    others = {**theirs.model.state_dict(), **theirs.tensors()}
    assert mine.keys() == others.keys(), mine.keys() ^ others.keys()
    found = 0.0
    for name, value in mine.items():
        assert value.shape == others[name].shape and value.dtype == others[name].dtype, name
        largest = max(float(others[name].abs().max()), 1e-3)
        found = max(found, float((value - others[name]).abs().max()) / largest)
    return found


def difference(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> float:
    """The largest one of any figure but the gap, which is of rank 0's first pass."""
    found = 0.0
    for one, other in zip(ours, theirs, strict=True):
        assert one.keys() == other.keys(), one.keys() ^ other.keys()
        for name in one.keys() - {"engine_gap", "packing_ratio"}:
            if one[name] is None or other[name] is None:
                assert one[name] is other[name], name
            else:
                found = max(found, abs(one[name] - other[name]))
    return found


def main(file: Path) -> None:
    with Ranks() as ranks:
        if ranks.rank:
            with contextlib.suppress(BrokenPipeError):
                learners = [rank_learner(ranks, case) for case in CASES.values()]
                for message in ranks.messages():
                    with ranks.together():
                        found = learners[message.plain["policy"]].do(message)
                    assert message.what != "read" or not any(found.values()), "rank 0 alone needs what was read"
                budgets = [(own.updates.reader.budget.tokens, own.updates.config.micro_tokens) for own in learners]
                assert all(tokens == most // 2 for tokens, most in budgets), "a checkpoint's smaller passes"
            return
        samples = episodes_of(6, noise=0.2)
        shared = [sample_of(6 + n, [(list(range(20, 40)), -1), ([5, 6], 0), ([7, n], 1)], 2) for n in range(3)]
        told = dict[str, tuple[float, float, float]]()
        for number, (name, case) in enumerate(CASES.items()):
            together, alone = learner(case, ranks, number), learner(case, None, number)
            given = [listing(sample) if "commands" in name else sample for sample in (*samples, *shared)]
            ours, theirs = (steps(made, given) for made in (together, alone))
            computed = together._learning.updates.reader.computed / alone._learning.updates.reader.computed
            told[name] = difference(ours, theirs), apart(together, alone), computed
            print(name, told[name], flush=True)
        file.write_text(json.dumps(told))


main(Path(sys.argv[1]))
