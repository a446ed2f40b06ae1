"""Ranks and samplers of a run on its own machine that change what is learnt, outlive it, or are waited for in vain."""

import asyncio
import os
import re
import shlex
import signal
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no samplers: pip install 'manyturn[hosts]'", allow_module_level=True)

from nodes import wait_for
from rank_recipe import RECIPE, STEPS, apart_after_all
from short_runs import ended, start
from two_steps import ROUNDING

from manyturn.agents.engine.engine import EngineLost
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.ranks import machine_processes
from manyturn.trainers.run.setup.ranks.machine_processes import MachineProcesses

pytestmark = [pytest.mark.versions, pytest.mark.deep]
PAGE = Path(__file__).parents[5] / "docs" / "ranks.md"
FOLLOWER, SAMPLER = "ranks.follower", "sampler"


def placed(**placement: Any) -> RunConfig:
    return configure({**RECIPE, "placement": placement})


def below(run: int, word: str) -> list[psutil.Process]:
    """The processes of one kind that a run has started, without their keepers."""
    children = psutil.Process(run).children(recursive=True)
    return [one for one in children if word in one.cmdline() or any(part.endswith(word) for part in one.cmdline())]


def trained(run: Path, config: RunConfig | None) -> Path:
    assert ended(start(lambda: asyncio.run(train(config, run, resume=config is None))), 240) == 0
    return run


def struck(run: Path, config: RunConfig, number: signal.Signals, *, word: str | None = None) -> int:
    """The exit status of a run that is struck after its second step, or one of whose processes is; none is left."""
    child = start(lambda: asyncio.run(train(config, run)))
    wait_for((run / "checkpoints" / "step_000002").is_dir, child)
    assert not (run / "checkpoints" / f"step_{STEPS:06d}").exists()
    children = psutil.Process(child).children(recursive=True)
    os.kill(child if word is None else below(child, word)[-1].pid, number)
    status = ended(child, 60)
    _, left = psutil.wait_procs(children, 20)
    assert not left
    return status


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("machine") / "one", configure(RECIPE))


def test_two_ranks_and_two_samplers_end_on_the_weights_of_one_process(one, tmp_path):
    run = trained(tmp_path / "two", placed(learners=2, samplers=2))
    assert 0 < apart_after_all(one, run) < ROUNDING, "0 would mean that nothing was shared out"
    assert '"sampler_2/draws_there"' in (run / "metrics.jsonl").read_text()


def test_a_rank_that_is_killed_ends_the_run_which_goes_on_with_another_number(one, tmp_path, capfd):
    run = tmp_path / "run"
    assert struck(run, placed(learners=2), signal.SIGKILL, word=FOLLOWER) == 1
    assert "rank 1 has ended" in capfd.readouterr().err
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(
        text.replace("learners = 2", "learners = 1").replace("samplers = []", "samplers = 1")
    )
    assert apart_after_all(trained(run, None), one) < ROUNDING


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_run_that_is_killed_or_interrupted(number, tmp_path):
    assert struck(tmp_path / "run", placed(learners=2, samplers=1), number) != 0


def test_one_of_two_samplers_may_be_killed(one, tmp_path):
    config = placed(samplers=2)
    run = tmp_path / "run"
    child = start(lambda: asyncio.run(train(config, run)))
    wait_for((run / "checkpoints" / "step_000001").is_dir, child)
    below(child, SAMPLER)[-1].kill()
    assert ended(child, 120) == 0 and apart_after_all(run, one) < ROUNDING


def test_a_process_that_cannot_start_ends_the_run_with_its_reason(monkeypatch):
    async def enter(processes: MachineProcesses) -> None:
        async with processes:
            raise AssertionError("it has no samplers")

    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    began, device = time.monotonic(), machine_processes.torch.device("cpu")
    with pytest.raises(EngineLost, match=r"sampler 1 of this machine has ended: .+"):
        asyncio.run(enter(MachineProcesses(1, 1, None, device)))
    assert time.monotonic() - began < 30


def test_each_process_has_a_gpu_of_its_own_or_the_run_does_not_begin(monkeypatch):
    cuda = machine_processes.torch.device("cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    with pytest.raises(ConfigError, match=r"want 4 GPUs.*there are 3: .*device = 'cpu'"):
        MachineProcesses(2, 2, 1, cuda)
    assert MachineProcesses(2, 1, 1, cuda)._cards == ["4", "5", "6"]


def test_the_commands_of_the_page_learn(tmp_path, command, monkeypatch):
    [block] = re.findall(r"<!-- run by \S+test_machine_processes.py -->\n```sh\n(.*?)\n```", PAGE.read_text(), re.S)
    first, then = block.splitlines()
    monkeypatch.chdir(tmp_path)
    brief = "--rollout.tasks 2 --rollout.group 2 --evaluation.limit 2 --warmup.must-succeed false --steps 2".split()
    ran = command(*shlex.split(first)[1:], *brief, "--warmup.max-updates", "20")
    assert ran.code == 0, ran.err
    ran = command(*shlex.split(then)[1:], "--steps", "3")
    assert ran.code == 0, ran.err
