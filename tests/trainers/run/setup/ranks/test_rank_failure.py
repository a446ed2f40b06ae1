"""Ranks that Ray has placed and that learn something else than one, hang when one dies, cannot be resumed, or stay."""

import asyncio
import os
import re
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no hosts: pip install 'manyturn[hosts]'", allow_module_level=True)

from needs_host import host as need
from nodes import wait_for
from rank_recipe import RECIPE, STEPS, apart_after_all, same_bits
from ray_left import nothing_left
from ray_nodes import above, placers, placers_keepers, ray_nodes, ray_processes
from short_runs import ended, start
from two_steps import ROUNDING

from manyturn.envs.hosting.remote.hosted_seats import HostsLost
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.run.loop.loop import train

PAGE = Path(__file__).parents[5] / "docs" / "ranks.md"
GOES_ON = "go on from the last checkpoint with manyturn train --resume RUN; placement.learners"


@pytest.fixture(autouse=True, scope="module")
def _ray() -> None:
    need("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with ray_nodes(3) as address:
        yield address


def learning(learners: int, **placement: Any) -> RunConfig:
    return configure({**RECIPE, "placement": {"kind": "ray", "learners": learners, **placement}})


def trained(run: Path, config: RunConfig | None) -> Path:
    """A run that ends well, in a process of its own, and leaves nothing."""
    with nothing_left():
        assert ended(start(lambda: asyncio.run(train(config, run, resume=config is None))), 240) == 0
    return run


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("ranks") / "one", configure(RECIPE))


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("ranks") / "two", learning(2))


def test_two_ranks_of_a_run_s_own_ray_end_on_the_weights_of_one(one, two):
    assert 0 < apart_after_all(one, two) < ROUNDING, "0 would mean that nothing was shared out"


def test_ranks_on_other_nodes_of_a_cluster_end_on_the_weights_of_one(one, cluster, tmp_path):
    """A host and two ranks, for three nodes with one processor each."""
    assert 0 < apart_after_all(one, trained(tmp_path / "three", learning(3, cluster=cluster))) < ROUNDING


def struck(run: Path, config: RunConfig, strike: Callable[[int], object], within: float = 60) -> int:
    """The exit status of a run that is struck after its second step."""
    with nothing_left():
        child = start(lambda: asyncio.run(train(config, run)))
        wait_for((run / "checkpoints" / "step_000002").is_dir, child)
        assert not (run / "checkpoints" / f"step_{STEPS:06d}").exists()
        strike(child)
        return ended(child, within)


def send(number: signal.Signals, run: int, word: str) -> None:
    """Send a signal to the processes of this kind that belong to a run."""
    victims = [one for one in ray_processes(word) if run in above(one)]
    assert victims
    for one in victims:
        os.kill(one, number)


def test_a_rank_that_is_killed_ends_the_run_which_goes_on_with_any_number_of_ranks(one, two, tmp_path, capfd):
    run, config = tmp_path / "run", learning(2)
    assert struck(run, config, lambda child: send(signal.SIGKILL, child, "ray::RayRank")) == 1
    said = capfd.readouterr().err
    assert "RankLost: rank 1 has ended (Ray: The actor" in said and GOES_ON in said
    others = {ranks: tmp_path / f"{ranks} go on" for ranks in (1, 3)}
    for ranks, other in others.items():
        shutil.copytree(run, other)
        text = (other / "config.toml").read_text()
        assert "learners = 2" in text
        (other / "config.toml").write_text(text.replace("learners = 2", f"learners = {ranks}"))
        assert apart_after_all(trained(other, None), one) < ROUNDING
    assert same_bits(trained(run, None), two)


def test_a_rank_that_ends_while_rank_0_waits_for_episodes_is_noticed(tmp_path, capfd):
    """The host stands still, so that no episode ends, and nothing is said to the rank."""

    def strike(child: int) -> None:
        send(signal.SIGSTOP, child, "ray::RayHost")
        time.sleep(1)
        send(signal.SIGKILL, child, "ray::RayRank")

    assert struck(tmp_path / "run", learning(2, silence=600.0), strike) == 1
    assert "rank 1 has ended" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("own", [True, False])
def test_no_rank_is_left_of_a_run_that_is_killed_or_interrupted(number, own, cluster, two, tmp_path):
    run = tmp_path / "run"
    config = learning(2, **({} if own else {"cluster": cluster}))
    assert struck(run, config, lambda child: os.kill(child, number)) != 0
    if own:
        assert same_bits(trained(run, None), two)


@pytest.mark.parametrize("victims", [placers, placers_keepers])
def test_a_run_whose_placer_or_its_keeper_is_killed_ends_with_what_to_do_and_leaves_nothing(victims, tmp_path, capfd):
    config = learning(2).model_copy(update={"steps": 200})
    assert struck(tmp_path / "run", config, lambda child: [os.kill(one, signal.SIGKILL) for one in victims(child)]) == 1
    said = capfd.readouterr().err
    assert re.search(r"(Ray was lost|rank 1 has ended).* manyturn train --resume RUN", said)


def test_ranks_that_cannot_be_placed_end_the_run_before_it_begins(cluster, tmp_path):
    wanted = learning(5, cluster=cluster, wait=15.0)
    with nothing_left(), pytest.raises(HostsLost, match=r"placed 1 of 1 hosts and 0 of 4 ranks within 15 s .*a rank 1"):
        asyncio.run(train(wanted, tmp_path / "run"))


def test_the_commands_of_the_page_learn_on_ray(tmp_path, command, monkeypatch):
    [block] = re.findall(r"<!-- run by \S+test_rank_failure.py -->\n```sh\n(.*?)\n```", PAGE.read_text(), re.S)
    first, then = block.splitlines()
    monkeypatch.chdir(tmp_path)
    brief = "--rollout.tasks 2 --rollout.group 2 --evaluation.limit 2 --warmup.must-succeed false".split()
    brief += "--steps 1 --warmup.max-updates 20".split()
    for words in ([*shlex.split(first)[1:], *brief], [*shlex.split(then)[1:], "--steps", "2"]):
        with nothing_left():
            ran = command(*words)
        assert ran.code == 0, ran.out + ran.err
