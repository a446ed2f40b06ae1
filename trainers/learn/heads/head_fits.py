"""Fits of head weights: gradient steps, or linear least squares over the rows seen so far.

    least squares    w = argmin sum over rows of keep^age (x . w - y)^2 + ridge |w|^2,   x = (hidden state, 1)

The age of a row counts the steps since; weights change at the end of a step. A small policy's hidden states hardly
differ from their common mean, which makes gradient steps slow; the solution does not care. It has no learning rate, is
exact, and costs a product of D by D numbers for each row. It is linear, and leaves the policy alone.

Both are 0 everywhere at the beginning, so that they say nothing before they have learnt.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch

from manyturn.agents.model.model_internals import host_copy
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.heads.head_config import HeadConfig
from manyturn.trainers.learn.passes.optimizer_state import load_optimizer, optimizer_tensors

Tensors = dict[str, torch.Tensor]


class JoinedRanks(Protocol):
    """Collective operations of several ranks that learn one head together."""

    def of(self, own: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Concatenate each tensor over all ranks along the first dimension."""
        ...

    def add(self, sums: Sequence[torch.Tensor]) -> None:
        """Sum tensors of one shape over all ranks, in place."""
        ...

    def add_gradients(self, weights: Sequence[torch.Tensor]) -> None:
        """Average the gradients of replicated weights over all ranks, in place."""
        ...


