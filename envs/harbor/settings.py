"""Settings of ``task.toml`` that can be enforced here; others are refused by name.

Source: the package harbor 0.25.0, ``harbor.models.task.config``, schema 1.4.
"""

import tomllib
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, field_validator

from manyturn.envs.contract.registration.env_registry import NeedsSetup

# Field -> why it cannot be kept. Empty values, such as gpus = 0, ask for nothing.
_REFUSED = {
    "environment.gpus": "a sandbox has no GPU",
    "environment.gpu_types": "a sandbox has no GPU",
    "environment.tpu": "a sandbox has no TPU",
    "environment.mcp_servers": "a sandbox has no servers",
    "environment.skills_dir": "nobody reads skills here",
    "environment.healthcheck": "no process outlives a command, so there is nothing to wait for",
    "agent.user": "commands run as a user of ours, without rights",
    "verifier.user": "commands run as a user of ours, without rights",
    "verifier.environment": "verifiers run in the agent's image",
    "verifier.collect": "no process outlives a command, so there is nothing to collect",
    "steps.healthcheck": "no process outlives a command, so there is nothing to wait for",
}
_PLACES = ("environment", "agent", "verifier")
# What changes no reward, or is ours to say: limits are the sandbox's, and turns are counted instead of seconds.
_WITHOUT_EFFECT = {
    "": ("schema_version", "version", "task", "metadata", "source", "artifacts"),
    "environment": ("build_timeout_sec", "cpus", "memory_mb", "memory", "storage_mb", "storage"),
    "agent": ("timeout_sec",),
    "steps": ("artifacts",),
}
_NETWORK = ("network_mode", "allowed_hosts", "allow_internet")


def _plain(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if "${" in value:
            raise ValueError(f"{name} asks for a variable of this machine, which no container gets")
    return env


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentSettings(_Table):
    """Nothing of it has an effect here."""


class VerifierSettings(_Table):
    timeout_sec: FiniteFloat = Field(default=600.0, gt=0)
    env: dict[str, str] = {}
    environment_mode: Literal["shared"] | None = None
    _env = field_validator("env")(_plain)


class StepSettings(_Table):
    name: str = Field(pattern=r"^[^/\x00-\x1f\x7f.][^/\x00-\x1f\x7f]*$", max_length=200)
    min_reward: FiniteFloat | dict[str, FiniteFloat] | None = None
    verifier: VerifierSettings = VerifierSettings()
    agent: AgentSettings = AgentSettings()


class PlaceSettings(_Table):
    docker_image: str | None = None
    os: Literal["linux"] = "linux"
    workdir: str | None = None
    env: dict[str, str] = {}
    _env = field_validator("env")(_plain)


class SolutionSettings(_Table):
    env: dict[str, str] = {}
    _env = field_validator("env")(_plain)


class TaskSettings(_Table):
    environment: PlaceSettings = PlaceSettings()
    verifier: VerifierSettings = VerifierSettings()
    solution: SolutionSettings = SolutionSettings()
    agent: AgentSettings = AgentSettings()
    steps: tuple[StepSettings, ...] = ()
    multi_step_reward_strategy: Literal["mean", "final"] = "mean"


def read_settings(text: str, offline: bool) -> TaskSettings:
    """Settings of a task. Raises NeedsSetup for one that cannot be enforced.

    Args:
        text: of ``task.toml``.
        offline: a task that asks for a network is played without one.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NeedsSetup(f"task.toml cannot be read: {error}") from None
    _strip(table, offline)
    try:
        return TaskSettings.model_validate(table)
    except ValidationError as error:
        fault = error.errors()[0]
        what = (
            "is not known to us" if fault["type"] == "extra_forbidden" else fault["msg"].removeprefix("Value error, ")
        )
        raise NeedsSetup(f"task.toml: {'.'.join(map(str, fault['loc']))}: {what}") from None


def _strip(table: dict[str, Any], offline: bool) -> None:
    """Take out what has no effect, and refuse what cannot be kept."""
    steps = table.get("steps")
    tables = [("", table), *((place, table.get(place)) for place in _PLACES)]
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict):
            tables += [("steps", step), *((place, step.get(place)) for place in _PLACES)]
    for place, section in tables:
        if not isinstance(section, dict):
            continue
        for name in _WITHOUT_EFFECT.get(place, ()):
            section.pop(name, None)
        for name in list(section):
            if (why := _REFUSED.get(f"{place}.{name}")) and section[name]:
                raise NeedsSetup(f"task.toml: {place}.{name} cannot be had: {why}")
            if why:
                del section[name]
        _strip_network(place, section, offline)
        if isinstance(system := section.get("os"), str) and place == "environment":
            section["os"] = system.lower()
            if section["os"] != "linux":
                raise NeedsSetup("task.toml: environment.os cannot be had: sandboxes are of Linux")
        if section.get("environment_mode") == "separate":
            raise NeedsSetup("task.toml: verifier.environment_mode cannot be had: verifiers run in the agent's image")


def _strip_network(place: str, table: dict[str, Any], offline: bool) -> None:
    given = {name: table.pop(name) for name in _NETWORK if place and name in table}
    modes = [name for name, value in given.items() if value and value != "no-network"]
    if modes and not offline:
        raise NeedsSetup(
            f"task.toml: {place}.{modes[0]} cannot be had: a sandbox has no network. --env.args.offline true plays the "
            "task without one"
        )


def thresholds(step: StepSettings) -> Mapping[str, float]:
    """Key of a reward -> what it must reach for the next step to begin."""
    least = step.min_reward
    return least if isinstance(least, dict) else {} if least is None else {"reward": least}
