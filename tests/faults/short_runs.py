"""Short training runs in processes of their own, and what must be equal between two of them.

The processes are forked, which is quick and must happen before anything has started threads.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manyturn.agents.records.episode_rows import read_episodes
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.run.loop.loop import train

Work = Callable[[], object]


def short_run(**changes: Any) -> RunConfig:
    """A run of two seconds that goes through every phase.

    So short a warm-up teaches no action: the policy is paid for brevity, so that every update moves its weights.
    """
    maze = {"id": "manyturn/Maze-v0", "args": {"max_turns": 5}, "workers": changes.pop("workers", 0)}
    brief = {"name": "overlong", "max_tokens": 6, "buffer": 5, "over": "reply"}
    return parse_config(
        {
            "env": maze,
            "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
            "warmup": {
                "episodes": 24,
                "must_succeed": False,
                "batch": 4,
                "max_updates": 24,
                "check_every": 12,
                "check_episodes": 4,
            },
            "sampling": {"max_tokens": 6},
            "rollout": {"tasks": 3, "group": 3},
            "credit": {"advantage": "gigpo", "rewards": [brief]},
            "learner": {"minibatch": 3},
            "objective": {"name": "clip", "kl": {"coef": 0.01}},
            "evaluation": {"limit": 6, "every": 2, "every_limit": 3},
            "steps": 5,
            "checkpoint_every": 2,
            **changes,
        }
    )


def figures_apart_from_hosts(run: Path) -> dict[str, Any]:
    """All figures of a run except for its clock and its hosts."""
    values, hosts = figures(run), ("lost_hosts", "moved_episodes", "host_")
    lines = [{name: value for name, value in line.items() if not name.startswith(hosts)} for line in values["metrics"]]
    return {**values, "metrics": lines}


def resumed_to_the_bit(config: RunConfig, folder: Path) -> Path:
    """A run whose copy, taken after its third step and continued, had the same figures.

    Checkpoint 2 is on disk then, and step 3 is in the journal.
    """
    calm, killed = folder / "calm", folder / "killed"

    def copy_when_half_done(line: dict[str, Any]) -> None:
        if line["phase"] == "train" and line["step"] == 3:
            shutil.copytree(calm, killed, ignore=shutil.ignore_patterns(".*.writing"))

    asyncio.run(train(config, calm, report=copy_when_half_done))
    assert not (killed / "summary.json").exists()
    asyncio.run(train(None, killed, resume=True))
    assert figures(killed) == figures(calm)
    return calm


def work_on(folder: Path) -> None:
    """Begin the run of a folder, or continue it."""
    resume = (folder / "config.toml").is_file()
    asyncio.run(train(None if resume else short_run(), folder, resume=resume))


def start(work: Work) -> int:
    """Run ``work`` in a forked process; returns its id. Its exit status is that of ``sys.exit``, or 1."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 0
        # A job in the background, or under nohup, inherits them as ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work()
        except SystemExit as done:
            status = done.code if isinstance(done.code, int) else 1
        except KeyboardInterrupt:
            status = 130
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            status = 1
        os._exit(status)
    return child


def ended(child: int, seconds: float = 600.0) -> int:
    """The exit status of a process, negative for a signal; one that does not end is killed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def finish(folder: Path, work: Callable[[Path], object] = work_on) -> None:
    """Bring a run to its end in a process of its own."""
    status = ended(start(lambda: work(folder)))
    if status:
        raise RuntimeError(f"the run in {folder} ended with status {status}")


def figures(run: Path) -> dict[str, Any]:
    """All that a run found out, but for what a clock measured; the hash of the weights is in it."""
    summary = json.loads((run / "summary.json").read_text())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    clocked = ("seconds", "slowest")
    timeless = [{k: v for k, v in line.items() if not any(word in k for word in clocked)} for line in lines]
    timed = {"seconds": None, "peak_memory_mb": None, "warmup": {**summary["warmup"], "cpu_seconds": None}}
    return {"summary": {**summary, **timed}, "metrics": timeless}


def episode_keys(run: Path) -> list[tuple[Any, ...]]:
    """(stage, task, member) of every training episode in the tables of a run.

    They are read in a process of their own: pyarrow starts threads, and what is forked later may wait for their locks.
    """
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        if status := ended(start(lambda: keys.write_text(json.dumps(_keys(run))))):
            raise RuntimeError(f"the tables of {run} were not read: status {status}")
        return [tuple(key) for key in json.loads(keys.read_text())]


def _keys(run: Path) -> list[tuple[Any, ...]]:
    rows = [row for file in sorted((run / "episodes").glob("*.parquet")) for row in read_episodes(file)]
    return [(row["stage"], row["task"], row["member"]) for row in rows]


def left_behind(run: Path) -> list[str]:
    """Files that only an unfinished run may hold."""
    return [str(path) for path in run.rglob("*") if path.name.endswith(".writing") or path.parent.name == "journal"]


def missing_and_double(found: Sequence[Any], expected: Sequence[Any]) -> tuple[int, int]:
    """How many of the expected are not found, and how many are found more than once."""
    return len(set(expected) - set(found)), len(found) - len(set(found))
