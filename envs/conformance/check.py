"""``manyturn check``: does an environment keep the contract that training and evaluation rely on?"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from manyturn.envs.conformance.conformance import CHECKS, Fault, Skip
from manyturn.envs.conformance.probe import Subject
from manyturn.envs.contract.options import unknown
from manyturn.envs.hosting.deadline import beat
from manyturn.envs.hosting.errand import Errand, ErrandLost
from manyturn.envs.hosting.hello import hello_of

NAMES = (*CHECKS, "close", "processes")


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        check: its name.
        status: passed, failed or skipped.
        detail: one line: what was seen, or what is wrong and how to fix it, or why it was skipped.
        figures: what was measured, such as ``{"turns/s": 51000.0}``.
    """

    check: str
    status: Literal["passed", "failed", "skipped"]
    detail: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """Detail and figures."""
        figures = ", ".join(f"{name} {value:.4g}" for name, value in self.figures.items())
        return "; ".join(part for part in (self.detail, figures) if part)


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
        lines = [f"{f.status:8} {f.check:18} {f.line}".rstrip() for f in self.findings]
        return "\n".join([self.env, *lines])


def check(
    name: str,
    kwargs: Mapping[str, Any] | None = None,
    samples: int = 20,
    seed: int = 0,
    only: Collection[str] | None = None,
    timeout: float = 60.0,
) -> Report:
    """Examine an environment in a process of its own; the report comes back in any case.

    Args:
        name: id or ``FILE.py:Class``.
        kwargs: passed to the constructor, plain JSON values.
        samples: episodes for each split and policy.
        seed: decides which tasks and actions are tried.
        only: names of checks to run; default all.
        timeout: seconds that the environment may take for one answer.
    """
    for wanted in only or ():
        if wanted not in NAMES:
            raise ValueError(unknown("check", wanted, NAMES))
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    if timeout <= 0:
        raise ValueError(f"timeout = {timeout} must be above 0")
    chosen = [known for known in NAMES if known in ("made", "close", "processes") or only is None or known in only]
    hello, found = hello_of(name, kwargs), list[Finding]()
    work = Errand(examined, (hello["name"], hello["kwargs"], samples, seed, timeout, chosen), hello, timeout)
    try:
        with work:
            found += (Finding(**values) for values in work)
    except ErrandLost as lost:
        begun, *rest = [known for known in chosen if known not in {finding.check for finding in found}]
        found.append(Finding(begun, "failed", _one_line(str(lost))))
        found += (Finding(other, "skipped", f"not tried, since {begun!r} ended the process") for other in rest)
        return Report(name, tuple(found))
    if found[0].status == "passed":
        found.append(_left_behind(work.left))
    return Report(name, tuple(found))


def examined(
    name: str, kwargs: Mapping[str, Any], samples: int, seed: int, timeout: float, chosen: Collection[str]
) -> Iterator[dict[str, Any]]:
    """The findings as plain values, each as soon as it is there; in the process that runs the environment."""
    subject = Subject(name, kwargs, samples, seed, timeout)
    made = _run("made", subject)
    yield asdict(made)
    if made.status == "failed":
        return
    for other in CHECKS:
        if other != "made" and other in chosen:
            beat()
            yield asdict(_run(other, subject))
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


def _run(name: str, subject: Subject) -> Finding:
    run, text_env_only = CHECKS[name]
    try:
        if text_env_only and subject.text_env is None:
            return Finding(name, "skipped", "not a TextEnv")
        detail, figures = run(subject)
        return Finding(name, "passed", detail, figures)
    except Skip as reason:
        return Finding(name, "skipped", str(reason))
    except Fault as fault:
        return Finding(name, "failed", _one_line(str(fault)), fault.figures)
    except (Exception, SystemExit) as error:
        return Finding(name, "failed", _one_line(f"{type(error).__name__}: {error}"))


def _one_line(text: str) -> str:
    """At most 500 characters without line breaks or other characters that a terminal would act on."""
    text = " ".join(text.split())
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= 500 else text[:499] + "…"
