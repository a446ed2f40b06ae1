"""A host of environments is killed or stopped in the middle of a run: the other one plays on, to the same bits."""

import asyncio
import signal
import time
from pathlib import Path

from elsewhere import HostProcess, host_processes
from short_runs import ended, episode_keys, figures, finish, left_behind, missing_and_double, short_run, start
from tally import Tally

from manyturn.envs.contract.keys import generator
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.loop import train

SHORT, LONG = 2, 40
_OF_HOSTS = ("lost_hosts", "moved_episodes", "host_")


def config(urls: list[str]) -> RunConfig:
    """A run in which most of the time is play."""
    placement = {"kind": "static", "hosts": urls, "silence": 1.0, "wait": 120.0} if urls else {}
    maze = {"id": "manyturn/Maze-v0", "args": {"max_turns": 12}}
    return short_run(placement=placement, env=maze, warmup={"episodes": 0}, evaluation={"limit": 2}, steps=4)


def found(path: Path) -> object:
    """What a run found out, but for its hosts."""
    told = figures(path)
    kept = [{name: x for name, x in line.items() if not name.startswith(_OF_HOSTS)} for line in told["metrics"]]
    return {"summary": told["summary"], "metrics": kept}


def play(path: Path, urls: list[str]) -> None:
    asyncio.run(train(config(urls), path))


def run(count: int, seed: int, folder: Path) -> Tally:
    finish(folder / "calm", lambda path: play(path, []))
    calm, keys = found(folder / "calm"), episode_keys(folder / "calm")
    rng, tally = generator("host_killed", seed), Tally()
    with host_processes(2, "--workers", "1") as hosts:
        urls = [one.url for one in hosts]
        for number in range(2 * count):  # some strikes come after the run
            if tally.injected == count:
                break
            path, victim = folder / f"stormy-{number}", int(rng.integers(2))
            kind = signal.SIGKILL if rng.random() < 0.5 else signal.SIGSTOP
            child = start(lambda path=path: play(path, urls))
            deadline = time.monotonic() + 120
            while not (path / "checkpoints/step_000000").is_dir() and time.monotonic() < deadline:
                time.sleep(0.005)  # at its beginning a run waits for all of its hosts
            time.sleep(float(rng.uniform(0.0, 0.5)))
            struck = not (path / "summary.json").is_file()
            hosts[victim].kill(kind)
            tally += _judged(path, calm, keys, ended(child), struck)
            if kind is signal.SIGKILL:
                hosts[victim] = HostProcess("--workers", "1", port=int(urls[victim].rpartition(":")[2]))
                assert hosts[victim].url == urls[victim]
            else:
                hosts[victim].kill(signal.SIGCONT)
    return tally


def _judged(path: Path, calm: object, keys: list[tuple[object, ...]], status: int, struck: bool) -> Tally:
    if status:
        return Tally(injected=int(struck), lost=1, notes=[f"{path.name} ended with status {status}"])
    lost, double = missing_and_double(episode_keys(path), keys)
    equal = found(path) == calm
    return Tally(
        injected=int(struck),
        survived=int(struck and equal),
        lost=lost,
        duplicated=double,
        misattributed=int(not equal),
        orphans=len(left_behind(path)),
        notes=[] if equal else [f"{path.name} differs from the undisturbed run"],
    )
