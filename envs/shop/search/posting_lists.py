"""Numbers by key, in three arrays: which documents have a term, which products are of a kind."""

import shutil
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyturn.envs.shop.search.json_lines import SortedTexts, load_array, write_lines

_BLOCK = 500_000  # postings that are sorted at a time


@dataclass(frozen=True, slots=True)
class Postings:
    """Lists of numbers, one for each key.

    Args:
        places: key -> place of its list.
        starts: [keys + 1] where each list begins in the two others.
        numbers: [postings] ascending within a list.
        weights: [postings] of each number: how often it has the key, until an index makes something else of it.
    """

    places: Mapping[str, int] | SortedTexts
    starts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    weights: NDArray[np.float32]

    def span(self, place: int) -> slice:
        return slice(int(self.starts[place]), int(self.starts[place + 1]))

    def of(self, key: str) -> NDArray[np.int32]:
        """The numbers that have a key; none for a key that nothing has."""
        place = self.places.get(key)
        return self.numbers[:0] if place is None else self.numbers[self.span(place)]


class PostingsBuilder:
    """Makes postings of keys as they come. What is not sorted yet lies on disk if they are to go there.

    Args:
        folder: to be made, for the postings; default: memory.
    """

    def __init__(self, folder: Path | None = None):
        self._folder = folder
        if folder:
            folder.mkdir()
        self._places: dict[str, int] = {}
        self._block = array("i")  # of triples: place, number, weight
        self._blocks: list[NDArray[np.int32] | Path] = []

    def add(self, number: int, counts: Mapping[str, int]) -> None:
        """Keys of a number, and their counts. Numbers come in ascending order."""
        places, block = self._places, self._block
        for key, count in counts.items():
            block.extend((places.setdefault(key, len(places)), number, count))
        if len(block) >= 3 * _BLOCK:
            self._put_aside()

    def _put_aside(self) -> None:
        block: NDArray[np.int32] | Path = np.array(self._block, np.int32).reshape(-1, 3)
        if self._folder:
            file = self._folder / "unsorted" / f"{len(self._blocks)}.npy"
            file.parent.mkdir(exist_ok=True)
            np.save(file, block)
            block = file
        self._blocks.append(block)
        self._block = array("i")

    def finish(self) -> Postings:
        """The postings; those on disk can be written to, until ``opened`` reads them again."""
        self._put_aside()
        names = sorted(self._places)
        rank = np.zeros(len(names), np.int64)
        rank[[self._places[name] for name in names]] = np.arange(len(names))
        self._places = {}
        blocks = (np.load(block) if isinstance(block, Path) else block for block in self._blocks)
        frequencies = np.zeros(len(names), np.int64)
        for block in blocks:
            frequencies += np.bincount(rank[block[:, 0]], minlength=len(names))
        starts = np.concatenate([[0], np.cumsum(frequencies)])
        places: Mapping[str, int] | SortedTexts = {}
        if self._folder:
            np.save(self._folder / "starts.npy", starts)
            write_lines(self._folder / "keys", names)
            places = SortedTexts(self._folder / "keys")
        else:
            places = {name: place for place, name in enumerate(names)}
        made = Postings(places, starts, *self._space(int(starts[-1])))
        self._sort(rank, made)
        if self._folder:
            shutil.rmtree(self._folder / "unsorted")
        return made

    def _space(self, size: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        if self._folder is None:
            return np.empty(size, np.int32), np.empty(size, np.float32)
        made = np.lib.format.open_memmap
        return (
            made(self._folder / "numbers.npy", "w+", np.int32, (size,)),
            made(self._folder / "weights.npy", "w+", np.float32, (size,)),
        )

    def _sort(self, rank: NDArray[np.int64], made: Postings) -> None:
        """Each block's postings go after those of the blocks before it."""
        free = made.starts[:-1].copy()
        for block in self._blocks:
            triples = np.load(block) if isinstance(block, Path) else block
            places = rank[triples[:, 0]]
            order = np.argsort(places, kind="stable")
            counts = np.bincount(places, minlength=len(free))
            firsts = np.cumsum(counts) - counts
            spots = free[places[order]] + np.arange(len(order)) - firsts[places[order]]
            made.numbers[spots], made.weights[spots] = triples[order, 1], triples[order, 2]
            free += counts


def opened(folder: Path) -> Postings:
    """Postings that a ``PostingsBuilder`` put into a folder, mapped."""
    arrays = (load_array(folder / name) for name in ("starts", "numbers", "weights"))
    return Postings(SortedTexts(folder / "keys"), *arrays)
