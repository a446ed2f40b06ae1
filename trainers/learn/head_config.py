"""Options of the heads that predict values next to the policy."""

from typing import Annotated, Literal

from pydantic import Field

from manyturn.envs.contract.options import OnlyWith, Options

_GRADIENT = OnlyWith("fit", "gradient")
_SOLVED = OnlyWith("fit", "least_squares")


class HeadConfig(Options):
    """A layer, or two, on the policy's last hidden states."""

    fit: Literal["gradient", "least_squares"] = "gradient"
    """Gradient steps along with the policy's, or the linear solution over all that was seen."""
    lr: Annotated[float, _GRADIENT] = Field(default=1e-3, gt=0)
    """Learning rate of the head's own AdamW."""
    hidden: Annotated[int, _GRADIENT] = Field(default=0, ge=0)
    """Width of a layer in between; 0 makes the head linear."""
    ridge: Annotated[float, _SOLVED] = Field(default=10.0, gt=0)
    """Weight of the squared weights."""
    keep: Annotated[float, _SOLVED] = Field(default=0.9, gt=0, le=1)
    """What earlier rows weigh after a step, as a share of what they weighed."""


class ValueHeadConfig(HeadConfig):
    """The critic: what is still to come, before each token."""

    clip: Annotated[float | None, _GRADIENT] = Field(default=0.5, gt=0)
    """How far a value may move in a step before its loss stops falling; unset: as far as it likes."""
    into_policy: Annotated[float, _GRADIENT] = Field(default=0.0, ge=0)
    """Weight of the value loss in the policy's own gradient; 0: the head reads the policy and does not change it."""


class ProgressHeadConfig(HeadConfig):
    """The progress estimator: what each turn contributes to the outcome."""
