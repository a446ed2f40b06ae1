"""Past selves: the policy that a run trains, as it was K steps ago and more, in a role of its own.

With C(s) the copy of the weights that plays in step s, taken when so many steps are done:

    C(s) = K max(0, floor((s - 1) / K) - 1)

A copy is taken every K steps, and begins to play K steps later, for K steps. So from step K + 1 on the past is K to
2K - 1 steps behind the weights that draw in the same step, and two copies are kept. Up to step 2K the past is the
warmed-up policy, which is less than K steps old in the first K steps. In the warm-up it is the policy itself. Copies
are part of each checkpoint, under names that say when they were taken.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from safetensors.torch import save_file

from manyturn.agents.engine.engine import Engine
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.agent import Agent
from manyturn.agents.play.role_policy import Partner
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.recipe.role_config import RoleConfig, RoleKind
from manyturn.trainers.record.checkpoint import beside, read_state, read_tensors, weights_hash
from manyturn.trainers.run.setup.frozen_roles import FrozenRoles, local_sampling
from manyturn.trainers.run.setup.saved_policy import SavedRun, loaded

_MARK = "past."  # begins the names of copies in a checkpoint

Copy = dict[str, torch.Tensor]


class HeldWeights:
    """Weights that were copied to the host's memory, as a source for an engine."""

    def __init__(self, tensors: Copy):
        self.module = None
        self._tensors = tensors

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._tensors.items()


@dataclass
class PastSelf:
    """A past self in a run.

    Attributes:
        every: K, in steps.
        agent: plays the roles.
        engine: draws with a copy of its own.
        copies: number of steps that were done -> the weights of then; the first one plays.
    """

    every: int
    agent: Agent
    engine: Engine
    language: LanguageModel
    copies: dict[int, Copy] = field(default_factory=dict)
    _loaded: object = None

    def note(self, done: int) -> None:
        """So many steps are done: take a copy if one is due, and forget those that will not play again."""
        if done % self.every == 0 and done not in self.copies:
            self.copies[done] = {n: t.detach().cpu().clone() for n, t in ModuleWeights(self.language.model).tensors()}
        oldest = playing_copy(done + 1, self.every)
        self.copies = {taken: copy for taken, copy in self.copies.items() if taken >= oldest}

    async def publish(self, updates: int) -> None:
        """Have the engine draw with the copy that plays, and wake it.

        Args:
            updates: that the policy has had; before the first copy, its present weights play.
        """
        taken = min(self.copies, default=None)
        state = ("copy", taken) if taken is not None else ("present", updates)
        if state != self._loaded:
            source = ModuleWeights(self.language.model) if taken is None else HeldWeights(self.copies[taken])
            await self.engine.load(source, taken or 0)
            self._loaded = state
        await self.engine.wake()

    def tensors(self) -> Copy:
        """The copies as entries of a checkpoint."""
        return {
            f"{_MARK}{self.every}.{taken}.{name}": tensor
            for taken, copy in self.copies.items()
            for name, tensor in copy.items()
        }

    def load(self, saved: Mapping[str, torch.Tensor]) -> None:
        """Take the copies over from a checkpoint's tensors."""
        self.copies, self._loaded = copies_in(saved, self.every), None


def past_selves(config: RunConfig, agent: Agent, language: LanguageModel, frozen: FrozenRoles) -> tuple[PastSelf, ...]:
    """The past selves of the policy that a run trains.

    Args:
        agent: the policy as it plays.
        language: its model.
        frozen: takes the roles and the engines.
    """
    selves = list[tuple[RoleConfig, PastSelf, Partner]]()
    for role, entry in config.roles.items():
        if entry.kind is RoleKind.PAST:
            if not any(entry == other for other, _, _ in selves):
                past = _past_self(entry, agent, language, frozen)
                selves.append((entry, past, Partner(past.agent)))
            frozen.policies[role] = next(partner for other, _, partner in selves if other == entry)
    return tuple(past for _, past, _ in selves)


