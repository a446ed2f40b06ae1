"""Several evaluations share one engine: none takes, empties or removes what belongs to another."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from manyturn.containers.engine.container_engine import LABEL, client
from manyturn.containers.pool import SIZE_VARIABLE

TASKS = 12


def _evaluation(out: Path) -> subprocess.Popen[bytes]:
    command = ["evaluate", "expert", "--env", "manyturn/Code-v0", "--limit", str(TASKS), "--out", str(out)]
    environ = {**os.environ, SIZE_VARIABLE: "2"}
    return subprocess.Popen([sys.executable, "-m", "manyturn", *command], env=environ, stdout=subprocess.DEVNULL)


def _found(out: Path) -> dict[str, Any]:
    told = json.loads((out / "summary.json").read_text())
    return {name: told[name] for name in ("panel", "success", "return", "turns", "endings", "errors")}


def _containers() -> set[str]:
    return {found["Id"] for found in client().containers(all=True, filters={"label": LABEL})}


@pytest.mark.slow
def test_one_of_four_processes_is_killed_and_the_others_do_not_notice(engine: str, tmp_path: Path) -> None:
    before = _containers()
    alone = _evaluation(tmp_path / "alone")
    assert alone.wait(300) == 0
    names = ["first", "second", "third", "killed"]
    running = {name: _evaluation(tmp_path / name) for name in names}
    try:
        deadline = time.monotonic() + 120
        while len(_containers() - before) < 2 * len(names) and running["killed"].poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running["killed"].kill()
        reaped = subprocess.run(
            [sys.executable, "-m", "manyturn", "containers", "reap"], capture_output=True, check=False
        )
        assert reaped.returncode == 0, reaped.stderr
        assert all(running[name].wait(300) == 0 for name in names[:3])
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    assert _found(tmp_path / "alone")["success"]["mean"] == 1.0
    assert all(_found(tmp_path / name) == _found(tmp_path / "alone") for name in names[:3])
    deadline = time.monotonic() + 20
    while _containers() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _containers() - before
