"""Heads on the policy's last hidden states: a critic of tokens, and an estimator of what each turn contributes.

    value      V_l from the hidden state before token l, out of which the token is drawn
               loss = mean over tokens of max((V - R)^2, (clamp(V, V_old - clip, V_old + clip) - R)^2) / 2
    progress   c_t from the hidden state at the last token of turn t's reply
               loss = mean over episodes of (sum over turns of c_t - outcome)^2

Source: PPO's value loss as in verl (``compute_value_loss``); the estimator of stepwise progress attribution, arXiv
2505.20732. Numbers agree with verl's loss and with the forward pass of the authors' code. There the estimator is a
model of its own, trained in all its weights before reinforcement, and reads logits; here it reads what the policy
computes anyway, and is trained along with it.

A head is 0 everywhere at the beginning, so that it says nothing before it has learnt. It has weights of float32 and an
optimiser of its own.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch.nn.functional import pad

from manyturn.envs.keys import generator
from manyturn.trainers.head_config import HeadConfig, ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.optimizer_state import load_optimizer, optimizer_tensors


class Head:
    """A number for each hidden state, with the optimiser that trains it.

    Args:
        name: stands before the names of its tensors.
        width: D, numbers in a hidden state.
        like: a tensor of the model, for device and type.
    """

    def __init__(self, name: str, config: HeadConfig, width: int, like: torch.Tensor):
        self.name = name
        self._dtype = dtype = torch.promote_types(like.dtype, torch.float32)
        linear = torch.nn.Linear(config.hidden or width, 1, device=like.device, dtype=dtype)
        torch.nn.init.zeros_(linear.weight)
        torch.nn.init.zeros_(linear.bias)
        layers: list[torch.nn.Module] = [linear]
        if config.hidden:
            first = torch.nn.Linear(width, config.hidden, device=like.device, dtype=dtype)
            noise = generator("head", name).standard_normal((config.hidden, width)) * width**-0.5
            with torch.no_grad():
                first.weight.copy_(torch.from_numpy(noise))
                first.bias.zero_()
            layers = [first, torch.nn.GELU(), linear]
        self.module = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=config.lr, weight_decay=0.0)

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """One number for each state: (..., D) to (...)."""
        return self.module(states.to(self._dtype))[..., 0]

    def apply(self, max_norm: float) -> None:
        """Apply the accumulated gradient, scaled down to ``max_norm``; one that is not finite is dropped."""
        norm = torch.nn.utils.clip_grad_norm_(self.module.parameters(), max_norm)
        if torch.isfinite(norm):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Weights and the optimiser's state, by name."""
        found = {f"{self.name}.weight.{key}": value.clone() for key, value in self.module.state_dict().items()}
        return found | optimizer_tensors(f"{self.name}.optimizer", self.optimizer, list(self.module.parameters()))

    def load_tensors(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Undo ``tensors``; those of other names are left alone."""
        prefix = f"{self.name}.weight."
        weights = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
        if not weights:
            raise ValueError(f"the checkpoint has no {self.name} head: it is of a run without one")
        self.module.load_state_dict(weights)
        load_optimizer(f"{self.name}.optimizer", self.optimizer, list(self.module.parameters()), tensors)


class ValueHead(Head):
    """The critic."""

    def __init__(self, config: ValueHeadConfig, width: int, like: torch.Tensor):
        super().__init__("value", config, width, like)
        self.config = config

    def values(self, hidden_BTD: torch.Tensor) -> torch.Tensor:
        """The value before each token (B, T); 0 before the first, which nobody draws."""
        share = self.config.into_policy
        states = hidden_BTD.detach()
        if share:
            states = states + share * (hidden_BTD - states)
        return pad(self.predict(states[:, :-1]), (1, 0))

    def loss(
        self, hidden_BTD: torch.Tensor, old_BT: torch.Tensor, target_BT: torch.Tensor, tokens: int
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """These rows' share of the mean over tokens with a target, and of its figures.

        Args:
            old_BT: values before the step's updates.
            target_BT: NaN where there is nothing to predict.
            tokens: with a target, in the whole batch of the update.
        """
        known_BT = target_BT.isfinite()
        value, old, target = (x[known_BT] for x in (self.values(hidden_BTD), old_BT, target_BT))
        loss, clipped = value_loss(value, old, target, self.config.clip)
        mean = loss.sum() / max(tokens, 1)
        return mean, {"value_loss": mean.detach(), "value_clip_fraction": clipped.sum() / max(tokens, 1)}


class ProgressHead(Head):
    """The progress estimator."""

    def __init__(self, config: ProgressHeadConfig, width: int, like: torch.Tensor):
        super().__init__("progress", config, width, like)

    def learn(
        self, states_RD: torch.Tensor, episode_R: np.ndarray, outcome_E: np.ndarray, max_norm: float
    ) -> float | None:
        """One update towards the outcomes of the episodes that are there; returns the loss, None without an outcome.

        Args:
            states_RD: hidden states at the ends of R replies, without gradient.
            episode_R: number of the episode that each belongs to.
            outcome_E: outcome of every episode of the step, NaN if it is unscorable.
        """
        known_R = np.isfinite(outcome_E)[episode_R]
        if not known_R.any():
            return None
        episodes, place = np.unique(episode_R[known_R], return_inverse=True)
        contribution = self.predict(states_RD[torch.from_numpy(known_R).to(states_RD.device)])
        outcome = torch.from_numpy(outcome_E[episodes]).to(contribution)
        loss = progress_loss(contribution, torch.from_numpy(place).to(contribution.device), outcome)
        loss.backward()
        self.apply(max_norm)
        return loss.item()


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


def reply_ends(reply_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns of the last token of each reply, row after row, in order of time.

    >>> [place.tolist() for place in reply_ends(torch.tensor([[-1, 0, 0, 1], [-1, 2, -1, -1]]))]
    [[0, 0, 1], [2, 3, 1]]

    Args:
        reply_BT: number of the reply that a token belongs to, -1 elsewhere.
    """
    after = pad(reply_BT[:, 1:], (0, 1), value=-1)
    rows, columns = ((reply_BT >= 0) & (reply_BT != after)).nonzero(as_tuple=True)
    return rows, columns


def progress_loss(contribution_K: torch.Tensor, episode_K: torch.Tensor, outcome_E: torch.Tensor) -> torch.Tensor:
    """Mean over E episodes of the squared difference between an episode's contributions and its outcome.

    >>> progress_loss(torch.tensor([0.5, 0.25, 1.0]), torch.tensor([0, 0, 1]), torch.tensor([1.0, 1.0])).item()
    0.03125
    """
    total_E = torch.zeros_like(outcome_E).index_add(0, episode_K, contribution_K)
    return (total_E - outcome_E).square().mean()


def explained(value_N: np.ndarray, target_N: np.ndarray) -> float | None:
    """Share of the targets' variance that the values explain; None where the targets do not vary.

    >>> explained(np.array([0.5, 9.0, 1.5]), np.array([0.0, np.nan, 2.0]))
    0.75
    """
    known_N = np.isfinite(target_N)
    if not known_N.any():
        return None
    spread = float(target_N[known_N].var())
    return 1 - float((target_N - value_N)[known_N].var()) / spread if spread else None
