"""A run whose weights depend on where its environments are, or on what became of their hosts."""

import asyncio
import json
import os
import re
import shlex
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no hosts: pip install 'manyturn[hosts]'", allow_module_level=True)

from elsewhere import HostProcess, host_processes, hosting
from nodes import wait_for
from short_runs import ended, episode_keys, figures, left_behind, missing_and_double, short_run, start
from short_runs import figures_apart_from_hosts as figures_of

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.loop.loop import train

pytestmark = pytest.mark.versions

PAGE = Path(__file__).parents[4] / "docs" / "many-machines.md"


def placed(urls: Any, **changes: Any) -> RunConfig:
    placement = {"kind": "static", "hosts": list(urls)} if urls else {}
    evaluation = {"limit": 2, "every": 2, "every_limit": 2}
    return short_run(**{"placement": placement, "evaluation": evaluation, "steps": 3, **changes})


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("hosted") / "local"
    asyncio.run(train(placed(()), path))
    return path


@pytest.mark.deep
@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_weights_do_not_depend_on_how_many_hosts_there_are(count, local, tmp_path):
    async def elsewhere():
        async with hosting(count) as urls:
            await train(placed(urls), tmp_path / "run")

    asyncio.run(elsewhere())
    assert figures_of(tmp_path / "run") == figures_of(local) and episode_keys(tmp_path / "run") == episode_keys(local)


@pytest.mark.deep
def test_in_asynchronous_order_each_episode_is_learnt_from_once_and_within_the_bound(local, tmp_path):
    async def elsewhere():
        async with hosting(2) as urls:
            await train(placed(urls, order={"kind": "asynchronous", "staleness": 2}), tmp_path / "run")

    asyncio.run(elsewhere())
    assert sorted(episode_keys(tmp_path / "run")) == sorted(episode_keys(local))
    lines = [line for line in figures(tmp_path / "run")["metrics"] if line["phase"] == "train"]
    assert len(lines) == 3 and all(line["staleness_max"] <= 2 and "lost_hosts" in line for line in lines)


@pytest.mark.deep
def test_a_run_that_was_killed_goes_on_at_other_hosts_to_the_same_bits(local, tmp_path):
    run = tmp_path / "run"
    with host_processes(2, "--workers", "0") as hosts:
        first, second = hosts
        config_of_first = placed([first.url])
        child = start(lambda: asyncio.run(train(config_of_first, run)))
        wait_for((run / "checkpoints" / "step_000002").exists, child)
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
        first.kill()
        config = run / "config.toml"
        config.write_text(config.read_text().replace(first.url, second.url))
        asyncio.run(train(None, run, resume=True))
    assert figures_of(run)["summary"]["weights"] == figures_of(local)["summary"]["weights"]
    assert missing_and_double(episode_keys(run), episode_keys(local)) == (0, 0) and not left_behind(run)


def test_a_host_answers_at_each_address_of_this_machine_that_it_was_given(tmp_path):
    with host_processes(1, "--host", "127.0.0.2", "--workers", "0") as [one]:
        assert one.url.startswith("http://127.0.0.2:")
        asyncio.run(train(placed([one.url], steps=1), tmp_path / "run"))
    assert (tmp_path / "run" / "summary.json").is_file()


@pytest.mark.deep
@pytest.mark.parametrize("reached", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_a_run_whose_only_host_is_gone_for_good_is_resumed_at_another_to_the_same_bits(
    reached, local, tmp_path, forked
):
    run = tmp_path / "run"
    with host_processes(2, "--workers", "0") as [first, second], ThreadPoolExecutor() as pool:
        place = ("--placement.kind", "static", "--placement.hosts", json.dumps([first.url]), "--placement.wait", "2")
        words = ("-m", "manyturn", "train", "--recipe", local / "config.toml", *place, "--out", run)
        training = pool.submit(forked, *words)
        while not (run / "checkpoints" / f"step_{reached:06d}").is_dir() and not training.done():
            time.sleep(0.01)
        first.kill()
        lost = training.result()
        said = f"manyturn: no host had room for an episode within 2 s ({first.url}:"
        assert lost.returncode == 5 and said in lost.stderr, lost.stderr
        assert not (run / "summary.json").exists()
        config = run / "config.toml"
        config.write_text(config.read_text().replace(first.url, second.url))
        resumed = forked("-m", "manyturn", "train", "--resume", run)
    assert resumed.returncode == 0, resumed.stderr
    assert figures_of(run)["summary"]["weights"] == figures_of(local)["summary"]["weights"]
    assert missing_and_double(episode_keys(run), episode_keys(local)) == (0, 0) and not left_behind(run)


@pytest.mark.deep
def test_the_commands_of_the_page_train_at_hosts(tmp_path, forked):
    blocks = re.findall(r"<!-- run by \S+test_hosted_run.py -->\n```sh\n(.*?)```", PAGE.read_text(), re.S)
    starts, [training] = blocks[0].splitlines(), blocks[1].splitlines()
    hosts = [HostProcess(*_words_of_host(line)) for line in starts]
    try:
        for line, one in zip(starts, hosts, strict=True):
            training = training.replace(f"127.0.0.1:{shlex.split(line)[3]}", one.url.removeprefix("http://"))
        words = shlex.split(training)[1:]
        brief = "--rollout.tasks 2 --rollout.group 2 --evaluation.limit 2 --warmup.must-succeed false".split()
        ran = forked("-m", "manyturn", *words, *brief, cwd=tmp_path)
    finally:
        codes = [one.end() for one in hosts]
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "moved_episodes" in (tmp_path / "placed" / "metrics.jsonl").read_text() and codes == [143, 143]


def _words_of_host(line: str) -> list[str]:
    """What a line of the page gives to ``manyturn host``, but for its port, which may be taken here."""
    program, command, option, _, *words = shlex.split(line)
    assert (program, command, option) == ("manyturn", "host", "--port")
    return words


def test_without_ray_a_run_that_wants_it_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'manyturn[ray]'")):
        asyncio.run(train(short_run(placement={"kind": "ray"}), tmp_path / "run"))


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"cluster": "ray://10.0.0.1:10001"}, "is no cluster that can be joined: write auto, or HOST:PORT"),
        ({"cluster": "somewhere"}, "is no cluster that can be joined"),
        ({"cluster": "auto", "resources": {"CPU": 2}}, "CPU is Ray's own: set placement.cpus"),
        ({"cluster": "auto", "resources": {"cards": 1.5}}, "cards = 1.5: Ray takes a share of one, or whole ones"),
        ({"cluster": "auto", "resources": {"cards": 0}}, "cards = 0: Ray takes a share of one"),
    ],
)
def test_what_ray_would_not_take_is_refused_before_the_run(cluster, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        short_run(placement={"kind": "ray", **cluster})


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (["127.0.0.1:9001"], "is no address of a host: write http://127.0.0.1:9001, as manyturn host prints it"),
        (["http://127.0.0.1"], "is no address of a host"),
        (["ftp://127.0.0.1:9001"], "is no address of a host"),
        (["http://127.0.0.1:9001/x"], "is no address of a host"),
        (["http://user:secret-secret-1@127.0.0.1:9001"], "leave the token out, and set MANYTURN_TOKEN"),
        (["http://127.0.0.1:9001", "http://127.0.0.1:9001/"], "is named twice: name each host once"),
    ],
)
def test_what_is_no_address_of_a_host_is_refused_before_the_run(hosts, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as refused:
        placed(hosts)
    assert "secret" not in str(refused.value)
