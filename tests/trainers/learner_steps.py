"""A learner of a tiny model, episodes for it, and a step of learning from them."""

from typing import Any

import numpy as np
import torch

from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.heads.head_config import HeadConfig
from manyturn.trainers.learn.heads.heads import HeadTargets
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.samples import Sample, at_replies

torch.set_num_threads(1)
CPU = torch.device("cpu")


def model(double: bool = False) -> LanguageModel:
    language = build_tiny(["go north", "take the key"], 0, 64, CPU, width=16, layers=1, heads=2)
    if double:
        in_double(language.model)
    return language


def in_double(model: torch.nn.Module) -> None:
    """In place. Norms of transformers compute in float32 whatever the model's type, which PyTorch's own do not."""
    model.double()
    for module in list(model.modules()):
        for name, norm in module.named_children():
            if hasattr(norm, "variance_epsilon"):
                exact = torch.nn.RMSNorm(norm.weight.shape, norm.variance_epsilon)
                exact.weight = norm.weight
                setattr(module, name, exact)


def learner(objective: Any = "clip", *heads: HeadConfig, double: bool = False, **options: Any) -> Learner:
    config = LearnerConfig.model_validate({"minibatch": 64, "lr": 1e-2, **options})
    made = Learner(model(double), config, OBJECTIVES.parse(objective), 1.0, heads)
    made.begin_reinforcement()
    return made


def episodes_of(count: int = 4, noise: float = 0.0) -> list[Sample]:
    """Samples of a window's episodes: two or three turns, each in a row of its own, and one whole episode of two turns.

    Args:
        noise: how far the engine's log-probabilities are from the learner's.
    """
    rng, samples = generator("samples", count), []
    for episode in range(count):
        turns = 2 + episode % 2
        rows = [[turn] for turn in range(turns)] if episode else [[0, 1]]
        for row in rows:
            parts = [(-1, rng.integers(2, 6))] + [(t, n) for t in row for n in rng.integers(2, 6, size=1)]
            reply = np.concatenate([np.full(n, turn) for turn, n in parts])
            rng.normal()
            ids = rng.integers(4, 200, size=len(reply))
            samples.append(Sample(episode, ids, reply >= 0, np.zeros(len(reply)), reply, turns))
    drawn = learner(double=True).read(samples).logprob
    for sample, row in zip(samples, drawn, strict=True):
        sample.engine_logprob[:] = np.where(sample.reply_mask, row.numpy() + noise * rng.normal(size=len(sample)), 0)
    return samples


def earned(samples: list[Sample]) -> np.ndarray:
    """A credit for each row, the same in whatever order rows stand."""
    credits = [generator("credit", sample.ids.tolist()).normal() for sample in samples]
    return at_replies(samples, [np.full(len(sample), credit) for sample, credit in zip(samples, credits, strict=True)])


def learn(made: Learner, samples: list[Sample], step: int = 0, rate: float = 1.0, **given: Any) -> dict[str, Any]:
    """A step of learning from credit that the rows have by themselves."""
    advantage_T = given.pop("advantage_T", earned(samples))
    targets = HeadTargets(given.pop("targets_T", None), given.pop("outcome_E", None))
    return made.learn(made.read(samples), advantage_T, rate, (step,), targets, **given)


def weights(made: Learner) -> list[torch.Tensor]:
    return [p.detach().clone() for p in made.optimizer.trained]


def equal(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
