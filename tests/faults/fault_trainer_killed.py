"""kill -9 at a uniformly random moment of a run, while it saves too: it continues to the same bits."""

import os
import signal
import time
from pathlib import Path

from short_runs import ended, episode_keys, figures, finish, left_behind, missing_and_double, start, work_on
from tally import Tally

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 4, 50


def run(count: int, seed: int, folder: Path) -> Tally:
    began = time.monotonic()
    finish(folder / "calm")
    whole = time.monotonic() - began
    calm, keys = figures(folder / "calm"), episode_keys(folder / "calm")
    rng, tally, phases = generator("kill", seed), Tally(), set[str]()
    while tally.injected < count:
        path = folder / f"stormy-{tally.injected}"
        child = start(lambda path=path: work_on(path))
        time.sleep(float(rng.uniform(0.02, whole)))
        os.kill(child, signal.SIGKILL)
        if ended(child) != -signal.SIGKILL:
            path.rename(folder / f"quicker-{len(list(folder.iterdir()))}")  # it was over before the kill
            continue
        phases.add(max((p.name for p in path.glob("checkpoints/step_*")), default="before the first checkpoint"))
        tally += _resume(path, calm, keys)
    tally.notes.append(f"killed after {', '.join(sorted(phases))}")
    return tally


def _resume(path: Path, calm: object, keys: list[tuple[object, ...]]) -> Tally:
    finish(path)
    lost, double = missing_and_double(episode_keys(path), keys)
    equal = figures(path) == calm
    return Tally(
        injected=1,
        survived=int(equal),
        lost=lost,
        duplicated=double,
        resumes=1,
        bit_exact=int(equal),
        orphans=len(left_behind(path)),
        notes=[] if equal else [f"{path.name} differs from the undisturbed run"],
    )
