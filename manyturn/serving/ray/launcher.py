"""The placer of ``RaySeats``: has Ray start hosts, samplers and ranks, says where they are, and ends them.

Started as ``python -P -m manyturn.serving.ray.launcher``. The first line on standard input says what is wanted; its end
ends all. Lines on standard output are addresses of hosts, ``{"host": 0, "url": "http://..."}``, and of samplers,
``{"sampler": 0, "url": "http://..."}``, each once more where Ray has started it again; ``{"ready": 1}`` for a rank that
can learn, ``{"rank": 1, "ended": TEXT}`` for one that cannot go on, ``{"state": TEXT}`` for what is waited for, and
``{"refused": TEXT}``.
"""

import asyncio
import logging
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from manyturn.envs.hosting.handle.env_spec_message import take_streams
from manyturn.envs.hosting.handle.messages import decode, encode
from manyturn.serving.ray.host import OTHERS, RayHost, RaySampler, is_same_machine
from manyturn.serving.ray.rank import RayRank

_PAUSE = 0.2  # seconds between two questions to an actor that Ray is starting again
_END_SECONDS = 2.0  # that hosts have to close their environments
_STORE_BYTES = 80 * 2**20  # of Ray's memory for objects, about the least that it takes: nothing goes through it
_HOME = "127.0.0.2"  # of a cluster on this machine alone; 127.0.0.1 is what Ray replaces by an address of the network


def main() -> None:
    """Place hosts until standard input ends."""
    requests, answers = take_streams()
    request = decode(requests.readline())

    def say(**fields: Any) -> None:
        answers.write(encode(fields))
        answers.flush()

    ray: Any = None
    try:
        ray = import_module("ray")
        home = _join(ray, request)
        asyncio.run(_place(ray, request, home, requests.read, say))
    except Exception as error:
        say(refused=_line_of(error))
        requests.read()
    if ray is not None:
        ray.shutdown()
    shutil.rmtree(request["folder"], ignore_errors=True)  # whoever made it may be dead


def _join(ray: Any, request: Mapping[str, Any]) -> str | None:
    """Join the cluster, or start one. Returns the address of this node, None if other machines may be used.

    Raises ValueError for a cluster with nodes where hosts must not be.
    """
    usual = {"log_to_driver": False, "configure_logging": True, "logging_level": logging.ERROR}
    if request["cluster"] is None:
        ray.init(
            address="local",
            num_cpus=request["count"] + request["samplers"] + request["ranks"],
            num_gpus=0,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _node_ip_address=_HOME,
            _temp_dir=request["folder"],
            **usual,
        )
    else:
        ray.init(address=request["cluster"], **usual)
    if request["remote"]:
        return None
    home = ray.util.get_node_ip_address()
    nodes = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if others := sorted(node for node in nodes if not is_same_machine(node, home)):
        raise ValueError(f"Ray's cluster has a node at {others[0]}, and {OTHERS}")
    return home


async def _place(
    ray: Any, request: Mapping[str, Any], home: str | None, until: Callable[[], object], say: Callable[..., None]
) -> None:
    """Have all of them started, and hosts and samplers started again, until ``until`` returns."""
    say(state=_state(ray, request))
    hosts = _actors(ray, request, RayHost, "count", [request["hosting"]], home, resources=dict(request["resources"]))
    samplers = _actors(ray, request, RaySampler, "samplers", [request["gpus"] > 0], home, num_gpus=request["gpus"])
    ranks = _ranks(ray, request, home)
    watches = [asyncio.create_task(_watch(ray, host, {"host": number}, say)) for number, host in enumerate(hosts)]
    watches += [asyncio.create_task(_watch(ray, one, {"sampler": number}, say)) for number, one in enumerate(samplers)]
    first = ray.util.get_node_ip_address() if home is None else "127.0.0.1", request["port"]
    watches += [asyncio.create_task(_watch_rank(ray, n, rank, first, say)) for n, rank in enumerate(ranks, 1)]
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        until()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
    await ended.wait()
    for watch in watches:
        watch.cancel()
    await asyncio.wait([asyncio.create_task(_end(one)) for one in (*hosts, *samplers)], timeout=_END_SECONDS)
    for one in (*hosts, *samplers, *ranks):
        ray.kill(one)


