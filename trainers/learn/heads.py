"""Heads on the policy's last hidden states: a critic of tokens, and an estimator of what each turn contributes.

    value      V_l from the hidden state before token l, out of which the token is drawn
               loss = mean over tokens of max((V - R)^2, (clamp(V, V_old - clip, V_old + clip) - R)^2) / 2
    progress   c_t from the hidden state at the last token of turn t's reply
               loss = mean over episodes of (sum over turns of c_t - outcome)^2

Source: PPO's value loss as in verl (``compute_value_loss``); the estimator of stepwise progress attribution, arXiv
2505.20732. Numbers agree with verl's loss and with the forward pass of the authors' code. There the estimator is a
model of its own, trained in all its weights before reinforcement, and reads logits; here it reads what the policy
computes anyway, and is trained along with it.

``head_fits.py`` says how the weights come about; least squares minimises the same sums without clip.
"""

import numpy as np
import torch
from torch.nn.functional import pad

from manyturn.trainers.learn.head_config import ProgressHeadConfig, ValueHeadConfig
from manyturn.trainers.learn.head_fits import LeastSquaresFit, fit_of, with_one


class ValueHead:
    """The critic.

    Args:
        width: D, numbers in a hidden state.
        like: a tensor of the model, for device and type.
    """

    def __init__(self, config: ValueHeadConfig, width: int, like: torch.Tensor):
        self.config, self.fit = config, fit_of("value", config, width, like)

    def values(self, hidden_BTD: torch.Tensor) -> torch.Tensor:
        """The value before each token (B, T); 0 before the first, which nobody draws."""
        share = self.config.into_policy
        states = hidden_BTD.detach()
        if share:
            states = states + share * (hidden_BTD - states)
        return pad(self.fit.predict(states[:, :-1]), (1, 0))

    def loss(
        self, hidden_BTD: torch.Tensor, old_BT: torch.Tensor, target_BT: torch.Tensor, tokens: int
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """These rows' share of the mean over tokens with a target, and of its figures; least squares sees them.

        Args:
            old_BT: values before the step's updates.
            target_BT: NaN where there is nothing to predict.
            tokens: with a target, in the whole batch of the update.
        """
        known_BT, clip = target_BT.isfinite(), self.config.clip
        value, old, target = (x[known_BT] for x in (self.values(hidden_BTD), old_BT, target_BT))
        if isinstance(self.fit, LeastSquaresFit):
            self.fit.add(with_one(hidden_BTD[:, :-1][known_BT[:, 1:]]), target)
            clip = None
        loss, clipped = value_loss(value, old, target, clip)
        mean = loss.sum() / max(tokens, 1)
        return mean, {"value_loss": mean.detach(), "value_clip_fraction": clipped.sum() / max(tokens, 1)}


class ProgressHead:
    """The progress estimator.

    Args:
        width: D, numbers in a hidden state.
        like: a tensor of the model, for device and type.
    """

    def __init__(self, config: ProgressHeadConfig, width: int, like: torch.Tensor):
        self.fit = fit_of("progress", config, width, like)

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
        states = states_RD[torch.from_numpy(known_R).to(states_RD.device)]
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
