"""Engine registry, the base of engine options, and the context that a factory takes.

An engine is a class as ``agents/engine/engine.py`` says, its options, and a factory that makes the one of the other::

    class MineConfig(EngineConfig):
        name: Literal["mine"] = "mine"

    @ENGINES.register(MineConfig)
    def mine(context: EngineContext, config: MineConfig) -> Engine: ...

A factory's module must not import torch: configurations are checked without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from manyturn.agents.engine.batch_barrier import BatchBarrier
from manyturn.agents.engine.engine import Capabilities, Engine
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.registry import Named, Registry
from manyturn.envs.contract.tasks.env_facts import EnvFacts

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class EngineConfig(Named):
    """Base of the options of an engine. A subclass narrows ``name`` to a Literal of one string."""

    is_separate: ClassVar[bool] = False
    """True if a program of others computes, so that its log-probabilities are never quite the learner's."""
    starts_ranks: ClassVar[bool] = False
    """True if it begins processes as torchrun does, which cannot be next to the several ranks of a learner."""

    @property
    def capabilities(self) -> Capabilities:
        """Abilities of the engine with these options, known before it is built."""
        return Capabilities()

    def defaults(self, run: Any, env: EnvFacts | None) -> Mapping[str, Any]:
        """Defaults for a run with this engine, for entries that are not set; see ``ModelConfig.defaults``.

        What learner and engine judge differently is weighed where they are different programs.
        """
        weighs = self.is_separate and run.learner.old_logprobs == "learner"
        return {"objective": {"correction": {}}} if weighs else {}

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        """Explain what a run needs and the engine lacks; None if nothing."""
        able, instead = self.capabilities, "take one that does, such as engine.name = 'transformers', or leave"
        by_entropy = "rollout.branching" if run.rollout.branching is not None else run.credit.needs.get("entropy")
        if by_entropy and not able.entropy:
            return (
                f"{by_entropy} goes by the entropies that tokens were drawn from, which engine {self.name} does not "
                f"know: {instead} {by_entropy} out"
            )
        if run.learner.lora_rank and not able.lora:
            return (
                f"learner.lora_rank learns adapters, which engine {self.name} does not take: {instead} "
                "learner.lora_rank at 0"
            )
        if run.agent.only_admissible and not able.choices:
            return (
                f"agent.only_admissible limits replies token by token, which engine {self.name} cannot: {instead} "
                "agent.only_admissible out"
            )
        if run.agent.chooses == "command" and not able.commands:
            return (
                f"agent.choices = 'command' chooses among whole commands, which engine {self.name} cannot: {instead} "
                "agent.choices out"
            )
        if run.order.is_asynchronous and not able.own_weights:
            return (
                f"order.kind = 'asynchronous' draws while the learner changes the weights, which engine {self.name} is "
                "not known to do: take one that does, such as engine.name = 'transformers', or leave order out"
            )
        return None


@dataclass(frozen=True)
class EngineContext:
    """The model and the run that an engine is built for.

    Attributes:
        model: holds the weights to begin with, as version 0. A learner may change them in place at any time; an engine
            that draws with the module itself is labelled by the next ``load``.
        end_ids: tokens that end a reply.
        lora: whether the model has adapters; only they are learnt then.
        learns: whether a learner trains the model in the same process, and takes memory for it.
        rank_share: where several ranks learn, how much of the training the model's device holds next to the model;
            None: one process learns.
        beside: bytes that the learner keeps besides weights, gradients and the optimiser's state.
        reference: whether the learner keeps a copy of the trained weights on the model's device.
        bodies: how many critics or other policies of the model's size the learner trains besides.
        moments: whether the optimiser's state is on the model's device too, or in the host's memory.
        max_context: tokens of the longest prompt and reply together.
        barrier: of the engines that play the same episodes, for an engine that computes in batches.
        own_weights: the learner changes the model while the engine draws: draw with a copy of it.
    """

    model: "PreTrainedModel"
    end_ids: frozenset[int]
    lora: bool = False
    learns: bool = True
    rank_share: float | None = None
    beside: float = 0.0
    reference: bool = False
    bodies: int = 0
    moments: bool = True
    max_context: int = 2048
    barrier: BatchBarrier = field(default_factory=BatchBarrier)
    own_weights: bool = False


ENGINES: Registry[Engine] = Registry("engine", "manyturn.agents.engine.engines")


def build_engine(config: EngineConfig, context: EngineContext) -> Engine:
    """The engine of a configuration; raises ConfigError for one that is not what its options promise."""
    engine = ENGINES.apply(config, context)
    if engine.capabilities != config.capabilities:
        raise ConfigError(
            f"engine {config.name} has {engine.capabilities}, where its options promise {config.capabilities}: give "
            "both the same value"
        )
    return engine
