"""A policy that is trained: the model, the engine that draws with it, the agent that asks the engine, the learner.

A run has one, or several where different policies play the roles of an environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyturn.agents.engine.card.device_handover import DeviceHandover
from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.agent import Agent
from manyturn.envs.contract.options.registry import Memory
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.record.checkpoint import ONE_POLICY, beside, read_tensors, weights_hash
from manyturn.trainers.run.setup.past_selves import without_copies


@dataclass
class Trainee:
    """One policy of a run.

    Attributes:
        name: which of the run's policies it is.
        roles: those of the environment that it plays, and learns from.
        taught: those that it is shown in the warm-up: its own, and those of its past selves.
        language: model and tokenizer; the learner changes its weights in place.
        engine: draws replies with the learner's weights as of the last ``publish``.
        agent: the policy as it plays.
        handover: of the device that engine and learner share.
        notice: what the run has to say of its memory.
        gap_cause: why engine and learner judge tokens differently, once that was found out; see ``engine_alarm``.
    """

    name: str
    roles: tuple[str, ...]
    taught: tuple[str, ...]
    language: LanguageModel
    engine: Engine
    agent: Agent
    learner: Learner
    handover: DeviceHandover
    notice: str | None = None
    gap_cause: str | None = None

    async def publish(self) -> None:
        """Wake the engine, to draw with the learner's present weights."""
        is_new = self.engine.version != self.learner.updates
        await self.handover.to_engine(self.hand_over if is_new else None)

    async def hand_over(self) -> None:
        """Have the engine load the learner's present weights."""
        self.learner.put_together()
        await self.engine.load(ModuleWeights(self.language.model), self.learner.updates)

    def at_temperature(self, temperature: float) -> Agent:
        """The same policy, drawing at another temperature."""
        agent = self.agent
        sampling = Sampling(temperature=temperature, max_tokens=agent.sampling.max_tokens)
        return Agent(agent.config, agent.template, self.engine, sampling, agent.name)

    def reading(self, max_context: int) -> Agent:
        """The same policy with another limit of prompt and reply, in tokens."""
        agent = self.agent
        config = agent.config.model_copy(update={"max_context": max_context})
        return Agent(config, agent.template, self.engine, agent.sampling, agent.name)

    @property
    def weights(self) -> str:
        """Hash of its weights."""
        self.learner.put_together()
        return weights_hash(self.language.model)

    async def load(self, checkpoint: Path, plain: Mapping[str, Any]) -> None:
        """Go on from a checkpoint.

        Args:
            plain: what ``Learner.plain`` returned then.
        """
        self.learner.load_plain(plain)
        self.language.load_weights(checkpoint / beside("model", self.name))
        self.learner.load_tensors(without_copies(read_tensors(checkpoint, self.name)))
        await self.hand_over()

    def labelled(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """Metrics under names that no other policy of the run uses."""
        return {name if self.name == ONE_POLICY else f"{self.name}/{name}": value for name, value in figures.items()}

    def memory(self, memory: Memory) -> Memory:
        """The memory of its credit, out of that of the run."""
        return memory.get(_place(self.name), {})

    def remembering(self, memory: Memory, own: Memory) -> dict[str, Any]:
        """The memory of the run, when this policy's credit remembers ``own``."""
        return {**memory, _place(self.name): dict(own)}


def _place(policy: str) -> str:
    return f"policy {policy}"
