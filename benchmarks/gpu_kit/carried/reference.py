"""Numbers that the CPU computes in float64 beforehand, so that a GPU's minutes are not spent on them.

Of each gradient a sample of its entries is kept, drawn by the weight's name. Weights depend on their names only, and
their hash is kept too: numbers of other weights are refused.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel

from benchmarks.gpu_kit.random_models import fill, random_model
from benchmarks.kit.conversations import conversations
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.model.model_internals import move
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.forward import Reader, Reading, read
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.learn.passes.trie.packing import Packing

SPREAD = 0.05  # of the weights, so that probabilities differ from each other
_ENTRIES = 1024  # of a gradient
_ROWS = 4
Numbers = dict[str, np.ndarray]


def shape_of(toy: bool) -> str:
    return "toy" if toy else "smollm2-135m"


def file_of(carried: Path, toy: bool) -> Path:
    """File of the numbers."""
    return carried / f"reference-{shape_of(toy)}.npz"


def subject(toy: bool) -> tuple[PreTrainedModel, list[Sample]]:
    """The model on the CPU in float32, and the rows that it reads; two and two of these begin alike."""
    model = random_model(shape_of(toy), torch.device("cpu"))
    fill(model, SPREAD)
    rows = conversations(_ROWS, 24 if toy else 256, model.config.vocab_size)
    for row, other in zip(rows[::2], rows[1::2], strict=True):
        other.ids[: len(other) // 2] = row.ids[: len(row) // 2]
    return model, rows


def write(carried: Path, toy: bool) -> Path:
    """Compute the numbers and keep them; returns the file."""
    model, rows = subject(toy)
    numbers: Numbers = {"weights": np.array(_hash(model))}
    move(model, torch.float64)
    numbers |= measured(model, rows, "padding")
    numbers |= {f"update.{name}": np.array(value) for name, value in updated(model, rows).items()}
    path = file_of(carried, toy)
    carried.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **numbers)  # type: ignore[arg-type]  # names of arrays, not of options
    return path


def load(carried: Path, toy: bool) -> tuple[PreTrainedModel, list[Sample], Numbers]:
    """The model, its rows, and the numbers.

    Raises:
        FileNotFoundError, ValueError: there are none, or they are of other weights.
    """
    path = file_of(carried, toy)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: run python benchmarks/gpu.py pack, and carry its folder along")
    with np.load(path, allow_pickle=False) as file:
        numbers = dict(file)
    model, rows = subject(toy)
    if (ours := _hash(model)) != str(numbers["weights"]):
        raise ValueError(f"{path} is of weights {numbers['weights']}, and these are {ours}: pack again")
    return model, rows, numbers


def measured(model: PreTrainedModel, rows: list[Sample], packing: Packing) -> Numbers:
    """Log-probabilities and entropies of what was said, and entries of the gradients of a loss of both."""
    reading = _read(model, rows, packing)
    weight = torch.linspace(-1, 1, int(reading.reply_mask.sum()), dtype=torch.float64).to(reading.logprob)
    loss = (weight * reading.logprob[reading.reply_mask]).mean() - 0.1 * reading.entropy[reading.reply_mask].mean()
    loss.backward()
    numbers = {name: _float64(getattr(reading, name)[reading.reply_mask]) for name in ("logprob", "entropy")}
    for name, weights in model.named_parameters():
        assert weights.grad is not None, f"no gradient reaches {name}"
        numbers[f"gradient.{name}"] = _float64(weights.grad.flatten()[_places(name, weights.numel())])
        weights.grad = None
    return numbers


def _read(model: PreTrainedModel, rows: list[Sample], packing: Packing) -> Reading:
    budget = PassBudget(10**6)
    Reader(model, budget, 0.8, packing)  # which has the model attend along a tree, where there is one
    return read(model, rows, 0.8, packing)


def _places(name: str, numel: int) -> torch.Tensor:
    places = generator("gpu reference", name).integers(0, numel, min(_ENTRIES, numel))
    return torch.from_numpy(places)


def updated(model: PreTrainedModel, rows: list[Sample]) -> dict[str, float]:
    """Figures of a learner's two updates; changes the model."""
    config = LearnerConfig(lr=1e-4, minibatch=2, micro_tokens=512)
    learner = Learner(LanguageModel(model, None, None), config, ClipConfig(), 1.0)  # type: ignore[arg-type]  # no text
    tokens = int(sum(row.reply_mask.sum() for row in rows))
    means = learner.learn(learner.read(rows), np.linspace(-1, 1, tokens), 1.0, (0,))
    return {name: float(means[name] or 0.0) for name in ("grad_norm", "entropy")}


def distance(ours: Mapping[str, np.ndarray], theirs: Numbers) -> dict[str, float]:
    """Relative distances of log-probabilities, entropies, all gradients, and of the gradient that is furthest off."""
    names = [name for name in ours if name.startswith("gradient.")]
    both = {name: (ours[name], theirs[name]) for name in ours}
    both["gradient"] = tuple(np.concatenate([side[name] for name in names]) for side in (ours, theirs))  # type: ignore[assignment]
    apart = {name: float(np.linalg.norm(a - b) / np.linalg.norm(b)) for name, (a, b) in both.items()}
    worst = max(names, key=lambda name: apart[name])
    distances = {name: apart[name] for name in ("logprob", "entropy", "gradient")}
    return distances | {"worst_gradient": apart[worst]}


def _float64(values: torch.Tensor) -> np.ndarray:
    return values.detach().to("cpu", torch.float64).numpy()


def _hash(model: torch.nn.Module) -> str:
    state = hashlib.blake2b(digest_size=8)
    for name, weights in model.named_parameters():
        state.update(name.encode())
        state.update(weights.detach().contiguous().view(-1).view(torch.uint8).numpy())
    return state.hexdigest()
