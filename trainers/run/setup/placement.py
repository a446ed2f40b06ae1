"""Placement of a run: where its episodes are played, where its tokens are drawn, and who learns with it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch

from manyturn.agents.engine.engine import Engine
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.envs.hosting.local.mixed_seats import MixedSeats
from manyturn.envs.hosting.local.seats import Seats, open_seats
from manyturn.trainers.learn.ranks.rendezvous import Meeting
from manyturn.trainers.recipe.config import EnvConfig, RunConfig
from manyturn.trainers.run.setup.ranks.machine_processes import MachineProcesses

_OWN_SAMPLERS = (
    "the run has started it on this machine: it has no memory left, or was killed",
    "go on with manyturn train --resume RUN",
)


def seats_of(config: RunConfig, meeting: Meeting | None = None) -> Seats:
    """Seats to be entered. Raises ImportError that names the extra where that is missing.

    Args:
        meeting: where ranks that are placed along with the hosts find this process.
    """
    limit, placement = config.rollout.concurrency, config.placement
    if config.env is None:
        return MixedSeats({name: _local(env, limit) for name, env in config.environments.items()})
    env = config.env
    if placement.kind == "local" or (placement.kind == "static" and not placement.hosts):
        return _local(env, limit)
    if placement.kind == "static":
        with _needing("hosts", placement.kind):
            from manyturn.envs.hosting.remote.hosted_seats import HostedSeats, Hosts
        hosts = Hosts(placement.hosts, _token(), placement.wait, placement.silence)
        return HostedSeats(env.id, env.args, env.wrappers, limit, hosts)
    with _needing("ray", placement.kind):
        from manyturn.envs.hosting.remote.ray_seats import RayHosts, RaySeats

        if find_spec("ray") is None:  # it is imported in a process of its own
            raise ModuleNotFoundError(name="ray")
    counted: dict[str, Any] = {}
    if placement.cluster is not None:
        counted = {"cpus": placement.cpus, "gpus": placement.gpus, "resources": placement.resources}
    ray_hosts = RayHosts(
        placement.count,
        placement.cluster,
        remote=placement.remote,
        workers=env.workers,
        timeout=env.timeout,
        limits=env.limits,
        wait=placement.wait,
        silence=placement.silence,
        ranks=placement.ranks - 1,
        port=None if meeting is None else meeting.port,
        samplers=placement.sampler_count,
        **counted,
    )
    return RaySeats(env.id, env.args, env.wrappers, limit, ray_hosts)


def _local(env: EnvConfig, limit: int) -> Seats:
    return open_seats(env.id, env.args, env.wrappers, limit, env.workers, env.timeout, env.limits)


def processes_of(config: RunConfig, meeting: Meeting | None, device: torch.device) -> MachineProcesses | None:
    """Ranks and samplers that the run starts itself, to be entered; None if there are none.

    Raises:
        ImportError: samplers need an extra, which it names.
        ConfigError: the machine has fewer GPUs than that.
    """
    placement = config.placement
    if placement.kind != "local" or (placement.ranks == 1 and not placement.sampler_count):
        return None
    if placement.sampler_count:
        with _needing("hosts", placement.kind):
            import manyturn.agents.engine.remote_samplers.remote_engine  # noqa: F401
    return MachineProcesses(placement.ranks, placement.sampler_count, meeting.port if meeting else None, device)


def engine_of(
    config: RunConfig, context: EngineContext, seats: Seats, processes: MachineProcesses | None = None
) -> Engine:
    """The engine, here or at samplers. Raises ImportError that names the extra where that is missing.

    Args:
        seats: of this run, which have been entered: what places hosts places samplers too.
        processes: that the run has started itself.
    """
    placement = config.placement
    if processes is not None and processes.sampler_urls:
        from manyturn.agents.engine.remote_samplers.remote_engine import RemoteEngine, Samplers

        waits = placement.wait, placement.silence
        at = Samplers(processes.sampler_urls, processes.token, *waits, config.threads, *_OWN_SAMPLERS)
        return RemoteEngine(context, config.engine, at)
    if placement.sampler_count:
        from manyturn.agents.engine.remote_samplers.ray_engine import RayRemoteEngine
        from manyturn.envs.hosting.remote.ray_seats import RaySeats

        assert isinstance(seats, RaySeats)
        waits = placement.wait, placement.silence
        return RayRemoteEngine(context, config.engine, seats, *waits, config.threads)
    if not placement.sampler_urls:
        return build_engine(config.engine, context)
    with _needing("hosts", placement.kind):
        from manyturn.agents.engine.remote_samplers.remote_engine import RemoteEngine, Samplers
    at = Samplers(placement.sampler_urls, _token(), placement.wait, placement.silence, config.threads)
    return RemoteEngine(context, config.engine, at)


def _token() -> str | None:
    """The token that hosts and samplers require."""
    return os.environ.get("MANYTURN_TOKEN") or None


@contextmanager
def _needing(extra: str, kind: str) -> Iterator[None]:
    """Around imports of what a placement needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("manyturn"):
            raise
        raise ImportError(
            f"placement.kind = {kind!r} needs the package {error.name}: pip install 'manyturn[{extra}]'"
        ) from error
