"""``manyturn check``: does an environment keep the contract that training and evaluation rely on?"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import gymnasium

from manyturn.envs.conformance import length_speed_checks, runtime_checks, solvability_checks, task_checks
from manyturn.envs.conformance.gymnasium_check import gymnasium_checker
from manyturn.envs.conformance.imitability_check import imitation
from manyturn.envs.conformance.probe_episodes import Subject
from manyturn.envs.conformance.verdicts import Doubt, Fault, Implied, Result, Skip
from manyturn.envs.contract.env.error_location import show_if_debugging
from manyturn.envs.contract.env.turn import ContractError
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.options.plugins import extra_with
from manyturn.envs.contract.registration.env_name import env_name
from manyturn.envs.contract.registration.env_registry import UnknownArgument, UnknownEnv
from manyturn.envs.contract.registration.sibling_modules import NamesakeError
from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.env_handle import what_and_where
from manyturn.envs.hosting.handle.env_spec_message import hello_of
from manyturn.envs.hosting.local.subprocess_call import OneShot, OneShotLost

CHECKS: Mapping[str, Callable[[Subject], Result]] = {
    "made": runtime_checks.made,
    "tasks": task_checks.tasks,
    "splits": task_checks.splits,
    "turns": runtime_checks.turns,
    "odd actions": runtime_checks.odd_actions,
    "spaces": runtime_checks.spaces,
    "determinism": runtime_checks.determinism,
    "anchors": runtime_checks.anchors,
    "other process": runtime_checks.other_process,
    "snapshot": runtime_checks.snapshot,
    "rewards": runtime_checks.rewards,
    "ends": runtime_checks.ends,
    "info": runtime_checks.info_keys,
    "gymnasium": gymnasium_checker,
    "success": solvability_checks.success,
    "expert": solvability_checks.expert,
    "imitation": imitation,
    "random": solvability_checks.random_policy,
    "leak": solvability_checks.leak,
    "lengths": length_speed_checks.lengths,
    "speed": length_speed_checks.speed,
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
        same_as: the check that has failed, so that this one could not be judged and is skipped; or empty.
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
        return not self.failed

    @property
    def is_made(self) -> bool:
        """The environment could be made: it was there to be checked."""
        return self["made"].status != "failed"

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
        """One finding for each failure that leaves other checks without a verdict, naming these."""
        others: dict[str, list[str]] = {}
        for finding in self.findings:
            if finding.same_as:
                others.setdefault(finding.same_as, []).append(finding.check)
        return [
            Finding(f"{len(names)} more", "skipped", f"{_implied(first)}: {', '.join(names)}")
            for first, names in others.items()
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
            note(Finding(other, "skipped", _implied(begun), same_as=begun))
        return Report(name, tuple(findings))
    if findings[0].status == "passed":
        note(_left_behind(work.left, is_closed=findings[-1].status != "failed"))
    return Report(name, tuple(findings))


def examined(
    name: str, kwargs: Mapping[str, Any], samples: int, seed: int, timeout: float, chosen: Collection[str]
) -> Iterator[dict[str, Any]]:
    """The findings as plain values, each as soon as it is there; in the process that runs the environment."""
    subject = Subject(name, kwargs, samples, seed, timeout)
    made = _run("made", subject, chosen)
    yield asdict(made)
    if made.status == "failed":
        return
    for other in CHECKS:
        if other != "made" and other in chosen:
            beat()
            yield asdict(_run(other, subject, chosen))
    yield asdict(_closed(subject))


def _closed(subject: Subject) -> Finding:
    """The finding about ``close()``, which may be called a second time."""
    for time in ("", " the second time"):
        try:
            subject.close()
        except (Exception, SystemExit) as error:
            return Finding("close", "failed", _one_line(f"close() raised{time}{what_and_where(error)}"))
    if files := [text for text in subject.unclosed if not text.startswith("subprocess")]:  # 'processes' has these
        return Finding("close", "warning", _one_line(f"{files[0]}: close it where it was opened, by with"))
    return Finding("close", "passed")


def _left_behind(left: Sequence[str], *, is_closed: bool) -> Finding:
    if left and not is_closed:
        return Finding("processes", "skipped", _implied("close"), same_as="close")
    if not left:
        return Finding("processes", "passed", "everything it started has ended")
    many = f"{len(left)} process{'es' * (len(left) > 1)}"
    detail = f"{many} still running after close(), such as {left[0]!r}: end in close() what begin() starts"
    return Finding("processes", "failed", _one_line(detail), {"left": float(len(left))})


def _run(name: str, subject: Subject, chosen: Collection[str]) -> Finding:
    """One check.

    Args:
        chosen: the checks that run, one of which may own what this one meets.
    """
    try:
        if subject.text_env is None and name in (_OF_LISTS if not subject.handle.lists_tasks else _OF_TEXT_ENVS):
            return Finding(name, "skipped", "not a TextEnv")
        detail, figures = CHECKS[name](subject)
        return Finding(name, "passed", detail, figures)
    except Skip as reason:
        return Finding(name, "skipped", str(reason))
    except Implied as other:
        return Finding(name, "skipped", _implied(other.check), same_as=other.check)
    except Doubt as doubt:
        return Finding(name, "warning", _one_line(str(doubt)), doubt.figures)
    except (Exception, SystemExit) as error:
        if name == "made" and isinstance(error, UnknownEnv | UnknownArgument | NamesakeError):
            raise
        return _failed(name, error, subject, chosen)


def _failed(name: str, error: BaseException, subject: Subject, chosen: Collection[str]) -> Finding:
    """The finding about an error: a failure of the check that owns its cause, which no other check has failed then."""
    owner = subject.causes.owner(error)
    if owner not in (None, name) and owner in chosen:
        return Finding(name, "skipped", _implied(owner), same_as=owner)
    subject.causes.note(error, name)
    subject.failed.add(name)
    if not isinstance(error, Fault):
        show_if_debugging(error)
    elif error.__cause__ is not None:
        show_if_debugging(error.__cause__)
    return Finding(name, "failed", _one_line(_text(error)), error.figures if isinstance(error, Fault) else {})


def _text(error: BaseException) -> str:
    """An error as a finding says it: our own sentence as it is, any other with its place."""
    if type(error).__module__.startswith("manyturn.") and not isinstance(error, ContractError):
        return str(error)
    message = what_and_where(error)
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        extra = extra_with(error.name)
        message += f": pip install 'manyturn[{extra}]'" if extra else ": install the package that has it"
    return message[2:] if message.startswith(": ") else f"it raised{message}"


def _implied(check: str) -> str:
    return f"not judged, since {check!r} has failed"


def _one_line(text: str) -> str:
    """At most 500 characters without line breaks or other characters that a terminal would act on."""
    text = " ".join(text.split())
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= 500 else text[:499] + "…"
