"""Result of a policy on a suite: one JSON file, to compare with and to add to the page of results."""

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import manyturn
from manyturn.agents.evaluation.evaluate import Evaluation
from manyturn.agents.evaluation.format_mismatch import reply_remarks
from manyturn.agents.evaluation.remarks import remarks
from manyturn.agents.evaluation.statistics import mean_interval
from manyturn.agents.evaluation.summary import plain_interval, scored_rows, values_by_task
from manyturn.api.evaluation import Settings
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.suites.suite import Suite, SuiteError, SuitePanel

FILE = "suite.json"
_VERSION = 1
_OF_POLICY = ("policy", "agent", "sampling", "endpoint", "max_turns")


@dataclass(frozen=True)
class Result:
    """A policy on a suite.

    Attributes:
        file: the suite's.
        values: plain values for JSON; see ``Tally.finish``.
        out: the folder that holds them, and a folder for each panel.
        remarks: what the figures would not say -> the panels that it is true of.
    """

    suite: Suite
    file: Path
    values: dict[str, Any]
    out: Path
    remarks: Mapping[str, list[str]]


@dataclass
class Tally:
    """Collects what was found on the panels of a suite by one policy."""

    suite: Suite
    file: Path
    settings: Settings
    panels: dict[str, dict[str, Any]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    _about: dict[str, Any] = field(default_factory=dict)
    _success: dict[str, list[float]] = field(default_factory=dict)
    _remarks: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, one: SuitePanel, reason: str) -> None:
        """A panel is not played."""
        self.skipped[one.name] = reason

    def take(self, one: SuitePanel, evaluation: Evaluation) -> None:
        """A panel was played."""
        summary = evaluation.summary
        self._about = {name: summary[name] for name in _OF_POLICY}
        self.panels[one.name] = {"identity": one.identity, **_figures(summary)}
        if not one.need:
            values = values_by_task(scored_rows(evaluation.episodes), "success")
            self._success |= {f"{one.name} {task}": numbers for task, numbers in values.items()}
        notes = reply_remarks(evaluation.episodes, evaluation.turns, summary["agent"])
        for remark in (*notes.lines, *remarks(summary, invalid_explained=notes.explain_invalid)):
            self._remarks.setdefault(remark, []).append(one.name)

    def finish(self, out: Path) -> Result:
        """Write the result to the folder.

        ``core`` is the success over all tasks of the panels that need nothing, each task counting once; None unless
        all of them were played.
        """
        missing = [one.name for one in self.suite.core if one.name not in self.panels]
        core = None if missing else plain_interval(mean_interval(self._success, proportion=True))
        values = {
            "schema_version": _VERSION,
            "suite": self.suite.name,
            "suite_hash": self.suite.hash,
            **self._about,
            "repeats": self.settings.repeats,
            "seed": self.settings.seed,
            "core": core,
            "totals": _totals(self.panels),
            "panels": self.panels,
            "skipped": self.skipped,
            "made": _made(),
        }
        out.mkdir(parents=True, exist_ok=True)
        replace_text(out / FILE, json.dumps(values, indent=1, allow_nan=False) + "\n")
        return Result(self.suite, self.file, values, out, self._remarks)


def _figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "success": summary["success"],
        "return": summary["return"]["mean"],
        "turns": summary["turns"]["mean"],
        "invalid_action_rate": summary["invalid_action_rate"],
        "cut_reply_rate": summary["cut_reply_rate"],
        "tokens": {name: summary["tokens"][name] for name in ("prompt_total", "reply_total")},
        "cost": summary["cost"]["total"],
        "errors": summary["errors"]["n"],
        "seconds": summary["seconds"],
    }


def _totals(panels: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Sums over the panels that were played; None where no panel knows a number."""
    every = list(panels.values())
    played = sum(one["success"]["n_episodes"] for one in every)
    return {
        "episodes": played + sum(one["errors"] for one in every),
        "errors": sum(one["errors"] for one in every),
        "seconds": _sum(one["seconds"]["wall"] for one in every),
        "prompt_tokens": _sum(one["tokens"]["prompt_total"] for one in every),
        "reply_tokens": _sum(one["tokens"]["reply_total"] for one in every),
        "cost": _sum(one["cost"] for one in every),
    }


def _sum(values: Any) -> float | int | None:
    present = [value for value in values if value is not None]
    if not present:
        return None
    return sum(present) if all(isinstance(value, int) for value in present) else math.fsum(present)


def _made() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "manyturn": manyturn.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
    }


def read_result(file: Path, suite: Suite) -> dict[str, Any]:
    """A result of a suite, or of an earlier form of it that shares its panels. Raises SuiteError.

    A panel's identity holds everything that decides results on it, so a result stands as long as its panels do. The
    core is a figure over panels: a result that has one needs every panel of this suite's core.
    """
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        version, core = values["schema_version"], values["core"]
        identities = {name: one["identity"] for name, one in values["panels"].items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SuiteError(
            f"{file} is no result of a suite ({type(error).__name__}: {error}): take {FILE} from the folder of "
            f"manyturn evaluate POLICY --suite {suite.name}"
        ) from None
    identity_of = {one.name: one.identity for one in suite}
    complete = core is None or all(one.name in identities for one in suite.core)
    if version != _VERSION or not complete or not identities.items() <= identity_of.items():
        raise SuiteError(
            f"{file} was made on another {suite.name} than this one, whose hash is {suite.hash}: play it again with "
            f"manyturn {suite.frozen_with}"
        )
    return values


def results_in(folder: Path, suite: Suite) -> dict[str, dict[str, Any]]:
    """The results in a folder, by the name of the file; a folder that is not there has none."""
    return {file.stem: read_result(file, suite) for file in sorted(folder.glob("*.json"))}
