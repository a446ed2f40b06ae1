"""Memory of an objective's regularisers from step to step: the adapted weight of the KL term, EPO's history."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyturn.trainers.learn.objective.epo import EntropyHistory
from manyturn.trainers.learn.objective.kl import adapted
from manyturn.trainers.learn.objective.objective import ObjectiveConfig, RegulariserState


class ObjectiveMemory:
    """The state of an objective between steps.

    Args:
        config: the objective, with the length of EPO's schedule; see ``ObjectiveConfig.over``.

    Attributes:
        kl_coef: present weight of the KL term; None without one.
    """

    def __init__(self, config: ObjectiveConfig):
        if config.epo and config.epo.horizon is None:
            raise ValueError("EPO's schedule has the length of a run: give its steps, or objective.epo.horizon")
        self._config = config
        self._history = EntropyHistory()
        self.kl_coef = config.kl.coef if config.kl else None

    @property
    def needs_entropy(self) -> bool:
        """True if the entropies of a step's tokens are remembered."""
        return self._config.epo is not None

    def begin(self, entropy_T: np.ndarray | None, turn_T: np.ndarray) -> RegulariserState:
        """The regularisers' state at the beginning of a step, from those before it.

        Args:
            entropy_T: where ``needs_entropy``, of each token that the policy said, before the step's updates.
            turn_T: number of each token's turn in its episode.
        """
        epo = self._config.epo
        if epo is None:
            return RegulariserState(self.kl_coef)
        assert entropy_T is not None, "EPO's history is made of entropies"
        if epo.form == "released":  # the code counts the present step, the paper does not
            self._history.add(entropy_T, turn_T)
            return RegulariserState(self.kl_coef, self._history.range(epo))
        state = RegulariserState(self.kl_coef, self._history.range(epo))
        self._history.add(entropy_T, turn_T)
        return state

    def figures(self, now: RegulariserState) -> dict[str, float]:
        """For the metrics: the KL term's weight if it adapts, that of EPO's penalty, the middle of its range."""
        figures = {}
        if self._config.kl and self._config.kl.target is not None and now.kl_coef is not None:
            figures["kl_coef"] = now.kl_coef
        if self._config.epo:
            figures["epo_weight"] = now.entropy_range.weight
        if now.entropy_range.reference:
            figures["epo_reference"] = float(np.mean(now.entropy_range.reference))
        return figures

    def end(self, reference_kl: float | None, sequences: int) -> None:
        """After a step's updates: their mean divergence from the reference per token, and how many sequences it had."""
        if self._config.kl and self.kl_coef is not None and reference_kl is not None:
            self.kl_coef = adapted(self.kl_coef, reference_kl, sequences, self._config.kl)

    def plain(self) -> dict[str, Any]:
        """JSON values for a checkpoint; what the configuration has no use for is not there."""
        state: dict[str, Any] = {}
        if self._config.kl and self._config.kl.target is not None:
            state["kl_coef"] = self.kl_coef
        if self._config.epo:
            state["epo"] = vars(self._history) | {"turns": list(self._history.turns)}
        return state

    def load_plain(self, state: Mapping[str, Any]) -> None:
        """The inverse of ``plain``."""
        self.kl_coef = state.get("kl_coef", self.kl_coef)
        self._history = EntropyHistory(**state.get("epo", {}))
