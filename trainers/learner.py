"""The learner: log-probabilities of what was said, the objective's gradient, AdamW.

Left out on purpose: loss scaling (weights are float32, bfloat16 only inside autocast) and sharding over devices.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from manyturn.agents.models import LanguageModel
from manyturn.envs.keys import generator
from manyturn.trainers.config import LearnerConfig
from manyturn.trainers.objectives.aggregate import Denominators
from manyturn.trainers.objectives.objective import ObjectiveConfig, objective
from manyturn.trainers.samples import Padded, Sample, micro_batches

_LOGITS_AT_ONCE = 2**27  # floats; more positions than this allows are computed in pieces and recomputed backwards


class LearningFailed(RuntimeError):
    """The loss or its gradient is not a number several times in a row."""


def said_logprobs(model: PreTrainedModel, batch: Padded, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy of each said token, at the sampling temperature.

    The output head is applied where something was said and nowhere else.

    Returns:
        Two (B, T) tensors, 0 where nothing was said; natural logarithms.
    """
    hidden = model.get_decoder()(input_ids=batch.ids, use_cache=False).last_hidden_state
    rows, columns = batch.said.nonzero(as_tuple=True)
    states, targets = hidden[rows, columns - 1], batch.ids[rows, columns]
    head = model.get_output_embeddings()

    def piece(states: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.log_softmax(head(states).float() / temperature, -1)
        return scores.gather(-1, targets[:, None])[:, 0], -(scores.exp() * scores).sum(-1)

    size = max(1, _LOGITS_AT_ONCE // head.weight.shape[0])
    if len(states) <= size:
        logprob, entropy = piece(states, targets)
    else:
        pieces = [
            checkpoint(piece, states[i : i + size], targets[i : i + size], use_reentrant=False)
            for i in range(0, len(states), size)
        ]
        logprob, entropy = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    shape = batch.ids.shape
    place = (rows, columns)
    return (
        torch.zeros(shape, device=hidden.device).index_put(place, logprob.float()),
        torch.zeros(shape, device=hidden.device).index_put(place, entropy.float()),
    )


class Learner:
    """Updates a language model.

    Args:
        language: the model; its weights are changed in place.
        config: optimiser settings.
        objective: the loss.
        temperature: sampling temperature of the rollouts; the ratio is only right at the same one.
    """

    def __init__(self, language: LanguageModel, config: LearnerConfig, objective: ObjectiveConfig, temperature: float):
        self.model, self.config, self.objective = language.model, config, objective
        self._temperature = temperature or 1.0
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=config.lr, weight_decay=config.weight_decay)
        self.updates = self._bad_in_a_row = self._skipped = 0
        self._gap: float | None = None
        self.reference: list[torch.Tensor] | None = None
        if config.gradient_checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
            # Checkpointing works in training mode only; dropout, which that mode would bring, is taken out.
            for module in self.model.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
                if hasattr(module, "attention_dropout"):
                    module.attention_dropout = 0.0
            self.model.train()

    def imitate(self, samples: Sequence[Sample], lr: float) -> dict[str, float]:
        """One update towards saying what the samples say; the mean is over said tokens."""
        tokens = sum(int(sample.said.sum()) for sample in samples)
        self._set_rate(lr)
        total = 0.0
        for group in micro_batches(samples, self.config.micro_tokens):
            batch = Padded.of([samples[i] for i in group], self.model.device)
            with self._autocast():
                logprob, _ = said_logprobs(self.model, batch, 1.0)
            loss = -(logprob * batch.said).sum() / tokens
            loss.backward()
            total += loss.item()
        return {"loss": total, "grad_norm": self._apply()}

    def learn(self, samples: Sequence[Sample], share_done: float, key: tuple[Any, ...]) -> dict[str, float]:
        """The updates of one step.

        Args:
            samples: all branches of the step's episodes.
            share_done: share of the run that is over, for the learning rate.
            key: decides which episodes share a minibatch.

        Returns:
            Means over the step's updates of what the objective measures.
        """
        config = self.config
        self._set_rate(config.lr * (1 - (1 - config.lr_end) * share_done))
        old, reference = self._fixed_logprobs(samples)
        episodes = sorted({sample.episode for sample in samples})
        gathered: dict[str, list[float]] = defaultdict(list)
        self._gap, self._skipped = None, 0
        for epoch in range(config.epochs):
            order = generator("minibatches", *key, epoch).permutation(len(episodes))
            for start in range(0, len(order), config.minibatch):
                chosen = {episodes[i] for i in order[start : start + config.minibatch]}
                indices = [i for i, sample in enumerate(samples) if sample.episode in chosen]
                for name, value in self._update(samples, indices, old, reference).items():
                    gathered[name].append(value)
        means = {name: sum(values) / len(values) for name, values in gathered.items()}
        return means | {"lr": self._rate, "engine_gap": self._gap, "skipped_updates": self._skipped}

    def _update(
        self,
        samples: Sequence[Sample],
        indices: list[int],
        old: list[torch.Tensor],
        reference: list[torch.Tensor] | None,
    ) -> dict[str, float]:
        """One gradient over a minibatch, accumulated over micro-batches with the minibatch's denominators."""
        chosen = [samples[i] for i in indices]
        denominators = Denominators(
            sum(int(sample.said.sum()) for sample in chosen), sum(bool(sample.said.any()) for sample in chosen)
        )
        sums: dict[str, float] = defaultdict(float)
        for group in micro_batches(chosen, self.config.micro_tokens):
            batch = Padded.of([chosen[i] for i in group], self.model.device)
            rows = [indices[i] for i in group]
            with self._autocast():
                logprob, entropy = said_logprobs(self.model, batch, self._temperature)
            if self._gap is None:
                gap = (logprob.detach() - batch.engine_logprob).masked_fill(~batch.said, 0).abs()
                self._gap = float(gap.max())
            loss, measured = objective(
                self.objective,
                logprob,
                _rows(old, rows, batch),
                batch.advantage,
                batch.said,
                denominators,
                None if reference is None else _rows(reference, rows, batch),
                entropy,
            )
            loss.backward()
            for name, value in measured.items():
                sums[name] += float(value)
        return dict(sums) | {"grad_norm": self._apply()}

    @torch.no_grad()
    def _fixed_logprobs(self, samples: Sequence[Sample]) -> tuple[list[torch.Tensor], list[torch.Tensor] | None]:
        """Log-probabilities before the step's updates, of the policy and of the reference, one (T,) row a sample."""
        engine = [torch.from_numpy(sample.engine_logprob).float() for sample in samples]
        old = engine if self.config.old_logprobs == "engine" else self._all_logprobs(samples)
        if not self.objective.kl:
            return old, None
        with self._as_reference():
            return old, self._all_logprobs(samples)

    @torch.no_grad()
    def _all_logprobs(self, samples: Sequence[Sample]) -> list[torch.Tensor]:
        rows: list[torch.Tensor] = [torch.empty(0)] * len(samples)
        for group in micro_batches(samples, self.config.micro_tokens):
            batch = Padded.of([samples[i] for i in group], self.model.device)
            with self._autocast():
                logprob, _ = said_logprobs(self.model, batch, self._temperature)
            for row, i in enumerate(group):
                rows[i] = logprob[row, : len(samples[i])].cpu()
        return rows

    @contextlib.contextmanager
    def _as_reference(self) -> Iterator[None]:
        """The model with the weights it had when reinforcement learning began."""
        assert self.reference is not None, "begin_reinforcement() sets the reference"
        now = [p.detach().clone() for p in self.trained]
        self._set_weights(self.reference)
        try:
            yield
        finally:
            self._set_weights(now)

    @torch.no_grad()
    def _set_weights(self, values: Sequence[torch.Tensor]) -> None:
        for parameter, value in zip(self.trained, values, strict=True):
            parameter.copy_(value)

    def _apply(self) -> float:
        """Clip and apply the accumulated gradient; one that is not finite is dropped."""
        norm = torch.nn.utils.clip_grad_norm_(self.trained, self.config.max_grad_norm)
        if torch.isfinite(norm):
            self.optimizer.step()
            self.updates += 1
            self._bad_in_a_row = 0
        else:
            self._bad_in_a_row += 1
            self._skipped += 1
        self.optimizer.zero_grad(set_to_none=True)
        if self._bad_in_a_row == 3:
            raise LearningFailed(
                "three gradients in a row were not finite, so the run stops at its last checkpoint: begin another run "
                "with a lower learner.lr or learner.max_grad_norm (metrics.jsonl and turns/ hold the steps before)"
            )
        return float(norm)

    def _set_rate(self, lr: float) -> None:
        self._rate = lr
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        return torch.autocast("cuda", torch.bfloat16) if self.model.device.type == "cuda" else contextlib.nullcontext()

    def begin_reinforcement(self) -> None:
        """The warm-up is over: forget the momentum, and keep the weights as the reference if one is needed."""
        self.optimizer.state.clear()
        if self.objective.kl:
            self.reference = [p.detach().clone() for p in self.trained]

    def counts(self) -> dict[str, int]:
        """What a resumed run must count on from."""
        return {"updates": self.updates, "bad_in_a_row": self._bad_in_a_row}

    def load_counts(self, counts: Mapping[str, int]) -> None:
        """Undo ``counts``."""
        self.updates, self._bad_in_a_row = counts["updates"], counts["bad_in_a_row"]

    def tensors(self) -> dict[str, torch.Tensor]:
        """The optimiser's state and the reference weights, by name."""
        found = {}
        for number, parameter in enumerate(self.trained):
            for name, value in self.optimizer.state.get(parameter, {}).items():
                found[f"optimizer.{number}.{name}"] = value.detach().clone().contiguous()
            if self.reference is not None:
                found[f"reference.{number}"] = self.reference[number].contiguous()
        return found

    def load_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Undo ``tensors``."""
        self.begin_reinforcement()
        for name, value in tensors.items():
            kind, number, *field = name.split(".")
            parameter = self.trained[int(number)]
            if kind == "reference":
                assert self.reference is not None, "the checkpoint is of a run with another objective"
                self.reference[int(number)] = value.to(parameter.device)
            else:
                # AdamW counts its steps on the CPU, wherever the weights are.
                on_cpu = field == ["step"]
                self.optimizer.state[parameter][field[0]] = value if on_cpu else value.to(parameter.device)


def _rows(values: Sequence[torch.Tensor], rows: Sequence[int], batch: Padded) -> torch.Tensor:
    out = torch.zeros(batch.ids.shape, device=batch.ids.device)
    for place, row in enumerate(rows):
        out[place, : len(values[row])] = values[row].to(out.device)
    return out
