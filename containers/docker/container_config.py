"""Settings of one container: no rights, no network, no disk, limits on everything else."""

from typing import Any

from manyturn.containers.docker import bootstrap
from manyturn.containers.docker.seccomp import option
from manyturn.containers.engine import owner
from manyturn.containers.engine.container_engine import LABEL, ContainerEngine, client
from manyturn.containers.sandbox import WORKSPACE, SandboxLimits

CAPABILITIES = ("KILL", "SETGID", "SETUID")
"""Of the tool server, to drop root and to end the agent's processes. The agent's commands have none."""

_MB = 1 << 20
_OPEN_FILES = 1024
_SIGNALS = 1024  # that wait, and timers
_USER_PROCESSES = 16384  # of all containers that share a user id; the limit that holds is that of the container
_FILE_MB = 16  # at least this, since the tool server is bound by it too


def arguments(engine: ContainerEngine, name: str, agent: int, podman: bool = False) -> dict[str, Any]:
    """Arguments of APIClient.create_container, in the dialect of one of the two engines.

    Args:
        agent: user id of the agent's commands.
    """
    return {
        "image": engine.image,
        "name": name,
        "entrypoint": bootstrap.command(engine.python),
        "command": [],
        "user": "0:0",
        "hostname": "sandbox",
        "working_dir": "/",
        "stdin_open": True,
        "healthcheck": {"test": ["NONE"]},  # an image's would run as root next to the server
        "labels": {LABEL: "1", **owner.this_process().labels},
        "host_config": _host_config(engine, agent, podman),
    }


def _host_config(engine: ContainerEngine, agent: int, podman: bool) -> Any:
    from docker.types import LogConfig

    limits = engine.limits
    return client().create_host_config(
        auto_remove=True,
        read_only=True,
        tmpfs=_podmans_tmpfs(limits) if podman else _tmpfs(limits, agent),
        network_mode="none",
        ipc_mode="none",  # its /dev/shm would be bounded in bytes only, and not be emptied
        cap_drop=["ALL"],
        cap_add=[*CAPABILITIES, "CHOWN"] if podman else list(CAPABILITIES),
        security_opt=["no-new-privileges", option(podman)],
        mem_limit=limits.memory_mb * _MB,
        memswap_limit=limits.memory_mb * _MB,
        nano_cpus=round(limits.cpus * 1e9),
        pids_limit=limits.processes,
        ulimits=_ulimits(limits, podman),
        log_config=LogConfig(type="none"),  # all that comes out is frames
        runtime=engine.runtime,
    )


def _tmpfs(limits: SandboxLimits, agent: int) -> dict[str, str]:
    common = f"rw,nosuid,nodev,nr_inodes={limits.files}"
    return {
        WORKSPACE: f"{common},exec,size={limits.workspace_mb}m,mode=0755,uid={agent},gid={agent}",
        "/tmp": f"{common},exec,size={limits.scratch_mb}m,mode=1777",
        "/dev/shm": f"{common},noexec,size={limits.scratch_mb}m,mode=1777",
    }


def _podmans_tmpfs(limits: SandboxLimits) -> dict[str, str]:
    """Podman knows neither owners nor inodes: the tool server takes the workspace over, memory bounds the inodes.

    Next to a read-only image it puts file systems of its own, without bounds; ours in their place are closed.
    """
    common, closed = "rw,nosuid,nodev", "ro,nosuid,nodev,noexec,size=64k,mode=0755"
    return {
        WORKSPACE: f"{common},exec,size={limits.workspace_mb}m,mode=0755",
        "/tmp": f"{common},exec,size={limits.scratch_mb}m,mode=1777",
        "/dev/shm": f"{common},noexec,size={limits.scratch_mb}m,mode=1777",
        "/run": closed,
        "/var/tmp": closed,
    }


def _ulimits(limits: SandboxLimits, podman: bool) -> list[Any]:
    from docker.types import Ulimit

    largest = max(limits.workspace_mb, limits.scratch_mb, _FILE_MB) * _MB
    bounds = {"core": 0, "msgqueue": 0, "nofile": _OPEN_FILES, "sigpending": _SIGNALS, "fsize": largest}
    if podman:  # sets four million by itself, which a root without CAP_SYS_RESOURCE may not
        bounds["nproc"] = max(_USER_PROCESSES, limits.processes)
    return [Ulimit(name=name, soft=bound, hard=bound) for name, bound in bounds.items()]
