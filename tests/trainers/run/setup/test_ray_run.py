"""A run whose weights depend on Ray, that loses episodes with an actor, or leaves anything of Ray behind."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import socket
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no hosts: pip install 'manyturn[hosts]'", allow_module_level=True)

from elsewhere import hosting
from needs_host import host as need
from nodes import wait_for
from ray_left import nothing_left
from ray_nodes import placers, placers_keepers, ray_nodes, ray_processes_of
from short_runs import ended, episode_keys, left_behind, missing_and_double, short_run, start
from short_runs import figures_apart_from_hosts as figures_of

from manyturn.envs.hosting.remote.connection import HostRefused
from manyturn.envs.hosting.remote.hosted_seats import HostsLost
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.loop.loop import train

PAGE = Path(__file__).parents[4] / "docs" / "ray.md"


@pytest.fixture(autouse=True, scope="module")
def _ray() -> None:
    need("ray")


def placed(placement: dict[str, Any], **changes: Any) -> RunConfig:
    evaluation = {"limit": 2, "every": 2, "every_limit": 2}
    return short_run(**{"placement": placement, "evaluation": evaluation, "steps": 3, **changes})


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("ray") / "local"
    asyncio.run(train(placed({}), path))
    return path


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with ray_nodes(3, '--resources={"containers": 1}') as address:
        yield address


@pytest.mark.parametrize("count", [1, 3])
def test_weights_on_a_cluster_of_three_nodes_are_those_of_local_and_of_static(count, local, cluster, tmp_path):
    """Each node has room for one host, and is named by a resource of its own."""
    wanted = {"kind": "ray", "cluster": cluster, "count": count, "resources": {"containers": 1}}

    async def elsewhere():
        async with hosting(count) as urls:
            await train(placed({"kind": "static", "hosts": urls}), tmp_path / "static")

    with nothing_left():
        asyncio.run(train(placed(wanted, workers=1), tmp_path / "ray"))
    asyncio.run(elsewhere())
    assert figures_of(tmp_path / "ray") == figures_of(tmp_path / "static") == figures_of(local)
    assert episode_keys(tmp_path / "ray") == episode_keys(local)
    assert f"host_{count}/idle_share" in (tmp_path / "ray" / "metrics.jsonl").read_text()


def test_hosts_that_do_not_fit_the_cluster_end_the_run_with_what_there_is(cluster, tmp_path):
    wanted = {"kind": "ray", "cluster": cluster, "resources": {"browsers": 1}, "wait": 15.0}
    with nothing_left(), pytest.raises(HostsLost, match=r"placed 0 of 1 hosts within 15 s \(each wants 1 CPU and 1 br"):
        asyncio.run(train(placed(wanted), tmp_path / "run"))


def struck(run: Path, strike: Callable[[int], object], config: RunConfig) -> int:
    """The exit status of a run that is struck after its warm-up.

    Args:
        strike: called with the id of its process.
    """
    child = start(lambda: asyncio.run(train(config, run)))
    wait_for((run / "checkpoints" / "step_000000").is_dir, child)
    assert not (run / "summary.json").exists()
    strike(child)
    return ended(child, 200)


def kill(run: int, *words: str) -> None:
    """Kill the processes of this kind that a run has started."""
    victims = ray_processes_of(run, *words)
    assert victims
    for one in victims:
        os.kill(one, signal.SIGKILL)


def test_a_host_whose_actor_is_killed_is_started_again_and_the_weights_are_the_same(local, tmp_path):
    run = tmp_path / "run"
    with nothing_left():
        assert struck(run, lambda child: kill(child, "ray::RayHost"), placed({"kind": "ray"})) == 0
    assert figures_of(run) == figures_of(local)
    assert missing_and_double(episode_keys(run), episode_keys(local)) == (0, 0) and not left_behind(run)


def test_a_run_whose_ray_is_killed_ends_at_once_and_goes_on_to_the_same_weights(local, tmp_path, capfd):
    run = tmp_path / "run"

    def strike(child: int) -> None:
        """As when the machine of the head is gone; by itself a host outlives Ray for a while."""
        for words in (["gcs_server"], ["raylet", "--raylet_socket_name"], ["ray::RayHost"]):
            kill(child, *words)

    with nothing_left():
        assert struck(run, strike, placed({"kind": "ray"})) == 1
    said = capfd.readouterr().err
    assert "HostsLost: Ray was lost" in said and "go on with manyturn train --resume RUN" in said
    with nothing_left():
        asyncio.run(train(None, run, resume=True))
    assert figures_of(run)["summary"]["weights"] == figures_of(local)["summary"]["weights"]
    assert missing_and_double(episode_keys(run), episode_keys(local)) == (0, 0) and not left_behind(run)


@pytest.mark.parametrize("victims", [placers, placers_keepers])
def test_a_run_whose_placer_or_its_keeper_is_killed_ends_and_leaves_nothing(victims, tmp_path, capfd):
    run, config = tmp_path / "run", placed({"kind": "ray"}, workers=1, steps=200)
    with nothing_left():
        assert struck(run, lambda child: [os.kill(one, signal.SIGKILL) for one in victims(child)], config) == 1
    said = capfd.readouterr().err
    assert "HostsLost: Ray was lost" in said and "go on with manyturn train --resume RUN" in said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("own", [True, False])
def test_nothing_is_left_of_a_run_that_is_killed_or_interrupted(number, own, cluster, tmp_path):
    config = placed({"kind": "ray", "count": 2, **({} if own else {"cluster": cluster})}, workers=1)
    with nothing_left():
        assert struck(tmp_path / "run", lambda child: os.kill(child, number), config) != 0


def test_a_node_on_another_machine_is_used_only_where_that_is_allowed(tmp_path):
    wanted = {"kind": "ray", "count": 2}
    with ray_nodes(2, second=address_of_this_machine()) as cluster:
        with nothing_left(), pytest.raises(HostRefused, match=r"another machine: set placement.remote to allow it"):
            asyncio.run(train(placed({**wanted, "cluster": cluster}), tmp_path / "refused"))
        with nothing_left():
            asyncio.run(train(placed({**wanted, "cluster": cluster, "remote": True}, steps=1), tmp_path / "run"))
    assert (tmp_path / "run" / "summary.json").is_file()


def address_of_this_machine() -> str:
    """An address on a network; skips without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found, contextlib.suppress(OSError):
        found.connect(("192.0.2.1", 9))  # sends nothing
        return found.getsockname()[0]
    pytest.skip("this machine has no address on a network")


def test_the_command_of_the_page_trains_on_ray(tmp_path, command, monkeypatch):
    [line] = re.findall(r"<!-- run by \S+test_ray_run.py -->\n```sh\n(.*?)\n```", PAGE.read_text(), re.S)
    monkeypatch.chdir(tmp_path)
    brief = "--rollout.tasks 2 --rollout.group 2 --evaluation.limit 2 --warmup.must-succeed false".split()
    with nothing_left():
        ran = command(*shlex.split(line)[1:], *brief)
    assert ran.code == 0, ran.out + ran.err
    assert "host_2/idle_share" in (tmp_path / "on_ray" / "metrics.jsonl").read_text()
