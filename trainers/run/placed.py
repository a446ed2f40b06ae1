"""Where the episodes of a run are played and where their tokens are drawn, as its recipe places them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from manyturn.agents.engine import Engine
from manyturn.agents.engine_config import EngineContext, build_engine
from manyturn.envs.hosting.seats import Seats, open_seats
from manyturn.trainers.learn.ranks.meeting import Meeting
from manyturn.trainers.recipe.config import RunConfig


def seats_of(config: RunConfig, meeting: Meeting | None = None) -> Seats:
    """Seats to be entered. Raises ImportError that names the extra where that is missing.

    Args:
        meeting: where ranks that are placed along with the hosts find this process.
    """
    env, limit, placement = config.env, config.rollout.concurrency, config.placement
    if placement.kind == "local" or (placement.kind == "static" and not placement.hosts):
        return open_seats(env.id, env.args, env.wrappers, limit, env.workers, env.timeout, env.limits)
    if placement.kind == "static":
        with _needing("hosts", placement.kind):
            from manyturn.envs.hosting.hosted_seats import HostedSeats, Hosts
        hosts = Hosts(placement.hosts, _token(), placement.wait, placement.silence)
        return HostedSeats(env.id, env.args, env.wrappers, limit, hosts)
    with _needing("ray", placement.kind):
        from manyturn.envs.hosting.ray_seats import RayHosts, RaySeats

        if find_spec("ray") is None:  # it is imported in a process of its own
            raise ModuleNotFoundError(name="ray")
    asked = RayHosts(
        placement.count,
        placement.cluster,
        placement.cpus,
        placement.resources,
        placement.remote,
        env.workers,
        env.timeout,
        env.limits,
        placement.wait,
        placement.silence,
        placement.ranks - 1,
        None if meeting is None else meeting.port,
    )
    return RaySeats(env.id, env.args, env.wrappers, limit, asked)


def engine_of(config: RunConfig, context: EngineContext) -> Engine:
    """The engine, here or at samplers. Raises ImportError that names the extra where that is missing."""
    placement = config.placement
    if placement.kind != "static" or not placement.samplers:
        return build_engine(config.engine, context)
    with _needing("hosts", placement.kind):
        from manyturn.agents.samplers.sampled_engine import SampledEngine, Samplers
    at = Samplers(placement.samplers, _token(), placement.wait, placement.silence, config.threads)
    return SampledEngine(context, config.engine, at)


def _token() -> str | None:
    """What hosts and samplers ask for."""
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
