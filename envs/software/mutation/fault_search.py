"""The search for tasks: faults of one library after another are tried until there are enough."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from manyturn.containers.sandbox import Sandbox
from manyturn.envs.software.mutation.candidates import Fault, combined, singles, split_of
from manyturn.envs.software.mutation.fault_validation import VALID, FaultValidator, Verdict
from manyturn.envs.software.mutation.search_checkpoint import FaultTrial, Journal
from manyturn.envs.software.source.libraries import Library

HARD = 0.2
"""Part of a library's tasks that have several faults."""


def search(
    libraries: Iterable[Library],
    count: int,
    journal: Journal,
    seed: int,
    sandbox: Callable[[], Sandbox],
    tell: Callable[[FaultTrial], None],
) -> list[FaultTrial]:
    """Try faults until there are ``count`` tasks, as many from each library as possible, or none are left to try.

    Args:
        sandbox: makes a container.
        tell: is told of each fault that was tried.

    Returns:
        The tasks, in the order in which they were found; the same for a search that was interrupted.
    """
    every, tasks = list(libraries), []
    share = math.ceil(count / len(every))
    for library in every:
        with FaultValidator(library, sandbox, journal.baselines.get(library.name)) as validator:
            if library.name not in journal.baselines:
                journal.add_baseline(library, validator.baseline)
            one = _Search(validator, journal, seed, tell)
            alone = one.alone(share - int(HARD * share))
            tasks += alone + one.together(alone, share - len(alone))
    return tasks


class _Search:
    """The search in one library. What stands in the journal is not tried again."""

    def __init__(
        self, validator: FaultValidator, journal: Journal, seed: int, tell: Callable[[FaultTrial], None]
    ) -> None:
        self._validator, self._journal, self._seed, self._tell = validator, journal, seed, tell

    def alone(self, count: int) -> list[FaultTrial]:
        """Tasks of one fault each; of faults in one function that break the same tests the first."""
        tasks: list[FaultTrial] = []
        alike: set[tuple[Any, ...]] = set()
        for fault in singles(self._validator.library, self._validator.baseline.calls, self._seed):
            if len(tasks) >= count:
                break
            verdict = self._tried(fault)
            kind = (fault.functions, verdict.fail_to_pass)
            if verdict.reason == VALID and kind not in alike:
                alike.add(kind)
                tasks.append(FaultTrial(fault, verdict))
        return tasks

    def together(self, alone: list[FaultTrial], count: int) -> list[FaultTrial]:
        """Tasks of several faults, all from one split, as many from each split as it has tasks of one fault."""
        by_split: dict[str, list[FaultTrial]] = {}
        for single in alone:
            ((path, function),) = single.fault.functions
            by_split.setdefault(split_of(self._validator.library, path, function), []).append(single)
        tasks: list[FaultTrial] = []
        for _, some in sorted(by_split.items()):
            tasks += self._of_parts(some, math.ceil(count * len(some) / len(alone)))
        return tasks

    def _of_parts(self, parts: list[FaultTrial], count: int) -> list[FaultTrial]:
        """Combined faults that will hardly break too much; none is tried in two of them."""
        tasks: list[FaultTrial] = []
        used: set[Any] = set()
        breaks = {single.fault.edits[0]: frozenset(single.verdict.fail_to_pass) for single in parts}
        for fault in combined([single.fault for single in parts], self._seed):
            if len(tasks) >= count:
                break
            some = [breaks[edit] for edit in fault.edits]
            if used.isdisjoint(fault.edits) and self._validator.bears(fault, frozenset().union(*some)):
                used |= set(fault.edits)
                verdict = self._tried(fault, some)
                if verdict.reason == VALID:
                    tasks.append(FaultTrial(fault, verdict))
        return tasks

    def _tried(self, fault: Fault, parts: list[frozenset[str]] | None = None) -> Verdict:
        if fault.id not in self._journal.trials:
            self._journal.add(fault, self._validator.judge(fault, parts or ()))
            self._tell(self._journal.trials[fault.id])
        return self._journal.trials[fault.id].verdict
