"""``manyturn check``: does an environment keep the contract that training and evaluation rely on?"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import gymnasium

from manyturn.envs.conformance import conformance, sizes, solving, task_checks
from manyturn.envs.conformance.probe import Subject
from manyturn.envs.conformance.verdicts import Doubt, Fault, Result, Skip
from manyturn.envs.contract.env.error_location import show_if_debugging
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.registration.class_names import env_name
from manyturn.envs.contract.registration.environments import UnknownArgument, UnknownEnv
from manyturn.envs.contract.registration.sibling_modules import NamesakeError
from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.env_handle import EnvError, what_and_where
from manyturn.envs.hosting.handle.handshake import hello_of
from manyturn.envs.hosting.local.one_shot import OneShot, OneShotLost

CHECKS: Mapping[str, Callable[[Subject], Result]] = {
    "made": conformance.made,
    "tasks": task_checks.tasks,
    "splits": task_checks.splits,
    "turns": conformance.turns,
    "spaces": conformance.spaces,
    "gymnasium": conformance.gymnasium_checker,
    "determinism": conformance.determinism,
    "other process": conformance.other_process,
    "odd actions": conformance.odd_actions,
    "snapshot": conformance.snapshot,
    "rewards": conformance.rewards,
    "ends": conformance.ends,
    "info": conformance.info_keys,
    "success": solving.success,
    "expert": solving.expert,
    "random": solving.random_policy,
    "leak": solving.leak,
    "anchors": conformance.anchors,
    "lengths": sizes.lengths,
    "speed": sizes.speed,
}
_OF_TEXT_ENVS = ("snapshot", "leak")
_OF_LISTS = ("tasks", "splits", *_OF_TEXT_ENVS)
NAMES = (*CHECKS, "close", "processes")


Status = Literal["passed", "warning", "failed", "skipped"]


@dataclass(frozen=True)
class Finding:
    """Finding of one check.

    Attributes:
        check: its name.
        status: passed, failed or skipped; or warning, of what may be meant so.
        detail: one line: what was seen, or what is wrong and how to fix it, or why it was skipped.
        figures: what was measured, such as ``{"turns/s": 51000.0}``.
        same_as: the earlier check with the same reason for its failure, or for this one's being skipped; or empty.
    """

    check: str
    status: Status
    detail: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    same_as: str = ""

    @property
    def line(self) -> str:
        """Detail and figures."""
        figures = ", ".join(f"{name} {value:.4g}" for name, value in self.figures.items())
        return "; ".join(part for part in (self.detail, figures) if part)

    @property
    def row(self) -> str:
        """Status, name and line in columns."""
        return f"{self.status:8} {self.check:14} {self.line}".rstrip()


@dataclass(frozen=True)
class Report:
    """All findings about one environment."""

    env: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """No check failed."""
        return all(finding.status != "failed" for finding in self.findings)

    @property
    def failed(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.status == "failed")

    def __getitem__(self, check: str) -> Finding:
        for finding in self.findings:
            if finding.check == check:
                return finding
        raise KeyError(f"no check {check!r}: there are {', '.join(finding.check for finding in self.findings)}")

    def __str__(self) -> str:
        rows = [finding.row for finding in self.findings if not finding.same_as]
        return "\n".join([self.env, *rows, *(finding.row for finding in self.repeats)])

    @property
    def repeats(self) -> list[Finding]:
        """One finding for each reason that several checks share, naming those after the first."""
        again: dict[tuple[Status, str], list[str]] = {}
        for finding in self.findings:
            if finding.same_as:
                again.setdefault((finding.status, finding.same_as), []).append(finding.check)
        why = {"failed": "for the reason of", "skipped": "not tried, since the process ended in"}
        return [
            Finding(f"{len(names)} more", status, f"{why[status]} {first!r}: {', '.join(names)}")
            for (status, first), names in again.items()
        ]


def check(
    env: str | type[gymnasium.Env],
    kwargs: Mapping[str, Any] | None = None,
    samples: int = 20,
    seed: int = 0,
    only: Collection[str] | None = None,
    timeout: float = 60.0,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """Examine an environment in a process of its own; the report comes back however the environment behaves.

    Args:
        env: an id, ``FILE.py:Class``, or a class that a file defines.
        kwargs: passed to the constructor, plain JSON values.
        samples: episodes for each split and policy.
        seed: decides which tasks and actions are tried.
        only: names of checks to run; default all.
        timeout: seconds that the environment may take for one answer.
        on_finding: called with each finding as soon as it is known.

    Raises:
        UnknownEnv, UnknownArgument: there is no such environment, or its constructor does not take an argument.
        NamesakeError: a file next to it has the name of another module.
    """
    for chosen_name in only or ():
        if chosen_name not in NAMES:
            raise ValueError(unknown("check", chosen_name, NAMES))
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    if timeout <= 0:
        raise ValueError(f"timeout = {timeout} must be above 0")
    chosen = [each for each in NAMES if each in ("made", "close", "processes") or only is None or each in only]
    name, findings = env_name(env), list[Finding]()
    hello = hello_of(name, kwargs)

    def note(finding: Finding) -> None:
        findings.append(finding)
        on_finding(finding)

    work = OneShot(examined, (hello["name"], hello["kwargs"], samples, seed, timeout, chosen), hello, timeout)
    try:
        with work:
            for values in work:
                note(Finding(**values))
    except OneShotLost as lost:
        begun, *rest = [each for each in chosen if each not in {finding.check for finding in findings}]
        note(Finding(begun, "failed", _one_line(str(lost))))
        for other in rest:
            note(Finding(other, "skipped", f"not tried, since {begun!r} ended the process", same_as=begun))
        return Report(name, tuple(findings))
    if findings[0].status == "passed":
        note(_left_behind(work.left))
    return Report(name, tuple(findings))


def examined(
    name: str, kwargs: Mapping[str, Any], samples: int, seed: int, timeout: float, chosen: Collection[str]
) -> Iterator[dict[str, Any]]:
    """The findings as plain values, each as soon as it is there; in the process that runs the environment."""
    subject, reasons = Subject(name, kwargs, samples, seed, timeout), dict[str, str]()
    made = _run("made", subject, reasons)
    yield asdict(made)
    if made.status == "failed":
        return
    for other in CHECKS:
        if other != "made" and other in chosen:
            beat()
            yield asdict(_run(other, subject, reasons))
    try:
        subject.close()
        yield asdict(Finding("close", "passed"))
    except (Exception, SystemExit) as error:
        yield asdict(Finding("close", "failed", f"close() raised {type(error).__name__}: {error}"))


def _left_behind(left: Sequence[str]) -> Finding:
    if not left:
        return Finding("processes", "passed", "everything it started has ended")
    many = f"{len(left)} process{'es' * (len(left) > 1)}"
    detail = f"{many} still running after close(), such as {left[0]!r}: end in close() what begin() starts"
    return Finding("processes", "failed", _one_line(detail), {"left": float(len(left))})


def _run(name: str, subject: Subject, reasons: dict[str, str]) -> Finding:
    """One check.

    Args:
        reasons: why an episode could not be played -> the check that found it first; added to.
    """
    try:
        if subject.text_env is None and name in (_OF_LISTS if not subject.handle.lists_tasks else _OF_TEXT_ENVS):
            return Finding(name, "skipped", "not a TextEnv")
        detail, figures = CHECKS[name](subject)
        return Finding(name, "passed", detail, figures)
    except Skip as reason:
        return Finding(name, "skipped", str(reason))
    except Doubt as doubt:
        return Finding(name, "warning", _one_line(str(doubt)), doubt.figures)
    except Fault as fault:
        return _failed(name, str(fault), fault.__cause__ or fault, reasons, fault.figures)
    except (UnknownEnv, UnknownArgument, NamesakeError) as error:
        if name == "made":
            raise
        return _failed(name, str(error), error, reasons)
    except EnvError as error:
        return _failed(name, str(error), error, reasons)
    except (Exception, SystemExit) as error:
        message = what_and_where(error)
        return _failed(name, message[2:] if message.startswith(": ") else f"it raised{message}", error, reasons)


def _failed(
    name: str, text: str, error: BaseException, reasons: dict[str, str], figures: Mapping[str, float] | None = None
) -> Finding:
    """The finding; one whose reason an earlier check has found already says so."""
    same_as = next((check for reason, check in reasons.items() if reason in text), "")
    if not same_as:
        reasons[getattr(error, "told", "") or text.removeprefix("it raised")] = name
        if not isinstance(error, Fault):
            show_if_debugging(error)
    return Finding(name, "failed", _one_line(text), figures or {}, same_as)


def _one_line(text: str) -> str:
    """At most 500 characters without line breaks or other characters that a terminal would act on."""
    text = " ".join(text.split())
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= 500 else text[:499] + "…"
