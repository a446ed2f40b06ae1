"""Options of the heads that predict values beside the policy."""

from typing import Literal, Self

from pydantic import Field, model_validator

from manyturn.envs.contract.options import Options


class HeadConfig(Options):
    """A layer, or two, on the policy's last hidden states."""

    fit: Literal["gradient", "least_squares"] = "gradient"
    """Gradient steps along with the policy's, or the linear solution over all that was seen."""
    lr: float = Field(default=1e-3, gt=0)
    """Learning rate of the head's own AdamW; gradient only."""
    hidden: int = Field(default=0, ge=0)
    """Width of a layer in between; 0 makes the head linear; gradient only."""
    ridge: float = Field(default=10.0, gt=0)
    """Weight of the squared weights; least_squares only."""
    keep: float = Field(default=0.9, gt=0, le=1)
    """What earlier rows weigh after a step, as a share of what they weighed; least_squares only."""

    @model_validator(mode="after")
    def _effective(self) -> Self:
        idle = _ONLY_GRADIENT if self.fit == "least_squares" else _ONLY_SOLVED
        given = sorted(idle & self.model_fields_set)
        changed = [name for name in given if getattr(self, name) != type(self).model_fields[name].default]
        if changed:
            raise ValueError(f'{", ".join(changed)} has no effect with fit = "{self.fit}": leave it out')
        return self


_ONLY_GRADIENT = {"lr", "hidden", "clip", "into_policy"}
_ONLY_SOLVED = {"ridge", "keep"}


class ValueHeadConfig(HeadConfig):
    """The critic: what is still to come, before each token."""

    clip: float | None = Field(default=0.5, gt=0)
    """How far a value may move in a step before its loss stops falling; unset: as far as it likes."""
    into_policy: float = Field(default=0.0, ge=0)
    """Weight of the value loss in the policy's own gradient; 0: the head reads the policy and does not change it."""


class ProgressHeadConfig(HeadConfig):
    """The progress estimator: what each turn contributes to the outcome."""