def _actors(
    ray: Any, request: Mapping[str, Any], kind: type, count: str, args: Sequence[Any], home: str | None, **options: Any
) -> list[Any]:
    """So many of a kind, each of which Ray starts again when it has died.

    Args:
        args: what each is made with, but for token and home.
        options: what Ray counts for each, apart from processors.
    """
    placed = ray.remote(kind).options(
        num_cpus=request["cpus"], max_restarts=-1, scheduling_strategy="SPREAD", **options
    )
    return [placed.remote(*args, request["token"], home) for _ in range(request[count])]


async def _watch(ray: Any, actor: Any, which: Mapping[str, int], say: Callable[..., None]) -> None:
    """Say where a host or sampler is, each time that Ray has started it."""
    while True:
        try:
            say(**which, url=await actor.address.remote())
            await actor.lasting.remote()
        except ray.exceptions.ActorUnavailableError:
            await asyncio.sleep(_PAUSE)
        except ray.exceptions.RayError as error:
            say(refused=_line_of(error))
            return


def _ranks(ray: Any, request: Mapping[str, Any], home: str | None) -> list[Any]:
    """Actors of the ranks but for the first, which the run is: all of them are placed, or none."""
    if not request["ranks"]:
        return []
    group = ray.util.placement_group([{"CPU": request["cpus"]}] * request["ranks"], strategy="PACK")
    placing = import_module("ray.util.scheduling_strategies").PlacementGroupSchedulingStrategy
    kind = ray.remote(RayRank)
    actors = []
    for number in range(1, request["ranks"] + 1):
        place = placing(group, placement_group_bundle_index=number - 1)
        placed = kind.options(num_cpus=request["cpus"], max_restarts=0, scheduling_strategy=place)
        actors.append(placed.remote(number, request["ranks"] + 1, request["started_in"], home))
    return actors


async def _watch_rank(ray: Any, number: int, rank: Any, address: tuple[str, int], say: Callable[..., None]) -> None:
    """Say when a rank can learn with the first one at an address, and why it has ended, unless the run was over."""
    try:
        await rank.prepare.remote()
        say(ready=number)
        if why := await rank.learn.remote(*address):
            say(rank=number, ended=why)
    except ray.exceptions.RayError as error:
        say(rank=number, ended=_line_of(error))


async def _end(actor: Any) -> None:
    await actor.end.remote()


def _state(ray: Any, request: Mapping[str, Any]) -> str:
    """Message for a wait in vain: the resources requested and those available."""
    each = {"CPU": request["cpus"], **request["resources"]}
    there = ray.cluster_resources()
    own, seeing = {"CPU": request["cpus"]}, {"GPU": request["gpus"]} if request["gpus"] else {}
    samplers = f", a sampler {_amounts({**own, **seeing})}" if request["samplers"] else ""
    ranks = f", a rank {_amounts(own)}" if request["ranks"] else ""
    has = _amounts({name: there.get(name, 0) for name in (*each, *seeing)})
    return f"each wants {_amounts(each)}{samplers}{ranks}, and the cluster has {has}"


def _amounts(amounts: Mapping[str, float]) -> str:
    return " and ".join(f"{amount:g} {name}" for name, amount in amounts.items())


def _line_of(error: Exception) -> str:
    """One line out of Ray's many: the error raised at a host, or the first line."""
    cause = getattr(error, "cause", None)
    lines = str(cause or error).strip().splitlines() or [type(error).__name__]
    return lines[0] if isinstance(cause or error, ValueError) else f"Ray: {lines[0]}"


if __name__ == "__main__":
    main()
