"""Check of an engine's enforced limits before use; an engine that would not enforce them is refused."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from manyturn.containers.engine.container_engine import ContainerEngine, client, engine_errors
from manyturn.containers.sandbox import WORKSPACE, EngineUnavailable

_CAPABILITIES = 0b1110_0001  # CAP_SETUID, CAP_SETGID, CAP_KILL, and CAP_CHOWN under Podman
_MB = 1 << 20


class Facts(NamedTuple):
    """Facts that an engine states about itself.

    Attributes:
        server: its name and version.
        system: of its machine: kernel's type, architecture, cores, memory in bytes.
        cgroups: driver and version; with the driver "none" no limit is enforced, even if it says otherwise.
        enforced: limits by name.
        security: seccomp, apparmor, rootless, userns ...: what is switched on.
        storage: the driver of images.
        runtimes: that containers can be started with.
        podman: whether it is Podman behind Docker's API.
    """

    server: str
    system: str
    cores: int
    memory: int
    cgroups: str
    enforced: Mapping[str, bool]
    security: tuple[str, ...]
    storage: str
    runtimes: tuple[str, ...]
    podman: bool

    def lines(self) -> list[str]:
        """A report."""
        limits = ", ".join(f"{name} {'yes' if held else 'NO'}" for name, held in self.enforced.items())
        return [
            f"engine    {self.server} on {self.system}, {self.cores} cores, {self.memory >> 20} MiB",
            f"cgroups   {self.cgroups}",
            f"enforced  {limits}",
            f"security  {', '.join(self.security) or 'none'}",
            f"storage   {self.storage}"
            + (" (copies the image for each container: slow)" if self.storage == "vfs" else ""),
            f"runtimes  {', '.join(self.runtimes)}",
        ]


def facts(info: Mapping[str, Any]) -> Facts:
    """Read an engine's answer to ``info``."""
    driver, version = str(info.get("CgroupDriver") or "none"), str(info.get("CgroupVersion") or "1")
    # Podman without root says that it has all limits, and ignores them where the version is 1.
    limited = driver != "none" and not (info.get("Rootless") and version == "1")
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    security = [part[5:] for option in options for part in option.split(",") if part.startswith("name=")]
    return Facts(
        server=f"{'Podman' if 'BuildahVersion' in info else 'Docker'} {info.get('ServerVersion', '?')}",
        system=f"{info.get('OSType', '?')}/{info.get('Architecture', '?')}",
        cores=int(info.get("NCPU") or 1),
        memory=int(info.get("MemTotal") or 0),
        cgroups=f"{driver}, version {version}",
        enforced={
            "memory": limited and bool(info.get("MemoryLimit")),
            "swap": limited and bool(info.get("SwapLimit")),
            "processes": limited and bool(info.get("PidsLimit")),
            "cpus": limited and bool(info.get("CpuCfsQuota")),
        },
        security=tuple(security),
        storage=str(info.get("Driver") or "?"),
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        podman="BuildahVersion" in info,
    )


_facts_by_engine: dict[tuple[int, str | None], Facts] = {}


def examined() -> Facts:
    """The facts of the engine at DOCKER_HOST, asked for once. Raises EngineUnavailable."""
    key = os.getpid(), os.environ.get("DOCKER_HOST")
    if key not in _facts_by_engine:
        with engine_errors("be examined"):
            _facts_by_engine[key] = facts(client().info())
    return _facts_by_engine[key]


def demand(facts: Facts, engine: ContainerEngine) -> None:
    """Raises EngineUnavailable for an engine that would not hold the limits. Swap is the engine's machine's affair."""
    missing = [name for name, held in facts.enforced.items() if not held and name != "swap"]
    if not facts.system.startswith("linux/"):
        raise EngineUnavailable(f"sandboxes are Linux containers, and the engine's are {facts.system}")
    if missing:
        raise EngineUnavailable(
            f"the engine does not enforce limits of {', '.join(missing)} (cgroups: {facts.cgroups}): "
            "run it as root, or rootless on cgroup version 2 with the controllers delegated"
        )
    if "seccomp" not in facts.security:
        raise EngineUnavailable("the engine does not filter system calls: its kernel or its build lacks seccomp")
    if engine.limits.cpus > facts.cores:
        raise EngineUnavailable(
            f"engine.limits.cpus is {engine.limits.cpus:g}, and the engine's machine has {facts.cores} cores: "
            f"set it to {facts.cores} or less"
        )
    if engine.runtime is not None and engine.runtime not in facts.runtimes:
        raise EngineUnavailable(f"the engine has no runtime {engine.runtime!r}, only {', '.join(facts.runtimes)}")


def confirm(seen: Mapping[str, Any], engine: ContainerEngine) -> None:
    """Raises EngineUnavailable if what a container sees of itself is not what was demanded of the engine.

    A runtime that hides a fact (gVisor has no Seccomp line) is believed.
    """
    limits = engine.limits
    held = {
        "the tool server as first process": seen["pid"] == 1,
        "few capabilities": int(seen["capabilities"] or "0", 16) & ~_CAPABILITIES == 0,
        "no new privileges": seen["no_new_privileges"] in ("", "1"),
        "a filter of system calls": seen["seccomp"] in ("", "2"),
        "a read-only image": seen["root_read_only"],
        "no network": seen["routes"] == 0,
        "the memory limit": seen["memory"] in ("", str(limits.memory_mb * _MB)),
        "the limit of processes": seen["processes"] in ("", str(limits.processes)),
        "the workspace's size": seen["room"][WORKSPACE]["bytes"] <= limits.workspace_mb * _MB,
    }
    broken = [name for name, good in held.items() if not good]
    if broken:
        raise EngineUnavailable(f"inside of a container there is not: {', '.join(broken)}")
