"""A run whose weights depend on where its tokens are drawn, or on what became of its samplers."""

import asyncio
import json
import os
import re
import shlex
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no samplers: pip install 'manyturn[hosts]'", allow_module_level=True)

from elsewhere import SamplerProcess, hosting, sampler_processes, sampling
from nodes import wait_for
from short_runs import ended, episode_keys, figures, left_behind, missing_and_double, short_run, start

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.hosting.remote.connection import HostRefused
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.loop.loop import train

PAGE = Path(__file__).parents[4] / "docs" / "samplers.md"
_OWN = ("lost_", "moved_", "host_", "sampler_", "batch_limit", "out_of_memory")


def sampled(urls: Any, hosts: Any = (), **changes: Any) -> RunConfig:
    placement = {"kind": "static", "samplers": list(urls), "hosts": list(hosts)} if urls else {}
    evaluation = {"limit": 2, "every": 2, "every_limit": 2}
    return short_run(**{"placement": placement, "evaluation": evaluation, "steps": 3, **changes})


def found(run: Path) -> dict[str, Any]:
    """All that a run found out but for its clock and its samplers."""
    told = figures(run)
    lines = [{name: value for name, value in line.items() if not name.startswith(_OWN)} for line in told["metrics"]]
    return {**told, "metrics": lines}


def learnt(run: Path) -> tuple[Any, ...]:
    """The weights of a run, and what it was paid for; not the last digits of how likely its tokens were."""
    told = figures(run)
    return told["summary"]["weights"], [(line.get("return"), line.get("loss")) for line in told["metrics"]]


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sampled") / "local"
    asyncio.run(train(sampled(()), path))
    return path


def trained_at(count: int, path: Path, hosts: int = 0, **changes: Any) -> Path:
    """A run with so many samplers, in this process."""

    async def elsewhere() -> None:
        async with sampling(count) as urls, hosting(hosts) as places:
            await train(sampled(urls, places, **changes), path)

    asyncio.run(elsewhere())
    return path


@pytest.mark.deep
@pytest.mark.parametrize(("count", "hosts"), [(1, 0), pytest.param(2, 0, marks=pytest.mark.slow), (2, 2)])
def test_weights_do_not_depend_on_how_many_samplers_there_are(count, hosts, local, tmp_path):
    run = trained_at(count, tmp_path / "run", hosts)
    assert learnt(run) == learnt(local) and episode_keys(run) == episode_keys(local)
    if count == 1:  # with two, the last digits of log-probabilities depend on which rows share a batch
        assert found(run) == found(local)


def test_choices_among_admissible_commands_are_drawn_at_samplers_as_here(tmp_path):
    choosing = {"agent": {"only_admissible": True, "format": "free_text"}, "sampling": {"max_tokens": 12}, "steps": 2}
    asyncio.run(train(sampled((), **choosing), tmp_path / "here"))
    run = trained_at(2, tmp_path / "run", **choosing)
    assert learnt(run) == learnt(tmp_path / "here") and episode_keys(run) == episode_keys(tmp_path / "here")


@pytest.mark.deep
def test_in_asynchronous_order_each_episode_is_learnt_from_once_and_within_the_bound(local, tmp_path):
    run = trained_at(2, tmp_path / "run", order={"kind": "asynchronous", "staleness": 2})
    assert sorted(episode_keys(run)) == sorted(episode_keys(local))
    lines = [line for line in figures(run)["metrics"] if line["phase"] == "train"]
    assert len(lines) == 3 and all(line["staleness_max"] <= 2 and line["lost_samplers"] == 0 for line in lines)
    assert all(line["sampler_1/idle_share"] < 1 and line["sampler_2/idle_share"] < 1 for line in lines[:1])


@pytest.mark.deep
def test_a_sampler_that_is_killed_in_the_middle_of_a_step_costs_no_episode(local, tmp_path):
    run = tmp_path / "run"
    with sampler_processes(2) as [first, second]:
        config = sampled([first.url, second.url])
        child = start(lambda: asyncio.run(train(config, run)))
        wait_for((run / "checkpoints" / "step_000000").exists, child)
        wait_for(lambda: any((run / "journal").glob("*")), child)
        first.kill()
        assert ended(child) == 0
    lines = [line for line in figures(run)["metrics"] if line["phase"] == "train"]
    assert lines[-1]["lost_samplers"] == 1
    assert learnt(run) == learnt(local)
    assert missing_and_double(episode_keys(run), episode_keys(local)) == (0, 0) and not left_behind(run)


