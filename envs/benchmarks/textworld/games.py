"""TextWorld's games: made by ``tw-make`` of the installed package without a network, and kept on disk."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from manyturn.envs.benchmarks.engine_process import tested_package
from manyturn.envs.contract.atomic_files import cache_of
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup

VERSION = "1.7.0"
_SECONDS = 900  # making takes 5, and more on a machine that is busy


class GameError(RuntimeError):
    """``tw-make`` made no game."""


def maker() -> str:
    """Path of the program ``tw-make``. Raises NeedsSetup."""
    package = tested_package("textworld", VERSION)
    for file in package.files or ():
        if file.name == "tw-make" and (path := Path(str(file.locate()))).is_file():
            return str(path.resolve())
    raise NeedsSetup("the package textworld lacks its program tw-make: pip install --force-reinstall textworld==1.7.0")


def game_file(words: Sequence[str], seed: int) -> Path:
    """The file of a game, made if it was not before.

    Args:
        words: arguments of ``tw-make``.
        seed: decides the game.

    Raises:
        NeedsSetup: the package is missing.
        GameError: there is no such game.
    """
    folder = cache_of("textworld") / VERSION / digest(list(words), seed)[:32]
    if not (folder / "game.json").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as place:
            _make(words, seed, Path(place))
            aside = Path(place) / "done"
            aside.mkdir()
            for name in ("game.z8", "game.json"):
                shutil.move(Path(place) / name, aside / name)
            if not folder.is_dir():
                try:
                    aside.rename(folder)
                except OSError:
                    if not (folder / "game.json").is_file():  # else another process was faster
                        raise
    return folder / "game.z8"


def _make(words: Sequence[str], seed: int, place: Path) -> None:
    """Run ``tw-make`` in a folder. Raises GameError."""
    command = [sys.executable, maker(), *words, "--seed", str(seed), "--output", str(place / "game.z8"), "--silent"]
    environ = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": str(place)}
    environ |= {"TMPDIR": str(place), "PYTHONHASHSEED": "0"}
    try:
        made = subprocess.run(
            command, cwd=place, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise GameError(f"tw-make {' '.join(words)} made no game within {_SECONDS} s: ask for a smaller one") from None
    if made.returncode or not all((place / f"game.{end}").is_file() for end in ("z8", "json")):
        reason = (made.stderr or made.stdout).strip().splitlines()
        raise GameError(f"tw-make {' '.join(words)} made no game: {reason[-1][:500] if reason else made.returncode}")
