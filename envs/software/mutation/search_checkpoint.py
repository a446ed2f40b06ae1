"""Journal of a search for tasks, on disk: an interrupted search resumes where it was.

A search with another seed, or of other releases, needs a journal of its own.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.envs.software.mutation.candidates import Fault
from manyturn.envs.software.mutation.fault_validation import Baseline, Verdict
from manyturn.envs.software.source.edits import Edit
from manyturn.envs.software.source.libraries import Library, library


class FaultTrial(NamedTuple):
    """A fault and what became of it."""

    fault: Fault
    verdict: Verdict


class Journal:
    """A file of JSON lines: the seed, a baseline for each library, and every fault that was tried."""

    def __init__(self, file: Path, seed: int) -> None:
        self.file = file
        self.baselines: dict[str, Baseline] = {}
        self.trials: dict[str, FaultTrial] = {}
        records = list(_records(file))
        if not records:
            self._append({"seed": seed})
        elif records[0] != {"seed": seed}:
            raise ValueError(f"{file} is of another search, {records[0]}: remove it, or give --out another file")
        for record in records[1:]:
            self._take(record)

    def _take(self, record: dict[str, Any]) -> None:
        if "baseline" in record:
            name, _, version = record["baseline"].partition("==")
            if library(name).version != version:
                raise ValueError(f"{self.file} is of {record['baseline']}: remove it, or give --out another file")
            self.baselines[name] = Baseline(frozenset(record["steady"]), record["calls"])
            return
        edits = tuple((path, edit_of(edit)) for path, edit in record["edits"])
        fault = Fault(record["library"], edits, tuple(record["tests"]))
        symptoms = tuple((test, message) for test, message in record["symptoms"])
        verdict = Verdict(
            record["reason"], tuple(record["fails"]), tuple(record["passes"]), symptoms, record["seconds"]
        )
        self.trials[fault.id] = FaultTrial(fault, verdict)

    def add_baseline(self, release: Library, baseline: Baseline) -> None:
        self._append({"baseline": release.pin, "steady": sorted(baseline.steady), "calls": baseline.calls})
        self.baselines[release.name] = baseline

    def add(self, fault: Fault, verdict: Verdict) -> None:
        reason, fails, passes, symptoms, seconds = verdict
        record = {"library": fault.library, "edits": fault.edits, "tests": fault.tests, "reason": reason}
        self._append(record | {"fails": fails, "passes": passes, "symptoms": symptoms, "seconds": seconds})
        self.trials[fault.id] = FaultTrial(fault, verdict)

    def _append(self, record: dict[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, separators=(",", ":")) + "\n")


def _records(file: Path) -> Iterator[dict[str, Any]]:
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):  # the last one may have been cut off
                yield json.loads(line)


def edit_of(fields: Any) -> Edit:
    """An edit from its JSON."""
    operator, function, span, pieces = fields
    return Edit(operator, function, tuple(span), tuple(p if isinstance(p, str) else tuple(p) for p in pieces))
