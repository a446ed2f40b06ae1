"""Policies that play roles of a run and do not learn in it: endpoints, models and runs on disk, policies in Python."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from manyturn.agents.engine.batch_barrier import BatchBarrier
from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS, Scripted
from manyturn.agents.play.endpoint.options import Endpoint, EndpointSampling
from manyturn.agents.play.endpoint.policy import OpenAIPolicy
from manyturn.agents.play.python_policy import policy_in_file
from manyturn.agents.play.role_policy import Partner
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.recipe.role_config import ENDPOINT_AGENT, MODEL_AGENT, RoleConfig, RoleKind
from manyturn.trainers.record.checkpoint import ONE_POLICY, weights_hash
from manyturn.trainers.run.setup.saved_policy import SavedRun, loaded, saved_run, with_context


@dataclass(frozen=True)
class PartnerIdentity:
    """A policy that plays a role and does not learn, as the state of a run records it.

    Attributes:
        policy: word that names it in the configuration.
        name: its name with a hash of its weights or code.
        checkpoint: of a run, that it plays from; empty for others.
        endpoint: address that is asked; empty for others.
    """

    policy: str
    name: str
    checkpoint: str = ""
    endpoint: str = ""

    def __str__(self) -> str:
        return f"{self.name} at {self.endpoint}" if self.endpoint else self.name


def partner_changes(
    was: Mapping[str, Mapping[str, str]], now: Mapping[str, PartnerIdentity]
) -> dict[str, tuple[str, str]]:
    """Role -> both partners in words, where one word of the configuration names another policy than it did.

    Args:
        was: role -> plain values of a ``PartnerIdentity``, from a run's state.
    """
    before = {role: PartnerIdentity(**was[role]) for role in now if role in was}
    return {
        role: (str(one), str(now[role]))
        for role, one in before.items()
        if one.policy == now[role].policy and str(one) != str(now[role])
    }


@dataclass
class FrozenRoles:
    """Roles of a run whose policies come from elsewhere. Roles with equal options share a policy.

    Args:
        device: where models are.
        barrier: of all engines that play the same episodes.
        keeps_bits: whether engines compute in rounds, so that replies are the same to the bit.
        pinned: role -> plain values of the partner that played it before; a run plays from the same checkpoint again
            as long as that is there.

    Attributes:
        policies: role -> policy.
        partners: role -> identity of its policy, if that is no script.
        engines: of the models among them.
        endpoints: those that are asked.
    """

    device: torch.device
    barrier: BatchBarrier = field(default_factory=BatchBarrier)
    keeps_bits: bool = True
    pinned: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    policies: dict[str, Scripted | Partner] = field(default_factory=dict)
    partners: dict[str, PartnerIdentity] = field(default_factory=dict)
    engines: list[Engine] = field(default_factory=list)
    endpoints: list[OpenAIPolicy] = field(default_factory=list)
    _checkpoints: dict[str, str] = field(default_factory=dict)

    @property
    def plain_partners(self) -> dict[str, dict[str, str]]:
        """The identities of ``partners`` as plain values."""
        return {role: dict(vars(partner)) for role, partner in self.partners.items()}

    def add_all(self, config: RunConfig) -> None:
        """Load the policies of all roles but those of policies in training, and of their past."""
        seen = list[tuple[RoleConfig, Scripted | Partner]]()
        for role, entry in config.roles.items():
            if entry.kind in (RoleKind.TRAINED, RoleKind.PAST):
                continue
            shared = next((policy for other, policy in seen if other == entry), None)
            if shared is None or entry.kind is RoleKind.SAVED:  # which of a run's policies plays depends on the role
                try:
                    shared = self._policy(role, entry)
                except ValueError as error:
                    fix = str(error).replace("--endpoint.", f"--roles.{role}.endpoint.")
                    raise ConfigError(f"roles.{role}: {fix}") from error
                seen.append((entry, shared))
            self.policies[role] = shared
            if isinstance(shared, Partner):
                own: Any = shared.policy
                checkpoint, endpoint = self._checkpoints.get(role, ""), getattr(own, "where", "")
                self.partners[role] = PartnerIdentity(entry.policy, shared.name, checkpoint, endpoint)

    def _policy(self, role: str, entry: RoleConfig) -> Scripted | Partner:
        match entry.kind:
            case RoleKind.SCRIPT:
                return SCRIPTS[entry.policy]
            case RoleKind.FILE:
                return Partner(policy_in_file(entry.policy))
            case RoleKind.ENDPOINT:
                return Partner(self._endpoint(entry))
            case _:
                return Partner(self._saved(role, entry))

    def _endpoint(self, entry: RoleConfig) -> OpenAIPolicy:
        connection = Endpoint() if entry.endpoint is None else entry.endpoint.connection()
        config = _with(ENDPOINT_AGENT, entry.agent)
        protocol, model = entry.model
        sampling = entry.sampling or EndpointSampling()
        self.endpoints.append(OpenAIPolicy(model, config, sampling, connection, protocol))
        return self.endpoints[-1]

    def _saved(self, role: str, entry: RoleConfig) -> Agent:
        pin, place = self.pinned.get(role, {}), Path(entry.policy)
        if pin.get("policy") == entry.policy and pin["checkpoint"] and Path(pin["checkpoint"]).exists():
            place = Path(pin["checkpoint"])
        run = saved_run(place) if place.exists() else None
        if run is None:
            language, config = loaded(entry.policy, self.device), _with(MODEL_AGENT, entry.agent)
            given = entry.agent is not None and "max_context" in entry.agent.model_fields_set
            config = with_context(config, language, entry.policy, given=given)
            sampling = Sampling(max_tokens=config.reply_format.reply_tokens(tools=False))
        else:
            if entry.agent is not None:
                raise ConfigError(f"agent has no effect: {entry.policy} acts as it was trained to; leave it out")
            language = run.language(_policy_of(run, role), self.device)
            self._checkpoints[role] = str(run.checkpoint)
            config, sampling = run.config.agent, run.config.sampling
        name = f"{entry.policy if run is None else run.label}, weights {weights_hash(language.model)[:16]}"
        return self.agent(language, config, local_sampling(sampling, entry), name)

    def agent(self, language: LanguageModel, config: AgentConfig, sampling: Sampling, name: str) -> Agent:
        """A model that plays, with an engine of its own."""
        context = EngineContext(
            language.model, language.template.end_ids, max_context=config.max_context, barrier=self.barrier
        )
        self.engines.append(build_engine(TransformersConfig(reproducible=self.keeps_bits), context))
        return Agent(config, language.template, self.engines[-1], sampling, name)


def local_sampling(usual: Sampling, entry: RoleConfig) -> Sampling:
    """Sampling of a model here in a role."""
    given = {} if entry.sampling is None else entry.sampling.model_dump(include=entry.sampling.model_fields_set)
    return usual.model_copy(update=given)


def _with(usual: AgentConfig, given: AgentConfig | None) -> AgentConfig:
    """The usual options with those that are given."""
    if given is None:
        return usual
    return usual.model_copy(update={name: getattr(given, name) for name in given.model_fields_set})


def _policy_of(run: SavedRun, role: str) -> str:
    """Name of a run's policy that plays a role: the one that played it there, or the only one. Raises ConfigError."""
    roles, trained = run.config.roles, run.config.trained_roles
    if not roles:
        return ONE_POLICY
    if role in roles and roles[role].kind is RoleKind.TRAINED:
        return roles[role].policy
    if len(trained) == 1:
        return next(iter(trained))
    raise ConfigError(
        f"{run.path} trained {', '.join(trained)}, and none of them as {role}: name a run with one policy, or one that "
        "trained this role"
    )
