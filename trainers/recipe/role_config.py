"""Policies of the roles of an episode: which one plays a role, and how, where it does not learn in this run.

A word names the policy, as ``manyturn evaluate`` takes it, or a policy that the run trains:

    buyer                a policy that this run trains; those of one name share it
    expert, random       the environment's expert, and random admissible commands
    openai:MODEL         a model at an endpoint; openai-responses:MODEL and anthropic:MODEL at one of another protocol
    FILE.py:POLICY       a policy in Python
    past:K               the policy that this run trains, as it was K to 2K - 1 steps ago; in the first K steps, as the
                         warm-up left it
    runs/a, ./model      a run's folder, a checkpoint, or a model's folder, GGUF file or id: any word with a slash
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import field_validator, model_serializer, model_validator

from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS
from manyturn.agents.play.endpoint.options import EndpointSampling, NamedHeaders
from manyturn.agents.text.formats.tagged import TaggedConfig
from manyturn.envs.contract.options.options import Options, set_values
from manyturn.envs.contract.registration.env_registry import is_file
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.users.endpoint.protocols.registry import endpoint_model, is_endpoint

PAST = "past:"
LONGEST_CONTEXT = 8192  # what attention over one prompt may cost, unless more is asked for
LONGEST_CONVERSATION = 131_072  # tokens that an endpoint may be sent; most say themselves where they end
MODEL_AGENT = AgentConfig(format=TaggedConfig(), max_context=LONGEST_CONTEXT)
"""Options of a model that was not trained here."""
ENDPOINT_AGENT = MODEL_AGENT.model_copy(update={"max_context": LONGEST_CONVERSATION})
"""Options of a model at an endpoint."""
_NAME = re.compile(r"[A-Za-z0-9_]{1,40}")
_LOCAL = ("temperature", "max_tokens")  # what engines of ours take of the sampling


class RoleKind(StrEnum):
    """Kinds of policies, by the word that names them."""

    TRAINED = "trained"
    SCRIPT = "script"
    ENDPOINT = "endpoint"
    FILE = "file"
    PAST = "past"
    SAVED = "saved"


_SECTIONS: Mapping[RoleKind, tuple[str, ...]] = {
    RoleKind.ENDPOINT: ("agent", "sampling", "endpoint"),
    RoleKind.PAST: ("sampling",),
    RoleKind.SAVED: ("agent", "sampling"),
}
_INSTEAD: Mapping[RoleKind, str] = {
    RoleKind.TRAINED: "it learns in this run, as the run's own sections say",
    RoleKind.SCRIPT: "it draws no tokens",
    RoleKind.FILE: "it is called as it is",
    RoleKind.PAST: "it acts as the policy that is trained",
    RoleKind.ENDPOINT: "it is no option of an endpoint",
    RoleKind.SAVED: "only openai:MODEL, openai-responses:MODEL and anthropic:MODEL ask an endpoint",
}


class RoleConfig(Options):
    """Policy of a role. A plain string is the policy."""

    policy: str
    """Name of a policy that this run trains, expert, random, openai:MODEL, openai-responses:MODEL, anthropic:MODEL,
    FILE.py:POLICY, past:K, or a word with a slash, which is the folder of a run, a checkpoint or a model. Only those
    that the run trains learn."""
    agent: AgentConfig | None = None
    """Options of a model or an endpoint in this role; unset: as in an evaluation. A run acts as it was trained."""
    sampling: EndpointSampling | None = None
    """Sampling of its replies. All but temperature and max_tokens are of endpoints."""
    endpoint: NamedHeaders | None = None
    """Address of the endpoint, patience, and prices."""

    @model_validator(mode="before")
    @classmethod
    def _word_alone(cls, value: Any) -> Any:
        return {"policy": value} if isinstance(value, str) else value

    @field_validator("policy")
    @classmethod
    def _names_a_policy(cls, word: str) -> str:
        if word.startswith(PAST) and not re.fullmatch(r"[1-9]\d{0,5}", word.removeprefix(PAST)):
            raise ValueError(f"{word}: write past:K, with K in steps, such as past:10")
        if is_endpoint(word):
            endpoint_model(word)
        elif not (_NAME.fullmatch(word) or word.startswith(PAST) or is_file(word) or "/" in word):
            raise ValueError(
                f"{word!r} is no policy: a name of one that learns has letters, digits and _, at most 40; a folder has "
                "a slash, such as ./model; else write expert, random, openai:MODEL, FILE.py:POLICY or past:K"
            )
        return word

    @model_validator(mode="after")
    def _sections_have_an_effect(self) -> "RoleConfig":
        for name in ("agent", "sampling", "endpoint"):
            if getattr(self, name) is not None and name not in _SECTIONS.get(self.kind, ()):
                raise ValueError(f"{name} has no effect on {self.policy}: {_INSTEAD[self.kind]}; leave it out")
        if self.sampling is not None and self.kind is not RoleKind.ENDPOINT:
            for name in sorted(self.sampling.model_fields_set - {*_LOCAL}):
                raise ValueError(
                    f"sampling.{name} has no effect on {self.policy}: only endpoints take it; leave it out"
                )
            if self.sampling.temperature is None:
                raise ValueError(f"sampling.temperature of {self.policy} is a number: only endpoints leave it open")
        return self

    @model_serializer
    def _as_written(self) -> Any:
        given = set_values(self)
        return self.policy if given.keys() <= {"policy"} else given

    @property
    def kind(self) -> RoleKind:
        """Kind of the policy."""
        word = self.policy
        if word in SCRIPTS:
            return RoleKind.SCRIPT
        if is_endpoint(word):
            return RoleKind.ENDPOINT
        if word.startswith(PAST):
            return RoleKind.PAST
        if is_file(word):
            return RoleKind.FILE
        return RoleKind.TRAINED if _NAME.fullmatch(word) else RoleKind.SAVED

    @property
    def model(self) -> tuple[str, str]:
        """The endpoint's protocol and model."""
        return endpoint_model(self.policy)

    @property
    def steps_ago(self) -> int:
        """Least number of steps that a past self is old."""
        return int(self.policy.removeprefix(PAST))

    def located(self) -> "RoleConfig":
        """The same with an absolute path, where the word is one."""
        word = self.policy
        if self.kind is RoleKind.FILE:
            file, _, name = word.rpartition(":")
            word = f"{Path(file).resolve()}:{name}"
        elif self.kind is RoleKind.SAVED and Path(word).exists():
            word = str(Path(word).resolve())
        return self.model_copy(update={"policy": word})

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        """Reason why the policy cannot play in a run."""
        if self.kind is not RoleKind.PAST:
            return None
        if len(run.trained_roles) > 1:
            return (
                f"{self.policy} is the past of the one policy that is trained, and [roles] names "
                f"{', '.join(run.trained_roles)}: give the roles that learn one name"
            )
        if run.order.is_asynchronous:
            return (
                f"{self.policy} takes turns with learning, and order.kind = 'asynchronous' plays episodes of several "
                "steps at once: leave one of them out"
            )
        return None


def trained_roles(roles: Mapping[str, RoleConfig]) -> dict[str, tuple[str, ...]]:
    """Each policy that is trained, and the roles that it plays.

    >>> words = {"buyer": "one", "broker": "expert", "seller": "one", "judge": "other"}
    >>> trained_roles({role: RoleConfig(policy=word) for role, word in words.items()})
    {'one': ('buyer', 'seller'), 'other': ('judge',)}
    """
    names = dict.fromkeys(config.policy for config in roles.values() if config.kind is RoleKind.TRAINED)
    return {name: tuple(role for role, config in roles.items() if config.policy == name) for name in names}
