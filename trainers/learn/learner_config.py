"""Options of the learner."""

from typing import Annotated, Any, Literal

from pydantic import Field

from manyturn.envs.contract.facts import EnvFacts
from manyturn.envs.contract.options import OnlyWith, Options
from manyturn.trainers.learn.objective import OBJECTIVES


class LearnerConfig(Options):
    lr: float = Field(default=5e-4, gt=0)
    """Learning rate of AdamW."""
    lr_end: float = Field(default=0.1, ge=0, le=1)
    """Share of the learning rate that is left at the last step; it falls linearly."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's weight decay."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    minibatch: int = Field(default=16, ge=1)
    """Episodes in an update."""
    epochs: int = Field(default=1, ge=1)
    """Passes over the episodes of a step."""
    micro_tokens: int = Field(default=16384, ge=64)
    """Most padded tokens in one forward pass; gradients of a minibatch are accumulated."""
    old_logprobs: Literal["learner", "engine"] = "learner"
    """Where the ratio's denominator comes from: recomputed by the learner, or as the engine drew."""
    lora_rank: int = Field(default=0, ge=0)
    """Rank of LoRA adapters (peft) on all linear layers; 0 trains all weights."""
    lora_alpha: Annotated[int, OnlyWith("lora_rank", may_wait=True)] = Field(default=32, ge=1)
    """Scale of the adapters."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass to save memory."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        objective, played = run.objective, run.rollout.tasks * run.rollout.group
        if not objective.needs_fresh_samples:
            return None
        if self.epochs > 1:
            others = ", ".join(OBJECTIVES.names(lambda kind: not kind.needs_fresh_samples))
            return (
                f"learner.epochs = {self.epochs} learns from samples of an older policy, for which {objective.name} "
                f"has no ratio: set it to 1, or take an objective with one ({others})"
            )
        if self.minibatch < played:
            return (
                f"learner.minibatch = {self.minibatch} makes several updates of {played} episodes, for which "
                f"{objective.name} has no ratio: set it to {played}"
            )
        return None
