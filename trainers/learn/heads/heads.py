"""Heads on the policy's last hidden states: a critic of tokens, and an estimator of what each turn contributes.

    value      V_l from the hidden state before token l, out of which the token is drawn
               loss = mean over tokens of max((V - R)^2, (clamp(V, V_old - clip, V_old + clip) - R)^2) / 2
    progress   c_t from the hidden state at the last token of turn t's reply
               loss = mean over episodes of (sum over turns of c_t - outcome)^2

Source: PPO's value loss as in verl (``compute_value_loss``); the estimator of stepwise progress attribution, arXiv
2505.20732. Numbers agree with verl's loss and with the forward pass of the authors' code. There the estimator is a
model of its own, trained before reinforcement (``separate_critic.py``); here it reads what the policy computes anyway,
and is trained along with it.

``head_fits.py`` says how the weights come about; least squares minimises the same sums without clip.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
import torch

from manyturn.trainers.learn.heads.head_config import ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.heads.head_fits import GradientFit, JoinedRanks, LeastSquaresFit, fit_of, with_one
from manyturn.trainers.learn.heads.progress_estimate import ProgressEstimate, sums_estimate
from manyturn.trainers.learn.passes.forward import Place, Reading, by_row
from manyturn.trainers.learn.passes.gradient_passes import Measured
from manyturn.trainers.learn.passes.samples import Rows, Sample, on_replies, padded
from manyturn.trainers.learn.reading.pre_update_pass import StepReading

if TYPE_CHECKING:
    from manyturn.trainers.learn.heads.scalar_model import OwnBody

Figures = Mapping[str, float | None]


class HeadTargets(NamedTuple):
    """The targets of heads in a step.

    Attributes:
        value_T: target of the value at each token that the policy said, NaN where unknown; None without values.
        outcome_E: outcome of each episode, NaN if it is unscorable.
        group_E: number of the task group of each episode.
    """

    value_T: np.ndarray | None = None
    outcome_E: np.ndarray | None = None
    group_E: np.ndarray | None = None


NO_TARGETS = HeadTargets()


class LearnerHead(Protocol):
    """The life of a head in a learner, in this order."""

    name: str

    @property
    def fit(self) -> "GradientFit | LeastSquaresFit | OwnBody":
        """Its weights."""
        ...

    def watch(self, reading: Reading) -> Iterable[torch.Tensor]:
        """The head's output for each row of a pass; no gradient is needed."""
        ...

    def begin(self, step: StepReading, targets: HeadTargets) -> Figures:
        """Before a step's updates: what it is to learn, and figures on what it knows already.

        Raises:
            ValueError: what this head learns from is not there.
        """
        ...

    def loss(self, minibatch: Sequence[int], chosen: Sequence[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
        """A micro-batch's share of its loss, through which gradients go, and of its figures.

        Args:
            minibatch: numbers of the samples of the update.
            chosen: those of the micro-batch, row by row.
        """
        ...

    def update(self, max_norm: float) -> Figures:
        """After an update's gradients, each fit's own scaled down to ``max_norm``."""
        ...

    def drop(self) -> None:
        """Forget the micro-batches since the last update."""
        ...


class SharedHead(LearnerHead, Protocol):
    """A head that several ranks can learn together, each from its own passes."""

    @property
    def given(self) -> dict[str, Rows]:
        """The rows that ``begin`` computed, for the other ranks."""
        ...

    def take(self, samples: Sequence[Sample], rows: Mapping[str, Rows]) -> None:
        """Stand where ``begin`` has led to in another rank."""
        ...

    def join(self, ranks: JoinedRanks) -> None:
        """Before ``update``: what the passes of all ranks have found is everyone's."""
        ...


class ValueHead:
    """The critic.

    Args:
        width: D, numbers in a hidden state.
        like: a tensor of the model, for device and type.
    """

    name = "value"
    fit: "GradientFit | LeastSquaresFit | OwnBody"

    def __init__(self, config: ValueHeadConfig, width: int, like: torch.Tensor):
        self.fit, self._share = fit_of(self.name, config, width, like), config.into_policy
        self._clip = None if config.fit == "least_squares" else config.clip

    def watch(self, reading: Reading) -> torch.Tensor:
        """The value before each token (B, T); 0 before the first, which is not drawn."""
        return reading.before_each(self._value)

    def _value(self, hidden: torch.Tensor) -> torch.Tensor:
        states = hidden.detach()
        if self._share:
            states = states + self._share * (hidden - states)
        return self.fit.predict(states)

    def begin(self, step: StepReading, targets: HeadTargets) -> Figures:
        if targets.value_T is None:
            raise ValueError(
                "a critic learns from the targets of values, and the advantage gives none: leave [value] out"
            )
        self._before = step.head_values(self.name)
        self._target = on_replies(step.samples, targets.value_T, elsewhere=float("nan"))
        return {"value_explained": explained(step.at_replies(self._before), targets.value_T)}

    def loss(self, minibatch: Sequence[int], chosen: Sequence[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
        before_BT = padded([self._before[i] for i in chosen]).to(reading.reply_mask.device)
        target_BT = padded([self._target[i] for i in chosen], float("nan")).to(reading.reply_mask.device)
        known_BT = target_BT.isfinite()
        tokens = max(sum(int(self._target[i].isfinite().sum()) for i in minibatch), 1)
        value, before, target = (x[known_BT] for x in (self.watch(reading), before_BT, target_BT))
        if isinstance(self.fit, LeastSquaresFit):
            row, column = known_BT.nonzero(as_tuple=True)
            self.fit.add(with_one(reading.hidden_at(row, column - 1)), target)
        loss, clipped = value_loss(value, before, target, self._clip)
        mean = loss.sum() / tokens
        return mean, {"value_loss": mean.detach(), "value_clip_fraction": clipped.sum() / tokens}

    @property
    def given(self) -> dict[str, Rows]:
        return {"before": self._before, "target": self._target}

    def take(self, samples: Sequence[Sample], rows: Mapping[str, Rows]) -> None:
        self._before, self._target = rows["before"], rows["target"]

    def join(self, ranks: JoinedRanks) -> None:
        self.fit.join(ranks)

    def update(self, max_norm: float) -> Figures:
        self.fit.apply(max_norm)
        return {}

    def drop(self) -> None:
        self.fit.drop()


class ProgressHead:
    """The progress estimator.

    Args:
        width: D, numbers in a hidden state.
        like: a tensor of the model, for device and type.
    """

    name = "progress"

    def __init__(self, config: ProgressHeadConfig, width: int, like: torch.Tensor):
        self.config, self.fit = config, fit_of(self.name, config, width, like)
        self._no_states = like.new_empty(0, width)

    def watch(self, reading: Reading) -> list[torch.Tensor]:
        """The contribution of each reply to the outcome: one number for each reply of a row."""
        return contributions(self.fit, reading)

    def estimate(self, samples: Sequence[Sample], rows: Rows, episodes: int) -> ProgressEstimate:
        """The estimate of the episodes that these samples are of, from what ``watch`` returned of each."""
        return sums_estimate(samples, rows, episodes)

    def begin(self, step: StepReading, targets: HeadTargets) -> Figures:
        if targets.outcome_E is None:
            raise ValueError("a progress estimator learns from outcomes: give the outcome of each episode")
        self._outcome_E, self._episode = targets.outcome_E, [sample.episode for sample in step.samples]
        self._seen: list[tuple[torch.Tensor, np.ndarray]] = []
        return {}

    def loss(self, minibatch: Sequence[int], chosen: Sequence[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
        """Nothing yet: an episode's turns may be in several micro-batches."""
        row_S, column_S = reading.at("reply_ends")
        owner_S = np.array([self._episode[chosen[row]] for row in row_S.tolist()], np.int64)
        self._seen.append((reading.hidden_at(row_S, column_S).detach(), owner_S))
        return reading.logprob.new_zeros(()), {}

    @property
    def given(self) -> dict[str, Rows]:
        return {"outcome": [torch.from_numpy(self._outcome_E)]}

    def take(self, samples: Sequence[Sample], rows: Mapping[str, Rows]) -> None:
        self._outcome_E, self._episode = rows["outcome"][0].numpy(), [sample.episode for sample in samples]
        self._seen = []

    def join(self, ranks: JoinedRanks) -> None:
        """Each rank gets all states, and learns the same from them."""
        states = [states for states, _ in self._seen] or [self._no_states]
        owners = [torch.from_numpy(owner_S) for _, owner_S in self._seen] or [torch.empty(0, dtype=torch.int64)]
        joined, owner_S = ranks.of([torch.cat(states), torch.cat(owners)])
        self._seen = [(joined, owner_S.numpy())]

    def update(self, max_norm: float) -> Figures:
        states, owners = zip(*self._seen, strict=True)
        self._seen = []
        loss = self.learn(torch.cat(states), np.concatenate(owners), self._outcome_E, max_norm)
        return {} if loss is None else {"progress_loss": loss}

    def drop(self) -> None:
        self._seen = []

    def learn(
        self, states_SD: torch.Tensor, episode_S: np.ndarray, outcome_E: np.ndarray, max_norm: float
    ) -> float | None:
        """One update towards the outcomes of the episodes that are there; returns the loss, None without an outcome.

        Args:
            states_SD: hidden states at the ends of S replies, without gradient.
            episode_S: number of the episode that each belongs to.
            outcome_E: outcome of every episode of the step, NaN if it is unscorable.
        """
        known_S = np.isfinite(outcome_E)[episode_S]
        if not known_S.any():
            return None
        episodes, place = np.unique(episode_S[known_S], return_inverse=True)
        states = states_SD[torch.from_numpy(known_S).to(states_SD.device)]
        contribution, place = self.fit.predict(states), torch.from_numpy(place).to(states.device)
        outcome = torch.from_numpy(outcome_E[episodes]).to(contribution)
        loss = progress_loss(contribution, place, outcome)
        if isinstance(self.fit, LeastSquaresFit):
            rows = with_one(states)
            self.fit.add(rows.new_zeros(len(episodes), rows.shape[1]).index_add(0, place, rows), outcome)
        else:
            loss.backward()
            self.fit.apply(max_norm)
        return loss.item()


Head = TypeVar("Head", bound=LearnerHead)


def critics_of(heads: Sequence[Head]) -> list[Head]:
    """The heads that predict values."""
    return [head for head in heads if head.name == ValueHead.name]


def head_tensors(heads: Sequence[LearnerHead]) -> dict[str, torch.Tensor]:
    """Tensors that heads have learnt, by name."""
    return {name: value for head in heads for name, value in head.fit.tensors().items()}


def contributions(
    fit: "GradientFit | LeastSquaresFit | OwnBody", reading: Reading, place: Place = "reply_ends"
) -> list[torch.Tensor]:
    """The fit's output at the last token of each reply, or at another place: one number for each reply of a row."""
    row_S, column_S = reading.at(place)
    return by_row(fit.predict(reading.hidden_at(row_S, column_S)), row_S, len(reading.reply_mask))


def value_loss(
    value: torch.Tensor, old: torch.Tensor, target: torch.Tensor, clip: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss per token, and 1 where the clip was active; shapes are those of the inputs.

    >>> loss, clipped = value_loss(torch.tensor([1.0, 0.2]), torch.zeros(2), torch.tensor([2.0, 1.0]), clip=0.5)
    >>> loss, clipped
    (tensor([1.1250, 0.3200]), tensor([1., 0.]))
    """
    free = (value - target).square()
    bounded = free if clip is None else (value.clamp(old - clip, old + clip) - target).square()
    return 0.5 * free.maximum(bounded), (bounded > free).to(value.dtype)


def progress_loss(contribution_K: torch.Tensor, episode_K: torch.Tensor, outcome_E: torch.Tensor) -> torch.Tensor:
    """Mean over E episodes of the squared difference between an episode's contributions and its outcome.

    >>> progress_loss(torch.tensor([0.5, 0.25, 1.0]), torch.tensor([0, 0, 1]), torch.tensor([1.0, 1.0])).item()
    0.03125
    """
    total_E = torch.zeros_like(outcome_E).index_add(0, episode_K, contribution_K)
    return (total_E - outcome_E).square().mean()


def explained(value_T: np.ndarray, target_T: np.ndarray) -> float | None:
    """Share of the targets' variance that the values explain; None where the targets do not vary.

    >>> explained(np.array([0.5, 9.0, 1.5]), np.array([0.0, np.nan, 2.0]))
    0.75
    """
    known_T = np.isfinite(target_T)
    if not known_T.any():
        return None
    spread = float(target_T[known_T].var())
    return 1 - float((target_T - value_T)[known_T].var()) / spread if spread else None
