"""The newest checkpoint is damaged: the one before it is taken, which is said, and the run ends as it would have."""

import contextlib
import io
import shutil
from pathlib import Path

import numpy as np
from short_runs import ended, episode_keys, figures, finish, left_behind, missing_and_double, start, work_on
from tally import Tally

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 6, 40


def _truncate(checkpoint: Path, rng: np.random.Generator) -> None:
    file = _any_file(checkpoint, rng)
    file.write_bytes(file.read_bytes()[: int(rng.integers(file.stat().st_size))])


def _flip(checkpoint: Path, rng: np.random.Generator) -> None:
    file = _any_file(checkpoint, rng)
    content = bytearray(file.read_bytes())
    content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    file.write_bytes(content)


def _remove(checkpoint: Path, rng: np.random.Generator) -> None:
    _any_file(checkpoint, rng).unlink()


def _lose_manifest(checkpoint: Path, rng: np.random.Generator) -> None:
    (checkpoint / "manifest.json").unlink()


def _tear_manifest(checkpoint: Path, rng: np.random.Generator) -> None:
    file = checkpoint / "manifest.json"
    file.write_text(file.read_text()[: int(rng.integers(file.stat().st_size - 1))])


def _empty(checkpoint: Path, rng: np.random.Generator) -> None:
    shutil.rmtree(checkpoint)
    checkpoint.mkdir()


_DAMAGES = (_truncate, _flip, _remove, _lose_manifest, _tear_manifest, _empty)


def _any_file(checkpoint: Path, rng: np.random.Generator) -> Path:
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != "manifest.json")
    return files[int(rng.integers(len(files)))]


def run(count: int, seed: int, folder: Path) -> Tally:
    finish(folder / "calm")
    calm, keys = figures(folder / "calm"), episode_keys(folder / "calm")
    rng, tally = generator("damage", seed), Tally()
    for number in range(count):
        path = folder / f"damaged-{number}"
        shutil.copytree(folder / "calm", path)
        (path / "summary.json").unlink()
        damage = _DAMAGES[number % len(_DAMAGES)]
        damage(max(path.glob("checkpoints/step_*")), rng)
        said = path / "said"
        status = ended(start(lambda path=path, said=said: _saying(path, said)))
        told = said.exists() and "skipped a damaged checkpoint" in said.read_text()
        equal = status == 0 and told and figures(path) == calm
        lost, double = missing_and_double(episode_keys(path), keys)
        why = f"{damage.__name__} on {path.name}: status {status}, {'said' if told else 'not said'}, equal {equal}"
        tally += Tally(1, int(equal), lost, double, 0, 1, int(equal), len(left_behind(path)), [] if equal else [why])
    return tally


def _saying(path: Path, said: Path) -> None:
    """Continue the run, and keep what it says."""
    words = io.StringIO()
    with contextlib.redirect_stderr(words):
        work_on(path)
    said.write_text(words.getvalue())
