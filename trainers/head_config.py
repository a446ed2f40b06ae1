"""Options of the heads that predict values beside the policy."""

from pydantic import Field

from manyturn.envs.options import Options


class HeadConfig(Options):
    """A layer, or two, on the policy's last hidden states."""

    lr: float = Field(default=1e-3, gt=0)
    """Learning rate of the head's own AdamW."""
    hidden: int = Field(default=0, ge=0)
    """Width of a layer in between; 0 makes the head linear."""


class ValueHeadConfig(HeadConfig):
    """The critic: what is still to come, before each token."""

    clip: float | None = Field(default=0.5, gt=0)
    """How far a value may move in a step before its loss stops falling; unset: as far as it likes."""
    into_policy: float = Field(default=0.0, ge=0)
    """Weight of the value loss in the policy's own gradient; 0: the head reads the policy and does not change it."""


class ProgressHeadConfig(HeadConfig):
    """The progress estimator: what each turn contributes to the outcome."""
