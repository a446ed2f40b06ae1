"""TextWorld's games: made by ``tw-make`` of the installed package without a network, and kept on disk.

Source: the package textworld 1.7.0. Presets ``w2-o3-q4``, ``w4-o6-q8`` and ``simple`` with their turns are those of
Wang and Ammanabrolu's A Practitioner's Guide to Multi-turn Agentic Reinforcement Learning (arXiv 2510.01132).
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyturn.envs.contract.atomic_files import cache_of
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.registration.env_registry import NeedsSetup

VERSION = "1.7.0"
KINDS = ("custom", "tw-simple", "tw-coin_collector", "tw-treasure_hunter", "tw-cooking")
_COOKING_SPLITS = {"train": "train", "validation": "valid", "test": "test"}
_SECONDS = 900  # making takes 5, and more on a machine that is busy
# Options of tw-make that run other code, write elsewhere, or are the environment's to give.
_OURS = (
    *("--third-party", "--output", "--seed", "--format", "--overview", "--save-overview", "--force", "--silent"),
    *("--verbose", "--help", "-f", "-v", "-h"),
)


class GameError(RuntimeError):
    """``tw-make`` made no game."""


@dataclass(frozen=True)
class Preset:
    """A kind of games.

    Args:
        words: arguments of ``tw-make``.
        turns: default of ``max_turns``.
    """

    words: tuple[str, ...]
    turns: int


def _custom(rooms: int, objects: int, quest: int) -> tuple[str, ...]:
    sizes = {"--world-size": rooms, "--nb-objects": objects, "--quest-length": quest}
    return ("custom", *(word for name, size in sizes.items() for word in (name, str(size))))


PRESETS = {
    "w2-o3-q4": Preset(_custom(2, 3, 4), 12),
    "w4-o6-q8": Preset(_custom(4, 6, 8), 24),
    "simple": Preset(("tw-simple", "--rewards", "dense", "--goal", "detailed"), 24),
    "coin": Preset(("tw-coin_collector", "--level", "5"), 20),
    "treasure": Preset(("tw-treasure_hunter", "--level", "5"), 20),
    "cooking": Preset(
        (*("tw-cooking", "--recipe", "3", "--take", "2", "--go", "6"), "--open", "--cook", "--cut", "--drop"), 50
    ),
}


def checked_words(words: Sequence[str]) -> tuple[str, ...]:
    """Arguments of ``tw-make`` that are safe to give. Raises ValueError."""
    if not words or words[0] not in KINDS:
        near = near_names(words[0], KINDS, n=1) if words else []
        hint = f"did you mean {near[0]}?" if near else f"begin with {', '.join(KINDS)}"
        raise ValueError(f"make = {list(words)} names no kind of games: {hint}")
    for word in words[1:]:
        option = word.partition("=")[0]
        # argparse takes the beginning of an option for the option
        if option.startswith("-") and (option[:2] in _OURS or any(name.startswith(option) for name in _OURS)):
            raise ValueError(f"make cannot have {word}: it is for the environment to choose, so leave it out")
    return tuple(words)


def words_of(words: Sequence[str], split: str) -> list[str]:
    """Arguments for games of a split: cooking has food that only some splits know."""
    if words[0] == "tw-cooking" and not any(word.startswith("--split") for word in words):
        return [*words, "--split", _COOKING_SPLITS[split]]
    return list(words)


def maker() -> str:
    """Path of the program ``tw-make``. Raises NeedsSetup."""
    try:
        package = importlib.metadata.distribution("textworld")
    except importlib.metadata.PackageNotFoundError:
        raise NeedsSetup("the package textworld is not installed: pip install 'manyturn[textworld]'") from None
    if package.version != VERSION:
        raise NeedsSetup(
            f"textworld {package.version} is installed, and the one that was tested is {VERSION}: "
            "pip install 'manyturn[textworld]'"
        )
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
