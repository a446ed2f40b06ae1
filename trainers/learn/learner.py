"""The learner: log-probabilities of what was said, the objective's gradient, AdamW; and the heads beside the policy.

Left out on purpose: loss scaling (weights are float32, bfloat16 only inside autocast) and sharding over devices.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from manyturn.agents.language_model import LanguageModel
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.options import ConfigError
from manyturn.trainers.learn.aggregate import Denominators
from manyturn.trainers.learn.before_update import BeforeUpdate, corrected, mismatch_of, together
from manyturn.trainers.learn.belief import Questions, believed
from manyturn.trainers.learn.forward import Passed, Reader
from manyturn.trainers.learn.head_config import ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.heads import ProgressHead, ValueHead, explained, reply_ends
from manyturn.trainers.learn.kl import kl
from manyturn.trainers.learn.learner_config import LearnerConfig
from manyturn.trainers.learn.objective import ObjectiveConfig, RegulariserState, objective
from manyturn.trainers.learn.objective_memory import ObjectiveMemory
from manyturn.trainers.learn.optimizer_state import load_optimizer, optimizer_tensors
from manyturn.trainers.learn.samples import Rows, Sample, at_said, on_tokens


class LearningFailed(RuntimeError):
    """The loss or its gradient is not a number several times in a row."""


class Learner:
    """Updates a language model.

    Args:
        language: the model; its weights are changed in place.
        config: optimiser settings.
        objective: the loss.
        temperature: sampling temperature of the rollouts; the ratio is only right at the same one.
        value: a critic, for advantages that need values.
        progress: an estimator of what turns contribute to the outcome.
    """

    def __init__(
        self,
        language: LanguageModel,
        config: LearnerConfig,
        objective: ObjectiveConfig,
        temperature: float,
        value: ValueHeadConfig | None = None,
        progress: ProgressHeadConfig | None = None,
    ):
        if (objective.correction or objective.reject) and config.old_logprobs == "engine":
            raise ConfigError(
                "objective.correction and objective.reject compare the engine with the learner, which "
                "learner.old_logprobs = 'engine' takes for the same: set it to 'learner', or leave them out"
            )
        self.model, self.config, self.objective = language.model, config, objective
        self._temperature, self._reader = temperature or 1.0, Reader(language.model, config.micro_tokens)
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=config.lr, weight_decay=config.weight_decay)
        width, like = self.model.config.get_text_config().hidden_size, self.model.get_output_embeddings().weight
        self.value = ValueHead(value, width, like) if value else None
        self.progress = ProgressHead(progress, width, like) if progress else None
        self.memory = ObjectiveMemory(objective)
        self.updates = self._bad_in_a_row = self._skipped = 0
        self._gap: float | None = None
        self.reference: list[torch.Tensor] | None = None
        if config.gradient_checkpointing:
            self._save_memory()

    def _save_memory(self) -> None:
        self.model.gradient_checkpointing_enable({"use_reentrant": False})
        # Checkpointing works in training mode only; dropout, which that mode would bring, is taken out.
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0
        self.model.train()

    def imitate(self, samples: Sequence[Sample], lr: float) -> dict[str, float]:
        """One update towards saying what the samples say; the mean is over said tokens, weighed by their advantage."""
        weights = sum(float(sample.advantage[sample.said].sum()) for sample in samples)
        self._set_rate(lr)
        total = 0.0
        for _, batch in self._reader.batches(samples, range(len(samples))):
            loss = -(self._reader.read(batch, 1.0).logprob * batch.said * batch.advantage).sum() / weights
            loss.backward()
            total += loss.item()
        return {"loss": total, "grad_norm": self._apply()}

    def learn(
        self,
        samples: Sequence[Sample],
        share_done: float,
        key: tuple[Any, ...],
        targets_T: np.ndarray | None = None,
        outcome_E: np.ndarray | None = None,
    ) -> dict[str, float | None]:
        """The updates of one step.

        Args:
            samples: all branches of the step's episodes.
            share_done: share of the run that is over, for the learning rate.
            key: decides which episodes share a minibatch.
            targets_T: what the critic is to predict at each token that was said, NaN where nothing; with a critic only.
            outcome_E: outcome of each episode, NaN if unscorable; with a progress estimator only.

        Returns:
            Means over the step's updates of what the objective measures.
        """
        config = self.config
        if (targets_T is None) != (self.value is None) or (outcome_E is None) != (self.progress is None):
            raise ValueError("a critic learns from targets_T, a progress estimator from outcome_E: give what there is")
        self._set_rate(config.lr * (1 - (1 - config.lr_end) * share_done))
        fixed, now, figures = self._begin(samples, targets_T)
        episodes = sorted({sample.episode for sample in samples})
        gathered: dict[str, list[float]] = defaultdict(list)
        self._gap, self._skipped = None, 0
        for epoch in range(config.epochs):
            order = generator("minibatches", *key, epoch).permutation(len(episodes))
            for start in range(0, len(order), config.minibatch):
                chosen = {episodes[i] for i in order[start : start + config.minibatch]}
                indices = [i for i, sample in enumerate(samples) if sample.episode in chosen]
                for name, value in self._update(samples, indices, fixed, now, outcome_E).items():
                    gathered[name].append(value)
        for head in self._heads:
            head.fit.finish()
        means = {name: sum(values) / len(values) for name, values in gathered.items()}
        sequences = Denominators.of(*(self.objective.sequences(torch.from_numpy(s.reply))[None] for s in samples))
        self.memory.end(means.get("reference_kl"), sequences.sequences)
        return means | figures | {"lr": self._rate, "engine_gap": self._gap, "skipped_updates": self._skipped}

    def _begin(
        self, samples: Sequence[Sample], targets_T: np.ndarray | None
    ) -> tuple[BeforeUpdate, RegulariserState, dict[str, float | None]]:
        """What stays fixed during the step's updates, and figures on it."""
        old = [torch.from_numpy(sample.engine_logprob).float() for sample in samples]
        kept, weight, before = [torch.from_numpy(sample.said) for sample in samples], None, None
        figures: dict[str, float | None] = {}
        if self.config.old_logprobs == "learner" or self.objective.epo or self.value:
            before = self._pass(samples)
        if before:
            figures |= mismatch_of(samples, before.logprob)
        if before and self.config.old_logprobs == "learner":
            old = before.logprob
            weight, kept, measured = corrected(self.objective, samples, old)
            figures |= measured
        turn_N = at_said(samples, [sample.reply for sample in samples])
        now = self.memory.begin(at_said(samples, before.entropy) if before else None, turn_N)
        figures |= self.memory.figures(now)
        target, value = None, before.value if before else None
        if targets_T is not None and value is not None:
            target = on_tokens(samples, targets_T, elsewhere=float("nan"))
            figures["value_explained"] = explained(at_said(samples, value), targets_T)
        return BeforeUpdate(old, kept, self._reference_rows(samples), weight, value, target), now, figures

    def _update(
        self,
        samples: Sequence[Sample],
        indices: Sequence[int],
        fixed: BeforeUpdate,
        now: RegulariserState,
        outcome_E: np.ndarray | None,
    ) -> dict[str, float]:
        """One gradient over a minibatch, accumulated over micro-batches with the minibatch's denominators."""
        replies = [self.objective.sequences(row)[None] for row in fixed.replies(samples, indices)]
        if not any((row >= 0).any() for row in replies):
            return {}  # every token was rejected
        counts = Denominators.of(*replies, episodes=len({samples[i].episode for i in indices}))
        with_target = 0 if fixed.target is None else sum(int(fixed.target[i].isfinite().sum()) for i in indices)
        sums: dict[str, float] = defaultdict(float)
        ends: list[torch.Tensor] = []
        owners: list[int] = []
        for chosen, batch in self._reader.batches(samples, indices):
            reading = self._reader.read(batch, self._temperature)
            if self._gap is None:
                gap = (reading.logprob.detach() - batch.engine_logprob).masked_fill(~batch.said, 0).abs()
                self._gap = float(gap.max())
            loss, measured = objective(self.objective, fixed.tokens(chosen, batch, reading), counts, now)
            if self.value and fixed.value is not None and fixed.target is not None:
                old, target = together(fixed.value, chosen, batch), together(fixed.target, chosen, batch, float("nan"))
                value_loss, more = self.value.loss(reading.hidden, old, target, with_target)
                loss, measured = loss + value_loss, measured | more
            loss.backward()
            for name, value in measured.items():
                sums[name] += float(value)
            if self.progress:
                rows, columns = reply_ends(batch.reply)
                ends.append(reading.hidden[rows, columns].detach())
                owners += [samples[chosen[row]].episode for row in rows.tolist()]
        sums["grad_norm"] = self._apply()
        if self.value:
            self.value.fit.apply(self.config.max_grad_norm)
        if self.progress and outcome_E is not None:
            limit = self.config.max_grad_norm
            found = self.progress.learn(torch.cat(ends), np.array(owners), outcome_E, limit)
            sums |= {} if found is None else {"progress_loss": found}
        return dict(sums)

    def values(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """The critic's value before each token that was said, one array for each sample; no gradient.

        Joined, they are a batch's token column "value".
        """
        rows = self._pass(samples).value
        assert rows is not None, "there is no critic"
        return [row.double().numpy()[sample.said] for row, sample in zip(rows, samples, strict=True)]

    @torch.no_grad()
    def contributions(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """What each turn contributes to the outcome, one array over replies for each sample; no gradient.

        Joined, they are a column over a batch's turns, if every reply has a token.
        """
        assert self.progress is not None, "there is no progress estimator"
        found: list[np.ndarray] = [np.empty(0)] * len(samples)
        for group, batch in self._reader.batches(samples, range(len(samples))):
            rows, columns = reply_ends(batch.reply)
            states = self._reader.read(batch, self._temperature).hidden[rows, columns]
            value_R, row_R = self.progress.fit.predict(states).double().cpu().numpy(), rows.cpu().numpy()
            for row, i in enumerate(group):
                found[i] = value_R[row_R == row]
        return found

    def beliefs(self, rows: Sequence[Questions]) -> list[np.ndarray]:
        """The probability of the true answer at each question, one array for each row; no gradient."""
        return believed(self.model, rows, self._temperature, self.config.micro_tokens)

    def logprobs(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """Log-probability now of each token that was said, one array for each sample; no gradient."""
        rows = self._pass(samples).logprob
        return [row.double().numpy()[sample.said] for row, sample in zip(rows, samples, strict=True)]

    def kl_costs(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """Divergence from the reference of each token that was said, times its present weight, one array a sample.

        With ``kl.place = "reward"`` this is what an advantage over tokens has to take from their rewards.
        """
        assert self.objective.kl is not None and self.memory.kl_coef is not None, "the objective has no kl term"
        old, reference = self._pass(samples).logprob, self._reference_rows(samples)
        assert reference is not None
        costs = [
            self.memory.kl_coef * kl(ours, theirs, self.objective.kl.estimator)
            for ours, theirs in zip(old, reference, strict=True)
        ]
        return [cost.double().numpy()[sample.said] for cost, sample in zip(costs, samples, strict=True)]

    def _pass(self, samples: Sequence[Sample]) -> Passed:
        return self._reader.over(samples, self._temperature, self.value)

    def _reference_rows(self, samples: Sequence[Sample]) -> Rows | None:
        """Log-probabilities under the reference policy, where the objective has one."""
        if not self.objective.kl:
            return None
        with self._as_reference():
            return self._pass(samples).logprob

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

    def begin_reinforcement(self) -> None:
        """The warm-up is over: forget the momentum, and keep the weights as the reference if one is needed."""
        self.optimizer.state.clear()
        if self.objective.kl:
            self.reference = [p.detach().clone() for p in self.trained]

    def plain(self) -> dict[str, Any]:
        """JSON values that a resumed run must go on from."""
        return {"updates": self.updates, "bad_in_a_row": self._bad_in_a_row, "objective": self.memory.plain()}

    def load_plain(self, state: Mapping[str, Any]) -> None:
        """Undo ``plain``."""
        self.updates, self._bad_in_a_row = state["updates"], state["bad_in_a_row"]
        self.memory.load_plain(state["objective"])

    def tensors(self) -> dict[str, torch.Tensor]:
        """The optimiser's state, the reference weights and the heads, by name."""
        found = optimizer_tensors("optimizer", self.optimizer, self.trained)
        for number, weights in enumerate(self.reference or ()):
            found[f"reference.{number}"] = weights.contiguous()
        for head in self._heads:
            found |= head.fit.tensors()
        return found

    def load_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Undo ``tensors``."""
        self.begin_reinforcement()
        load_optimizer("optimizer", self.optimizer, self.trained, tensors)
        if self.reference:
            self.reference = [tensors[f"reference.{n}"].to(p.device) for n, p in enumerate(self.trained)]
        for head in self._heads:
            head.fit.load_tensors(tensors)

    @property
    def _heads(self) -> list[ValueHead | ProgressHead]:
        return [head for head in (self.value, self.progress) if head]