def _past_self(entry: RoleConfig, agent: Agent, language: LanguageModel, frozen: FrozenRoles) -> PastSelf:
    """The past of a policy, with an engine that draws with weights of its own."""
    context = EngineContext(
        language.model,
        language.template.end_ids,
        isinstance(language.model, PeftModel),
        max_context=agent.config.max_context,
        barrier=frozen.barrier,
        own_weights=True,
    )
    engine = build_engine(TransformersConfig(reproducible=frozen.keeps_bits), context)
    frozen.engines.append(engine)
    own = Agent(agent.config, language.template, engine, local_sampling(agent.sampling, entry), entry.policy)
    return PastSelf(entry.steps_ago, own, engine, language)


def refuse_missing_copies(checkpoint: Path, roles: Mapping[str, RoleConfig]) -> None:
    """Raise ConfigError where a checkpoint has no copy for a past self. In the warm-up none is needed yet."""
    state = read_state(checkpoint)
    ages = [word for word, copies in state.get("past", {}).items() if copies]
    absent = [role for role, entry in roles.items() if entry.kind is RoleKind.PAST and entry.policy not in ages]
    if absent and not state.get("warming"):
        there = f"it has those of {', '.join(ages)}" if ages else "it has none"
        raise ConfigError(
            f"roles.{absent[0]}: {checkpoint} has no weights for {roles[absent[0]].policy}, {there}: "
            f"{_instead(checkpoint)}"
        )


def _instead(checkpoint: Path) -> str:
    """The fix where no past self can play."""
    first = min(path for path in checkpoint.parent.iterdir() if path.name.startswith("step_"))
    return f"name a checkpoint in its place, such as {first}"


def saved_past(run: SavedRun, frozen: FrozenRoles) -> None:
    """The past selves of a run on disk, as they were to play in its next step.

    Args:
        frozen: takes the roles and the engines.

    Raises:
        ConfigError: the run has no weights of that age, or no policy plays of which they would be the past.
    """
    refuse_missing_copies(run.checkpoint, run.config.roles)
    for role, entry in run.config.roles.items():
        if entry.kind is not RoleKind.PAST:
            continue
        if len(trained := [*run.config.trained_roles]) != 1:
            playing = f"{', '.join(trained)} play" if trained else "none of the run's policies plays"
            raise ConfigError(
                f"roles.{role}: {entry.policy} is the past of the one policy of a run, and here {playing}: "
                f"{_instead(run.checkpoint)}"
            )
        [policy] = trained
        copies = copies_in(read_tensors(run.checkpoint, policy), entry.steps_ago)
        language = _past_language(run, policy, next(iter(copies.values()), None))
        sampling = local_sampling(run.config.sampling, entry)
        label = f"{entry.policy} of {run.label}, weights {weights_hash(language.model)[:16]}"
        frozen.policies[role] = Partner(frozen.agent(language, run.config.agent, sampling, label))


def _past_language(run: SavedRun, policy: str, copy: Copy | None) -> LanguageModel:
    """The model of a run's policy with the weights of a copy; as it is where none was taken yet."""
    if copy is not None and run.config.learner.lora_rank:  # adapters are merged when they are loaded
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(run.checkpoint / beside("model", policy), folder, dirs_exist_ok=True)
            save_file(copy, Path(folder) / "adapter_model.safetensors")
            return loaded(folder)
    language = run.language(policy)
    own = dict(language.model.named_parameters())
    with torch.no_grad():
        for name, tensor in (copy or {}).items():
            own[name].copy_(tensor)
    return language


def playing_copy(step: int, every: int) -> int:
    """Number of steps that were done when the copy was taken which plays in a step.

    >>> [playing_copy(step, 2) for step in range(1, 8)]
    [0, 0, 0, 0, 2, 2, 4]
    """
    return every * max(0, (step - 1) // every - 1)


def copies_in(saved: Mapping[str, torch.Tensor], every: int) -> dict[int, Copy]:
    """The copies of a past self among a checkpoint's tensors, the one that plays first."""
    copies, mark = dict[int, Copy](), f"{_MARK}{every}."
    for name, tensor in saved.items():
        if name.startswith(mark):
            taken, _, own = name.removeprefix(mark).partition(".")
            copies.setdefault(int(taken), {})[own] = tensor
    return dict(sorted(copies.items()))


def without_copies(saved: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint's tensors without those of past selves."""
    return {name: tensor for name, tensor in saved.items() if not name.startswith(_MARK)}
