"""Candidate faults in their order, and the split of a function's faults: all follows from a seed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from manyturn.envs.contract.random_keys import digest, generator, seed_of
from manyturn.envs.software.mutation import operators
from manyturn.envs.software.source.edits import Edit
from manyturn.envs.software.source.libraries import Library
from manyturn.envs.software.source.library_sources import tree

SPLITS = ("train", "validation", "test", "test_functions", "smoke")
PER_FUNCTION = 4  # faults tried in a function, at most: many functions are better than many faults of one
_SHARES = (("train", 72), ("validation", 80), ("test_functions", 100))  # percent of a library's functions, summed up
_MOST_PAIRS = 2000
_MOST_FILES = 10  # what more test files need breaks too much, and takes long to find out about


class Fault(NamedTuple):
    """Edits of one library.

    Attributes:
        library: its name.
        edits: path and edit of each, in the order of paths and spans.
        tests: test files that call a function which is edited.
    """

    library: str
    edits: tuple[tuple[str, Edit], ...]
    tests: tuple[str, ...]

    @property
    def id(self) -> str:
        """Follows from the library's name and the edits."""
        return f"{self.library}-{digest(self.library, self.edits)[:10]}"

    @property
    def functions(self) -> frozenset[tuple[str, str]]:
        """Path and qualified name of each function that is edited."""
        return frozenset((path, edit.function) for path, edit in self.edits)


def split_of(library: Library, path: str, function: str) -> str:
    """The split of all faults in a function: no two splits have a function in common, nor test and others a library."""
    if library.held_out:
        return "test"
    if not library.archive:
        return "smoke"
    percent = seed_of("software", library.name, path, function.partition(".<locals>")[0]) % 100
    return next(split for split, limit in _SHARES if percent < limit)


def singles(library: Library, calls: Mapping[str, Sequence[str]], seed: int) -> Iterator[Fault]:
    """Faults of one edit each, function after function, another operator each time.

    Args:
        calls: test file -> functions that its tests call, as ``path:qualified name``.
    """
    callers: dict[str, list[str]] = {}
    for test, called in sorted(calls.items()):
        for function in called:
            callers.setdefault(function, []).append(test)
    rounds: list[list[Fault]] = [[] for _ in range(PER_FUNCTION)]
    for (path, function), edits in sorted(_by_function(library).items()):
        tests = tuple(callers.get(f"{path}:{function}", ()))
        if 0 < len(tests) <= _MOST_FILES:
            for fault, into in zip(_drawn(library, path, tests, edits, seed), rounds, strict=False):
                into.append(fault)
    for number, faults in enumerate(rounds):
        for at in generator("software order", library.name, seed, number).permutation(len(faults)):
            yield faults[at]


def _by_function(library: Library) -> dict[tuple[str, str], list[Edit]]:
    edits_of: dict[tuple[str, str], list[Edit]] = {}
    for path, content in tree(library).items():
        if library.counts(path):
            for edit in operators.edits(content):
                edits_of.setdefault((path, edit.function), []).append(edit)
    return edits_of


def _drawn(library: Library, path: str, tests: tuple[str, ...], edits: Sequence[Edit], seed: int) -> Iterator[Fault]:
    """One edit of each operator, in an order of its own for each function."""
    chance = generator("software edit", library.name, path, edits[0].function, seed)
    kinds = sorted({edit.operator for edit in edits})
    for kind in chance.permutation(kinds):
        some = [edit for edit in edits if edit.operator == kind]
        yield Fault(library.name, ((path, some[chance.integers(len(some))]),), tests)


def combined(faults: Collection[Fault], seed: int) -> Iterator[Fault]:
    """Two or three faults of different functions at a time; those of one file come first."""
    in_order = sorted(faults, key=lambda fault: fault.id)
    options: list[tuple[Any, ...]] = []
    for size in (2, 3):
        options += list(combinations(in_order, size))[:_MOST_PAIRS]
    order = generator("software combined", seed, [fault.id for fault in in_order]).permutation(len(options))
    for at in sorted(order, key=lambda at: len({path for fault in options[at] for path, _ in fault.edits})):
        some = options[at]
        if len(frozenset().union(*(fault.functions for fault in some))) == len(some):
            every = (edit for fault in some for edit in fault.edits)
            edits = tuple(sorted(every, key=lambda one: (one[0], one[1].span)))
            yield Fault(some[0].library, edits, tuple(sorted({test for fault in some for test in fault.tests})))
