"""Kinds of games: presets, and arguments of TextWorld's program ``tw-make`` that are safe to give.

Source: the package textworld 1.7.0. Presets ``w2-o3-q4``, ``w4-o6-q8`` and ``simple`` with their turns are those of
Wang and Ammanabrolu's A Practitioner's Guide to Multi-turn Agentic Reinforcement Learning (arXiv 2510.01132).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from manyturn.envs.contract.near_names import near_names

KINDS = ("custom", "tw-simple", "tw-coin_collector", "tw-treasure_hunter", "tw-cooking")
_COOKING_SPLITS = {"train": "train", "validation": "valid", "test": "test"}
# Options of tw-make that run other code, write elsewhere, or are the environment's to give.
_OURS = (
    *("--third-party", "--output", "--seed", "--format", "--overview", "--save-overview", "--force", "--silent"),
    *("--verbose", "--help", "-f", "-v", "-h"),
)


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
