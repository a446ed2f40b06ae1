"""The learner: the updates of a step, from what its samples earned to the policy's weights and those of its heads.

``pre_update_pass.py`` says how a step is read, ``updates.py`` what follows, in one process or in several ranks
(``ranks/``), and ``policy_optimizer.py`` how gradients are applied. Left out on purpose: loss scaling (bfloat16 has
the range of float32).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.model.shard_files import WrittenShards
from manyturn.trainers.learn.heads.head_config import HeadConfig, ImplicitConfig
from manyturn.trainers.learn.heads.heads import (
    NO_TARGETS,
    HeadTargets,
    LearnerHead,
    ProgressHead,
    critics_of,
    head_tensors,
)
from manyturn.trainers.learn.heads.implicit_reward import ImplicitRewards
from manyturn.trainers.learn.heads.scalar_model import OwnBody
from manyturn.trainers.learn.heads.separate_critic import FixedEstimator
from manyturn.trainers.learn.learner.head_factory import head_of
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.single_process import PolicyLearning, SingleProcess
from manyturn.trainers.learn.objective.aggregate import Denominators
from manyturn.trainers.learn.objective.objective import ObjectiveConfig
from manyturn.trainers.learn.objective.regularizer_state import ObjectiveMemory
from manyturn.trainers.learn.passes.compiled_layers import CompiledLayers
from manyturn.trainers.learn.passes.forward import Place, Reader, Watch, recompute_activations
from manyturn.trainers.learn.passes.frozen_states import FrozenStates
from manyturn.trainers.learn.passes.parallel_passes import SMALL
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import Rows, Sample
from manyturn.trainers.learn.reading.pre_update_pass import StepReading
from manyturn.trainers.learn.reading.reference_policy import ReadsReference
from manyturn.trainers.learn.reading.update_inputs import BeforeUpdate, mismatch_of

Figures = dict[str, float | None]
Share = Callable[[Reader, Sequence[LearnerHead]], PolicyLearning]


class Learner:
    """Updates a language model.

    Args:
        language: the model; its weights are changed in place.
        config: optimiser settings.
        objective: the loss; an EPO schedule has its length set, see ``ObjectiveConfig.over``.
        temperature: sampling temperature of the rollouts; the ratio is only right at the same one.
        heads: what is learnt next to the policy, from its hidden states.
        share: what every rank learns with, where there are several; this is rank 0's learner then.
    """

    def __init__(
        self,
        language: LanguageModel,
        config: LearnerConfig,
        objective: ObjectiveConfig,
        temperature: float,
        heads: Sequence[HeadConfig | ImplicitConfig] = (),
        share: Share | None = None,
    ):
        self.model, self.config, self.objective = language.model, config, objective
        self.frozen: FrozenStates | None = None
        if config.states_bytes and share is None:
            self.frozen = FrozenStates(self.model, config.lowest_layer, config.states_bytes)
        self.budget = PassBudget(config.micro_tokens)
        compiled = CompiledLayers(self.model.get_decoder()) if config.compile else None
        self.reader = Reader(self.model, self.budget, temperature, config.packing, self.frozen, compiled)
        self.memory = ObjectiveMemory(objective)
        self.recomputes = False
        if config.gradient_checkpointing:
            self.recomputes = True
            recompute_activations(self.model)
        self.heads = [
            head_of(head, self.model, config, self.budget, self.frozen, temperature=temperature) for head in heads
        ]
        self._learning: PolicyLearning = (
            SingleProcess(self.model, self.reader, config, objective, self.heads)
            if share is None
            else share(self.reader, self.heads)
        )
        self.optimizer = self._learning.updates.optimizer

    @property
    def updates(self) -> int:
        """The number of updates of the weights."""
        return self.optimizer.updates

    def recompute(self) -> None:
        """From now on compute activations again in the backward pass, also those of critics of their own."""
        self.recomputes = True
        for model in (self.model, *(body.reader.model for body in self._bodies)):
            recompute_activations(model)

    def use_threads(self, threads: int) -> bool:
        """Make passes side by side, one in each thread, where that is faster and changes the gradient's rounding only.

        Returns:
            True if passes are made so from now on: of a small model on a CPU that learns alone, with plain passes.
        """
        model, config = self.model, self.config
        is_plain = not (self.heads or self.recomputes or config.compile or self.frozen or config.has_masters)
        is_small = sum(weights.numel() for weights in model.parameters()) <= SMALL
        if threads < 2 or model.device.type != "cpu" or not (is_plain and is_small):
            return False
        return self._learning.use_threads(threads)

    def begin_reinforcement(self) -> None:
        """The warm-up is over: forget the momentum, and copy the weights for what begins with them."""
        self._forget_states()
        self.put_together()
        for body in self._bodies:
            body.copy_policy()
        self._learning.begin_reinforcement()

    def put_together(self) -> None:
        """Have the model hold what was learnt, which several ranks hold in shards after an imitation."""
        self._learning.put_together()

    def release_cached(self) -> None:
        """Give back the memory of GPUs that is cached for the next pass, in every rank."""
        self._learning.release_cached()

    def _forget_states(self) -> None:
        """Drop the states: the next passes read other tokens."""
        if self.frozen is not None:
            self.frozen.forget()

    @property
    def _bodies(self) -> list[OwnBody]:
        return [head.fit for head in self.heads if isinstance(head.fit, OwnBody)]

    @property
    def estimator(self) -> FixedEstimator | None:
        """The head that is trained on exploration before reinforcement, if there is one."""
        return next((head for head in self.heads if isinstance(head, FixedEstimator)), None)

    @property
    def progress(self) -> FixedEstimator | ProgressHead | None:
        """The progress estimator, if there is one."""
        return next((head for head in self.heads if isinstance(head, FixedEstimator | ProgressHead)), None)

    @property
    def implicit(self) -> ImplicitRewards | None:
        """The second policy that rewards turns, if there is one."""
        return next((head for head in self.heads if isinstance(head, ImplicitRewards)), None)

    def read(self, samples: Sequence[Sample], places: Collection[Place] = ()) -> StepReading:
        """Read the samples of a step with policy, heads and reference, before its updates.

        Args:
            places: where hidden states are kept.
        """
        self._forget_states()
        self.put_together()
        self.budget.begin_step()
        shared, others = dict[str, Watch](), dict[str, Callable[[Sequence[Sample]], Rows]]()
        for head in self.heads:
            if isinstance(head.fit, OwnBody):
                others[head.name] = partial(head.fit.over, watch=head.watch)
            else:
                shared[head.name] = head.watch
        return StepReading(self._learning.reader(self.reader), samples, shared, places, self.reference, others)

    @property
    def reference(self) -> ReadsReference | None:
        """The reader with the weights of the reference policy, where the objective has one."""
        return self._learning.reference

    def learn(
        self,
        step: StepReading,
        advantage_T: np.ndarray,
        rate: float,
        key: tuple[Any, ...],
        targets: HeadTargets = NO_TARGETS,
        kept_E: np.ndarray | None = None,
    ) -> Figures:
        """The updates of one step.

        Args:
            step: what ``read`` returned of all branches of the step's episodes.
            advantage_T: credit of each token that was said.
            rate: share of the learning rate that the step learns at; see ``rate_share``.
            key: decides which episodes share a minibatch.
            targets: of the heads.
            kept_E: whether an episode is learnt from; None: all are.

        Returns:
            Means over the step's updates of what the objective measures.
        """
        config, samples = self.config, step.samples
        self.optimizer.begin_step(config.lr * rate)
        before, figures = BeforeUpdate.of(step, advantage_T, self.objective, config.old_logprobs)
        entropy_T = step.at_replies(step.entropy) if self.memory.needs_entropy else None
        now = self.memory.begin(entropy_T, step.at_replies([sample.reply for sample in samples]))
        figures |= self.memory.figures(now)
        for head in self.heads:
            figures.update(head.begin(step, targets))
        if step.is_made:
            figures = mismatch_of(samples, step.logprob) | figures
        step.close()
        means = self._learning.of_step(before, now, key, kept_E)
        self._forget_states()
        sequences = Denominators.of(*(self.objective.sequences(torch.from_numpy(s.reply))[None] for s in samples))
        self.memory.end(means.get("reference_kl"), sequences.sequences)
        return (
            means
            | figures
            | {
                "lr": self.optimizer.lr,
                "engine_gap": self._learning.updates.gap,
                "skipped_updates": self.optimizer.skipped,
            }
        )

    def learn_values(self, step: StepReading, targets: HeadTargets, key: tuple[Any, ...]) -> Figures:
        """A pass of the critic over the samples of a step; the policy stays as it is.

        Args:
            step: what ``read`` returned of all branches of the step's episodes.
            key: decides which episodes share a minibatch.

        Returns:
            Means of what the critic measures, and how much it explained before.
        """
        figures = dict[str, float | None]()
        for head in critics_of(self.heads):
            figures.update(head.begin(step, targets))
        step.close()
        means = self._learning.of_values(step.samples, key)
        self._forget_states()
        return means | figures

    def imitate(
        self,
        samples: Sequence[Sample],
        lr: float,
        observed: float = 0.0,
        between: Callable[[], None] = lambda: None,
    ) -> dict[str, float]:
        """One update towards saying what demonstrations say, without credit.

            loss = -sum over tokens of w log pi(token) / sum of w     w: 1 where the token was said, else ``observed``

        A reply that was chosen among whole commands is imitated among all of the vocabulary. That raises its share of
        the commands and the chance of a command alike: the policy can speak freely too, and no list has to be read.

        Args:
            lr: learning rate.
            observed: weight of a token that was not said; with 0 it is not read. The first token is never predicted.
            between: called in each micro-batch, or with several ranks before the first; what it raises ends the
                update, of which nothing is applied.

        Returns:
            The loss, and the norm of the gradient.
        """
        # A reply that is wrong on purpose is neither said nor the environment's: it weighs nothing.
        weights = [np.where(sample.reply_mask, 1.0, np.where(sample.reply < 0, observed, 0.0)) for sample in samples]
        samples = [replace(sample, commands={}) if sample.commands else sample for sample in samples]
        if observed:
            samples = [replace(sample, reply_mask=np.arange(len(sample)) > 0) for sample in samples]
        total_weight = sum(
            float(weight[sample.reply_mask].sum()) for sample, weight in zip(samples, weights, strict=True)
        )
        rows = [torch.from_numpy(weight) for weight in weights]
        return self._learning.imitate(samples, rows, total_weight, lr, between)

    def plain(self) -> dict[str, Any]:
        """JSON values that a resumed run must go on from."""
        less = {"micro_tokens": self.budget.tokens} if self.budget.tokens < self.config.micro_tokens else {}
        return {**self.optimizer.plain(), "objective": self.memory.plain(), **less}

    def load_plain(self, state: Mapping[str, Any]) -> None:
        """The inverse of ``plain``."""
        self.optimizer.load_plain(state)
        self.memory.load_plain(state["objective"])
        self.budget.tokens = min(self.budget.tokens, state.get("micro_tokens", self.budget.tokens))

    def tensors(self) -> dict[str, torch.Tensor]:
        """The optimiser's state, the reference weights and the heads, by name."""
        self.put_together()  # the model's own weights are saved with them
        return self._learning.tensors() | head_tensors(self.heads)

    def write_shards(self, folder: Path) -> WrittenShards | None:
        """Have every rank write its share of ``tensors`` into a folder, from a copy and in a thread of its own.

        Returns:
            What waits for them; None in one process, and where some rank cannot see the folder.
        """
        self.put_together()
        return self._learning.write_shards(folder, head_tensors(self.heads))

    def load_tensors(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``tensors``, after the model's weights were loaded."""
        self._learning.load(tensors)
        for head in self.heads:
            head.fit.load_tensors(tensors)