@pytest.mark.slow
def test_a_run_that_was_killed_leaves_its_samplers_free_and_goes_on_to_the_same_weights(local, tmp_path):
    run = tmp_path / "run"
    with sampler_processes(1) as [one]:
        config = sampled([one.url])
        child = start(lambda: asyncio.run(train(config, run)))
        wait_for((run / "checkpoints" / "step_000002").exists, child)
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
        asyncio.run(train(None, run, resume=True))
    assert learnt(run) == learnt(local) and episode_keys(run) == episode_keys(local) and not left_behind(run)


@pytest.mark.deep
def test_a_run_whose_only_sampler_is_gone_ends_with_the_reason_and_is_resumed_at_another(local, tmp_path, forked):
    run = tmp_path / "run"
    with sampler_processes(2) as [first, second], ThreadPoolExecutor() as pool:
        place = ("--placement.kind", "static", "--placement.samplers", json.dumps([first.url]), "--placement.wait", "2")
        words = ("-m", "manyturn", "train", "--recipe", local / "config.toml", *place, "--out", run)
        training = pool.submit(forked, *words)
        while not (run / "checkpoints" / "step_000000").is_dir() and not training.done():
            time.sleep(0.01)
        first.kill()
        lost = training.result()
        said = f"manyturn: no sampler could draw within 2 s ({first.url}:"
        assert lost.returncode == 5 and said in lost.stderr and lost.stderr.count("\n") <= 2, lost.stderr
        assert "go on with manyturn train --resume RUN" in lost.stderr and not (run / "summary.json").exists()
        config = run / "config.toml"
        config.write_text(config.read_text().replace(first.url, second.url))
        resumed = forked("-m", "manyturn", "train", "--resume", run)
    assert resumed.returncode == 0, resumed.stderr
    assert learnt(run)[0] == learnt(local)[0]
    assert missing_and_double(episode_keys(run), episode_keys(local)) == (0, 0) and not left_behind(run)


def test_a_run_without_the_token_of_its_samplers_ends_before_it_plays(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYTURN_TOKEN", "fedcba9876543210-another")

    async def elsewhere() -> None:
        async with sampling(1, "0123456789abcdef-a-token") as urls:
            await train(sampled(urls), tmp_path / "run")

    with pytest.raises(HostRefused, match="wants another token: set MANYTURN_TOKEN"):
        asyncio.run(elsewhere())
    assert not list((tmp_path / "run").rglob("*.parquet"))


@pytest.mark.deep
def test_a_sampler_that_never_answers_is_named_before_anything_is_played(tmp_path, forked):
    place = ("--placement.kind", "static", "--placement.samplers", '["http://127.0.0.1:9"]', "--placement.wait", "1")
    ran = forked("-m", "manyturn", "train", "manyturn/Maze-v0", *place, "--out", tmp_path / "run")
    assert ran.returncode == 5 and "is it running? manyturn sampler --port N starts one" in ran.stderr, ran.stderr


@pytest.mark.deep
def test_the_commands_of_the_page_train_at_samplers(tmp_path, forked):
    blocks = re.findall(r"<!-- run by \S+test_sampled_run.py -->\n```sh\n(.*?)```", PAGE.read_text(), re.S)
    starts, [training] = blocks[0].splitlines(), blocks[1].splitlines()
    samplers = [SamplerProcess(*_words_of_sampler(line)) for line in starts]
    try:
        for line, one in zip(starts, samplers, strict=True):
            training = training.replace(f"127.0.0.1:{shlex.split(line)[3]}", one.url.removeprefix("http://"))
        brief = "--rollout.tasks 2 --rollout.group 2 --evaluation.limit 2 --warmup.must-succeed false".split()
        ran = forked("-m", "manyturn", *shlex.split(training)[1:], *brief, cwd=tmp_path)
    finally:
        codes = [one.end() for one in samplers]
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "moved_draws" in (tmp_path / "sampled" / "metrics.jsonl").read_text() and codes == [143, 143]


def _words_of_sampler(line: str) -> list[str]:
    """What a line of the page gives to ``manyturn sampler``, but for its port, which may be taken here."""
    program, command, option, _, *words = shlex.split(line)
    assert (program, command, option) == ("manyturn", "sampler", "--port")
    return words


@pytest.mark.parametrize(
    ("samplers", "said"),
    [
        (["127.0.0.1:9101"], "is no address of a sampler: write http://127.0.0.1:9001, as manyturn sampler prints it"),
        (["http://user:secret-secret-1@127.0.0.1:9101"], "leave the token out, and set MANYTURN_TOKEN"),
        (["http://127.0.0.1:9101", "http://127.0.0.1:9101/"], "is named twice: name each sampler once"),
    ],
)
def test_what_is_no_address_of_a_sampler_is_refused_before_the_run(samplers, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as refused:
        sampled(samplers)
    assert "secret" not in str(refused.value)
