"""A checkpoint that is written beside a step: one that holds up the run, has later weights, or hides that it failed."""

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from short_runs import episode_keys, figures, left_behind, short_run

from manyturn.agents.records.episode_log import DiskFull
from manyturn.trainers.record import resource_use
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run

pytestmark = pytest.mark.versions

EVERY = {"checkpoint_every": 1, "keep_checkpoints": 9, "evaluation": {"limit": 4}, "steps": 4}


class SlowDisk:
    """A disk that confirms nothing in other threads than the main one until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.released, self.waited, self._sync = threading.Event(), list[bool](), os.fsync
        monkeypatch.setattr(os, "fsync", self._wait)

    def _wait(self, file: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.waited.append(self.released.wait(30))
        self._sync(file)


def files(run: Path, step: int) -> dict[str, Any]:
    folder = run / "checkpoints" / f"step_{step:06d}"
    return {str(path.relative_to(folder)): load_file(path) for path in sorted(folder.rglob("*.safetensors"))}


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return ours.keys() == theirs.keys() and all(
        ours[file].keys() == theirs[file].keys()
        and all(torch.equal(ours[file][name], theirs[file][name]) for name in ours[file])
        for file in ours
    )


@pytest.mark.deep
@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"learner": {"minibatch": 3, "lora_rank": 2}}, marks=pytest.mark.slow),
        {"value": {"body": "own"}, "credit": {"advantage": "gae"}},
    ],
    ids=["all weights", "adapters", "own critic"],
)
def test_a_step_begins_before_the_checkpoint_is_there_which_is_the_one_of_a_run_that_waits(more, tmp_path, monkeypatch):
    config, there = short_run(**{**EVERY, **more}), list[bool]()
    with monkeypatch.context() as scarce:
        scarce.setattr(resource_use, "main_memory", lambda: (1.0, 1.0))
        asyncio.run(train(config, tmp_path / "waits"))
    disk = SlowDisk(monkeypatch)

    def after(line: dict[str, Any]) -> None:
        if line["phase"] == "train" and line["step"] == 2:
            there.append((tmp_path / "beside/checkpoints/step_000001").exists())
            disk.released.set()

    asyncio.run(train(config, tmp_path / "beside", report=after))
    assert there == [False] and disk.waited and all(disk.waited)
    assert figures(tmp_path / "beside") == figures(tmp_path / "waits")
    assert not left_behind(tmp_path / "beside")
    for step in range(5):
        assert same(files(tmp_path / "beside", step), files(tmp_path / "waits", step)), step
    # and another run reads and continues what a thread has written
    for later in ("step_000002", "step_000003", "step_000004"):
        for path in sorted((tmp_path / "beside/checkpoints" / later).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (tmp_path / "beside/checkpoints" / later).rmdir()
    asyncio.run(train(None, tmp_path / "beside", resume=True))
    assert figures(tmp_path / "beside") == figures(tmp_path / "waits")


@pytest.mark.deep
def test_a_disk_that_refuses_twice_ends_the_run_though_it_had_gone_on(tmp_path, monkeypatch, capsys):
    sync = os.fsync

    def refuse(file: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise OSError(28, "No space left on device")
        sync(file)

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", refuse)
        with pytest.raises(DiskFull, match=r"cannot be written to .*No space left.*: free some space, then"):
            asyncio.run(train(short_run(**EVERY), tmp_path / "full"))
    assert "a checkpoint could not be written and is left out once" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "full/checkpoints").iterdir()] == ["step_000000"]
    asyncio.run(train(None, tmp_path / "full", resume=True))
    asyncio.run(train(short_run(**EVERY), tmp_path / "calm"))
    assert figures(tmp_path / "full") == figures(tmp_path / "calm")
    assert episode_keys(tmp_path / "full") == episode_keys(tmp_path / "calm")


@pytest.mark.deep
def test_a_second_signal_does_not_wait_for_a_checkpoint_and_leaves_none_that_is_half_there(tmp_path, monkeypatch):
    asyncio.run(train(short_run(**EVERY), tmp_path / "calm"))
    disk = SlowDisk(monkeypatch)

    def after(line: dict[str, Any]) -> None:
        if line["phase"] == "train" and line["step"] == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(train(short_run(**EVERY), tmp_path / "run", report=after))
    disk.released.set()
    assert not (tmp_path / "run/checkpoints/step_000001").exists()
    for thread in threading.enumerate():
        if thread.name == "checkpoint":
            thread.join(30)
    assert not (tmp_path / "run/checkpoints/step_000001").exists(), "a run that had ended wrote on"
    asyncio.run(train(None, tmp_path / "run", resume=True))
    assert figures(tmp_path / "run") == figures(tmp_path / "calm")


def test_a_copy_has_no_more_memory_than_there_is_and_no_second_copy_of_tied_weights(tmp_path):
    async def held() -> None:
        async with open_run(short_run()) as run:
            language = run.only.language
            write = language.held()
            with torch.no_grad():
                for weights in language.model.parameters():
                    weights.zero_()
            (tmp_path / "held").mkdir()
            write(tmp_path / "held")
            language.save(tmp_path / "zeros")

    asyncio.run(held())
    ours, zeros = (load_file(tmp_path / name / "model.safetensors") for name in ("held", "zeros"))
    assert ours.keys() == zeros.keys() and "lm_head.weight" not in ours
    assert all(value.any() for value in ours.values()) and not any(value.any() for value in zeros.values())
    names = [{path.name for path in (tmp_path / name).iterdir()} for name in ("held", "zeros")]
    assert names[0] == names[1]
