"""Options of the learner."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.objective.objective import OBJECTIVES
from manyturn.trainers.learn.passes.trie.packing import Packing

OFFLOADS_NOTHING = (
    "learner.offload_optimizer has no effect on a CPU, whose memory AdamW's moments are in anyway: leave it out, or "
    "set device = 'cuda'"
)


class LearnerConfig(Options):
    lr: float = Field(default=5e-4, ge=0)
    """Learning rate of AdamW; 0 changes nothing, to look at engine and learner alone."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "linear"
    """How the learning rate falls over the steps of the run."""
    lr_end: Annotated[float, OnlyWith("lr_schedule", "linear", "cosine", may_wait=True)] = Field(
        default=0.1, ge=0, le=1
    )
    """Share of the learning rate that is left at the end of the run."""
    lr_warmup: float = Field(default=0, ge=0)
    """Steps at the beginning over which the learning rate rises; below 1: their share of the run's steps."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's weight decay."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    minibatch: int = Field(default=16, ge=1)
    """Episodes in an update."""
    epochs: int = Field(default=1, ge=1)
    """Passes over the episodes of a step."""
    micro_tokens: int = Field(default=16384, ge=64)
    """Most tokens in one forward pass, those that sequences share counted once, and padding included; gradients of a
    minibatch are accumulated."""
    packing: Packing = "auto"
    """How samples go into a pass: padded to the longest, one after the other, or with common beginnings once; auto
    takes the last where it saves a tenth of the tokens, otherwise the second. Listed commands (agent.choices =
    "command") stand once behind their prompt, which padding has no place for."""
    stop_kl: float | None = Field(default=None, gt=0)
    """Divergence at which a step makes no more updates: the mean over the episodes of a minibatch of how much less
    likely what was said has become, in nats; unset: all updates are made."""
    old_logprobs: Literal["learner", "engine"] = "learner"
    """Where the ratio's denominator comes from: recomputed by the learner, or as the engine drew."""
    engine_alarm: Literal["stop", "note"] = "stop"
    """What happens where the engine's log-probabilities are not the learner's, for another cause than precision."""
    lora_rank: int = Field(default=0, ge=0)
    """Rank of LoRA adapters (peft) on all linear layers but the head; 0 trains all weights."""
    lora_alpha: Annotated[int, OnlyWith("lora_rank", may_wait=True)] = Field(default=32, ge=1)
    """Scale of the adapters."""
    lora_layers: Annotated[tuple[int, int] | None, OnlyWith("lora_rank", may_wait=True)] = None
    """First layer with adapters, and the first one above that has none again: [15, 30] are the upper half of 30 layers;
    unset: all of them."""
    states_gb: Annotated[float, OnlyWith("lora_layers", may_wait=True)] = Field(default=1.0, ge=0)
    """Most memory for hidden states below the lowest layer with adapters, in 10^9 bytes; what is kept there is computed
    once for a step, or for the warm-up; 0 keeps none. With agent.choices = "command" it serves the warm-up alone."""
    gradient_checkpointing: bool | None = None
    """Recompute activations in the backward pass to save memory; unset: where an update would not fit without it, of
    runs in one process."""

    weights: Literal["float32", "bfloat16"] = "float32"
    """Type of the weights in passes. With bfloat16 AdamW changes float32 masters, in which small updates add up; passes
    and the engine use them rounded. Not for adapters, which are float32 over weights that do not change."""
    compile: bool = False
    """Have PyTorch compile the policy's layers for the learner's passes; takes a C++ compiler, on a GPU Triton too."""
    offload_optimizer: bool = False
    """Keep float32 weights and AdamW's moments in the host's memory, and make each update there; for GPUs."""

    @field_validator("lr_warmup")
    @classmethod
    def _share_or_steps(cls, lr_warmup: float) -> float:
        if lr_warmup > 1 and lr_warmup % 1:
            raise ValueError(f"{lr_warmup:g} is neither a share of the run, which is below 1, nor a number of steps")
        return lr_warmup

    @field_validator("lora_layers")
    @classmethod
    def _is_a_range(cls, layers: tuple[int, int] | None) -> tuple[int, int] | None:
        if layers is not None and not 0 <= layers[0] < layers[1]:
            raise ValueError(f"[{layers[0]}, {layers[1]}] holds no layer: give the first one and the first one after")
        return layers

    @property
    def has_masters(self) -> bool:
        """True if AdamW changes copies of the weights that passes use."""
        return self.offload_optimizer or self.weights == "bfloat16"

    @property
    def has_device_masters(self) -> bool:
        """True if these copies are next to the weights."""
        return self.weights == "bfloat16" and not self.offload_optimizer

    @property
    def lowest_layer(self) -> int:
        """The lowest layer that learns; 0 where the embeddings may learn too."""
        return self.lora_layers[0] if self.lora_rank and self.lora_layers is not None else 0

    @property
    def states_bytes(self) -> float:
        """Most bytes that the learner keeps of layers that do not learn."""
        return 1e9 * self.states_gb if self.lowest_layer else 0.0

    @property
    def gives_states(self) -> bool:
        """True if ``states_gb`` differs from its default."""
        return self.states_gb != type(self).model_fields["states_gb"].default

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return (
            self._refuse_offload(run.device)
            or self._refuse_padding(run)
            or self._refuse_weights()
            or self._refuse_compile()
            or self._refuse_states()
            or self._refuse_warmup(run.steps)
            or self._refuse_stop(run)
            or self._refuse_older_samples(run)
        )

    def _refuse_offload(self, device: str) -> str | None:
        if not self.offload_optimizer or device != "cpu":
            return None
        return OFFLOADS_NOTHING

    def _refuse_padding(self, run: Any) -> str | None:
        if self.packing != "padding" or run.agent.chooses != "command":
            return None
        return (
            "learner.packing = 'padding' has no place for the commands of a turn, which the learner reads with "
            "agent.choices = 'command': leave one of them out"
        )

    def _refuse_weights(self) -> str | None:
        if self.weights == "float32" or not self.lora_rank:
            return None
        return (
            f"learner.weights = {self.weights!r} has no effect on adapters, which learn in float32: leave it out, or "
            "set learner.lora_rank to 0"
        )

    def _refuse_compile(self) -> str | None:
        if not self.compile:
            return None
        if self.packing != "padding":
            return (
                f"learner.compile would compile each layout of learner.packing = {self.packing!r} again: set "
                "learner.packing = 'padding', or leave learner.compile out"
            )
        if self.gradient_checkpointing:
            return "learner.compile does not go together with learner.gradient_checkpointing: leave one of them out"
        return None

    def _refuse_states(self) -> str | None:
        if not self.gives_states or self.lora_layers is None or self.lowest_layer:
            return None
        return "learner.states_gb has no effect: layer 0 learns, and there is nothing below it; leave it out"

    def _refuse_warmup(self, steps: int) -> str | None:
        if not 0 < steps <= self.lr_warmup:
            return None
        return (
            f"learner.lr_warmup = {self.lr_warmup:g} steps are not over in {steps}, so that nothing is learnt at "
            "learner.lr: lower it, such as to 0.1 for a tenth of the run"
        )

    def _refuse_stop(self, run: Any) -> str | None:
        one_update = self.epochs == 1 and self.minibatch >= run.rollout.tasks * run.rollout.group
        if self.stop_kl is None or not one_update or self.old_logprobs == "engine":
            return None
        return (
            f"learner.stop_kl has no effect: a step makes one update, before which nothing has moved: lower "
            f"learner.minibatch = {self.minibatch}, raise learner.epochs, or leave it out"
        )

    def _refuse_older_samples(self, run: Any) -> str | None:
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
