"""SIGTERM, SIGHUP, SIGINT once and twice at a random moment: the run saves what is done and leaves in time."""

import os
import signal
import time
from pathlib import Path

from short_runs import ended, episode_keys, figures, finish, left_behind, missing_and_double, short_run, start
from tally import Tally

from manyturn.cli.app import _train
from manyturn.envs.contract.random_keys import generator
from manyturn.terminal.command_exit import SignalWatch
from manyturn.trainers.record.stop_signal import DRAIN_SECONDS

SHORT, LONG = 4, 20
# What is sent, and the exit status that it must lead to.
_ORDERS = (
    ((signal.SIGTERM,), 0),
    ((signal.SIGHUP,), 0),
    ((signal.SIGINT,), 130),
    ((signal.SIGINT, signal.SIGINT), 130),
)


def run(count: int, seed: int, folder: Path) -> Tally:
    began = time.monotonic()
    finish(folder / "calm")
    whole = time.monotonic() - began
    calm, keys = figures(folder / "calm"), episode_keys(folder / "calm")
    rng, tally, slowest = generator("signals", seed), Tally(), 0.0
    while tally.injected < count:
        path, (orders, expected) = folder / f"asked-{tally.injected}", _ORDERS[tally.injected % len(_ORDERS)]
        child = start(lambda path=path: _command(path))
        _wait_until_listening(path)
        time.sleep(float(rng.uniform(0, 0.7 * whole)))
        asked = time.monotonic()
        for order in orders:
            os.kill(child, order)
            time.sleep(0.01)
        status = ended(child, DRAIN_SECONDS + 10)
        if (path / "summary.json").exists():
            path.rename(folder / f"quicker-{len(list(folder.iterdir()))}")  # it was over before the signal
            continue
        slowest = max(slowest, time.monotonic() - asked)
        finish(path)
        # A second signal that comes before Python has handled the first is the kernel's, which a shell calls 130 too.
        said = 128 - status if status < 0 and len(orders) > 1 else status
        equal = said == expected and figures(path) == calm
        lost, double = missing_and_double(episode_keys(path), keys)
        why = f"{[order.name for order in orders]}: status {status}, expected {expected}"
        tally += Tally(1, int(equal), lost, double, 0, 1, int(equal), len(left_behind(path)), [] if equal else [why])
    tally.notes.append(f"the slowest run left {slowest:.1f} s after its signal")
    return tally


def _command(path: Path) -> None:
    """Train as the command does, with the watchdog that ends a process whose handlers cannot."""
    with SignalWatch():
        _train(short_run(), path)


def _wait_until_listening(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not (path / "config.toml").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