class GradientFit:
    """Weights of float32 with an optimiser of their own.

    Args:
        name: prefixes the names of its tensors.
        width: D, numbers in a hidden state.
        like: a tensor of the model, for device and type.
    """

    def __init__(self, name: str, config: HeadConfig, width: int, like: torch.Tensor):
        self._name = name
        self._dtype = torch.promote_types(like.dtype, torch.float32)
        self.module = layers_on(name, width, config.hidden, like)
        self._optimizer = torch.optim.AdamW(self.module.parameters(), lr=config.lr, weight_decay=0.0, fused=True)

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """One number for each state: (..., D) to (...)."""
        return self.module(states.to(self._dtype))[..., 0]

    def join(self, ranks: JoinedRanks) -> None:
        """Add up the gradients of all ranks."""
        ranks.add_gradients(list(self.module.parameters()))

    def apply(self, max_norm: float) -> None:
        """Apply the accumulated gradient, scaled down to ``max_norm``; one that is not finite is dropped."""
        norm = torch.nn.utils.clip_grad_norm_(self.module.parameters(), max_norm)
        if torch.isfinite(norm):
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def drop(self) -> None:
        """Leave the accumulated gradient out."""
        self._optimizer.zero_grad(set_to_none=True)

    def finish(self) -> None:
        """End a step: nothing is left to do."""

    def tensors(self) -> Tensors:
        """Weights and the optimiser's state, by name."""
        weights = {f"{self._name}.weight.{key}": host_copy(value) for key, value in self.module.state_dict().items()}
        return weights | optimizer_tensors(f"{self._name}.optimizer", self._optimizer, list(self.module.parameters()))

    def load_tensors(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``tensors``; those of other names are left alone."""
        self.module.load_state_dict(own_tensors(self._name, "weight", tensors))
        load_optimizer(f"{self._name}.optimizer", self._optimizer, list(self.module.parameters()), tensors)


class LeastSquaresFit:
    """The sums that decide the solution, in float64.

    Args:
        name: prefixes the names of its tensors.
        width: D, numbers in a hidden state.
        like: a tensor of the model, for its device.
    """

    def __init__(self, name: str, config: HeadConfig, width: int, like: torch.Tensor):
        self._name, self._ridge, self._keep = name, config.ridge, config.keep
        self._products = torch.zeros(width + 1, width + 1, dtype=torch.float64, device=like.device)
        self._sums = torch.zeros(width + 1, dtype=torch.float64, device=like.device)
        self._weights = torch.zeros_like(self._sums)
        self._before: tuple[torch.Tensor, torch.Tensor] | None = None  # an update that has begun to add

    @torch.no_grad()
    def add(self, rows_FX: torch.Tensor, target_F: torch.Tensor) -> None:
        """See rows, X = D + 1, and what they should give; sums of rows stand for sums of what the rows give."""
        rows, target = rows_FX.to(self._products), target_F.to(self._products)
        if self._before is None:
            self._before = self._products.clone(), self._sums.clone()
        self._products += rows.T @ rows
        self._sums += rows.T @ target

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """One number for each state: (..., D) to (...); no gradient goes to the states."""
        return (with_one(states.detach()).to(self._weights) @ self._weights).to(torch.float32)

    def join(self, ranks: JoinedRanks) -> None:
        """Add up what all ranks have seen since the last ``apply``."""
        before = self._before or (self._products.clone(), self._sums.clone())
        for sums, earlier in zip((self._products, self._sums), before, strict=True):
            seen = sums - earlier
            ranks.add([seen])
            torch.add(earlier, seen, out=sums)

    def apply(self, max_norm: float) -> None:
        """Keep what was added since the last time; there is no gradient."""
        self._before = None

    def drop(self) -> None:
        """Leave out what was added since the last ``apply``."""
        if self._before is not None:
            self._products, self._sums = self._before
            self._before = None

    def finish(self) -> None:
        """End a step: what was seen counts from now on."""
        ridge = self._ridge * torch.eye(len(self._sums), dtype=torch.float64, device=self._sums.device)
        factor = torch.linalg.cholesky(self._products + ridge)
        self._weights = torch.cholesky_solve(self._sums[:, None], factor)[:, 0]
        self._products *= self._keep
        self._sums *= self._keep

    def tensors(self) -> Tensors:
        """Sums and weights, by name."""
        sums = {"products": self._products, "targets": self._sums, "weights": self._weights}
        return {f"{self._name}.solved.{key}": host_copy(value) for key, value in sums.items()}

    def load_tensors(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``tensors``; those of other names are left alone."""
        saved = own_tensors(self._name, "solved", tensors)
        for mine, key in ((self._products, "products"), (self._sums, "targets"), (self._weights, "weights")):
            mine.copy_(saved[key])


def fit_of(name: str, config: HeadConfig, width: int, like: torch.Tensor) -> GradientFit | LeastSquaresFit:
    """The fit that the configuration names."""
    fit_type = {"gradient": GradientFit, "least_squares": LeastSquaresFit}[config.fit]
    return fit_type(name, config, width, like)


def layers_on(name: str, width: int, hidden: int, like: torch.Tensor) -> torch.nn.Sequential:
    """A linear layer, or two with a GELU between them, from D numbers to one that is 0 at first.

    Args:
        name: decides the random weights of the layer in between.
        hidden: its width; 0 for none.
        like: a tensor of the model, for device and type.
    """
    dtype = torch.promote_types(like.dtype, torch.float32)
    linear = torch.nn.Linear(hidden or width, 1, device=like.device, dtype=dtype)
    torch.nn.init.zeros_(linear.weight)
    torch.nn.init.zeros_(linear.bias)
    layers: list[torch.nn.Module] = [linear]
    if hidden:
        first = torch.nn.Linear(width, hidden, device=like.device, dtype=dtype)
        noise = generator("head", name).standard_normal((hidden, width)) * width**-0.5
        with torch.no_grad():
            first.weight.copy_(torch.from_numpy(noise))
            first.bias.zero_()
        layers = [first, torch.nn.GELU(), linear]
    return torch.nn.Sequential(*layers)


def with_one(states: torch.Tensor) -> torch.Tensor:
    """States and a 1 after each, for the constant: (..., D) to (..., D + 1)."""
    return torch.cat([states, states.new_ones(*states.shape[:-1], 1)], dim=-1)


def own_tensors(name: str, what: str, tensors: Mapping[str, torch.Tensor]) -> Tensors:
    """A head's tensors of one sort, by the rest of their names. Raises ValueError if there are none."""
    prefix = f"{name}.{what}."
    own = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
    if not own:
        raise ValueError(f"the checkpoint has no {name} head of this kind: it is of a run without one")
    return own
