"""Problem: the files, tests and statement of a software task from any source."""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Problem(NamedTuple):
    """A tree of files with a fault, and the tests that tell whether it is fixed.

    Attributes:
        id: unique among the problems of its source.
        statement: what the agent is told of the fault.
        files: path below the workspace -> content: what the agent starts from.
        tests: path -> content of every file that grades; written back before grading, whatever the agent did to them.
        fail_to_pass: pytest's ids of tests that fail in ``files`` and pass with ``fix``.
        pass_to_pass: ids of tests that pass in both.
        fix: path -> content after the known fix; what is not named stays.
        counts: whether a change of the file at a path is carried over to grading.
        alone: for each of several faults, path -> content of a program that has this fault and no other; empty if there
            is one fault.
    """

    id: str
    statement: str
    files: Mapping[str, bytes]
    tests: Mapping[str, bytes]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    fix: Mapping[str, bytes]
    counts: Callable[[str], bool]
    alone: tuple[Mapping[str, bytes], ...] = ()
