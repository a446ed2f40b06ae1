"""A run whose weights depend on samplers that Ray places, that hangs when one dies, or that leaves one behind."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no samplers: pip install 'manyturn[hosts]'", allow_module_level=True)

from needs_host import host as need
from nodes import wait_for
from ray_left import nothing_left
from ray_nodes import ray_nodes, ray_processes, ray_processes_of
from short_runs import ended, episode_keys, figures, left_behind, missing_and_double, short_run, start

from manyturn.envs.hosting.remote.hosted_seats import HostsLost
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.loop.loop import train


@pytest.fixture(autouse=True, scope="module")
def _ray() -> None:
    need("ray")


def placed(samplers: int, **placement: Any) -> RunConfig:
    where = {"kind": "ray", "samplers": samplers, "wait": 900.0, **placement} if samplers else {}
    return short_run(placement=where, evaluation={"limit": 2, "every": 2, "every_limit": 2}, steps=3)


def learnt(run: Path) -> tuple[Any, ...]:
    """The weights of a run, and what it was paid for; not the last digits of how likely its tokens were."""
    told = figures(run)
    return told["summary"]["weights"], [(line.get("return"), line.get("loss")) for line in told["metrics"]]


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("ray_sampled") / "local"
    asyncio.run(train(placed(0), path))
    return path


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with ray_nodes(3) as address:
        yield address


def test_weights_with_two_samplers_on_a_cluster_of_three_nodes_are_those_of_local(local, cluster, tmp_path):
    """A host and two samplers, for nodes with one processor each."""
    run = tmp_path / "run"
    with nothing_left():
        asyncio.run(train(placed(2, cluster=cluster), run))
    assert learnt(run) == learnt(local) and episode_keys(run) == episode_keys(local)
    assert "sampler_2/idle_share" in (run / "metrics.jsonl").read_text()


def test_samplers_that_do_not_fit_the_cluster_end_the_run_with_what_there_is(cluster, tmp_path):
    wants = r"of 1 hosts and 0 of 1 samplers within 60 s \(.*a sampler 1 CPU and 1 GPU, .* has 3 CPU and 0 GPU"
    with nothing_left(), pytest.raises(HostsLost, match=wants):
        asyncio.run(train(placed(1, cluster=cluster, gpus=1.0, wait=60.0), tmp_path / "run"))


def struck(run: Path, strike: Callable[[int], object], **placement: Any) -> int:
    """The exit status of a run that is struck after its warm-up; the strike is told the id of its process."""
    child = start(lambda: asyncio.run(train(placed(1, **placement), run)))
    wait_for((run / "checkpoints" / "step_000000").is_dir, child, 900)
    assert not (run / "summary.json").exists()
    strike(child)
    return ended(child, 900)


def kill(victims: list[int]) -> None:
    assert victims
    for one in victims:
        os.kill(one, signal.SIGKILL)


def test_the_only_sampler_is_started_again_by_ray_and_the_weights_are_the_same(local, cluster, tmp_path):
    run = tmp_path / "run"
    with nothing_left():
        assert struck(run, lambda _: kill(ray_processes("ray::RaySampler")), cluster=cluster) == 0
    assert learnt(run) == learnt(local)
    assert missing_and_double(episode_keys(run), episode_keys(local)) == (0, 0) and not left_behind(run)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_sampler_is_left_of_a_run_that_is_killed_or_interrupted(number, cluster, tmp_path):
    with nothing_left():
        assert struck(tmp_path / "run", lambda child: os.kill(child, number), cluster=cluster) != 0


def test_a_run_whose_ray_is_killed_ends_at_once_and_goes_on_to_the_same_weights(local, tmp_path, capfd):
    run = tmp_path / "run"

    def strike(child: int) -> None:
        for words in (["gcs_server"], ["raylet", "--raylet_socket_name"], ["ray::RaySampler"], ["ray::RayHost"]):
            kill(ray_processes_of(child, *words))

    with nothing_left():
        assert struck(run, strike) == 1
    said = capfd.readouterr().err
    assert "Lost: Ray was lost" in said and "go on with manyturn train --resume RUN" in said
    with nothing_left():
        asyncio.run(train(None, run, resume=True))
    assert learnt(run)[0] == learnt(local)[0]
    assert missing_and_double(episode_keys(run), episode_keys(local)) == (0, 0) and not left_behind(run)
