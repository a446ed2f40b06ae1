"""``manyturn check``: does an environment keep the contract that training and evaluation rely on?"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from manyturn.envs.conformance.conformance import CHECKS, Fault, Skip
from manyturn.envs.conformance.probe import Subject
from manyturn.envs.contract.options import unknown


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        check: its name.
        status: passed, failed or skipped.
        detail: one line: what was seen, or what is wrong and what would mend it, or why it was skipped.
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
) -> Report:
    """Examine an environment; whatever it does, the report comes back.

    Args:
        name: id or ``FILE.py:Class``.
        kwargs: passed to the constructor.
        samples: episodes for each split and policy.
        seed: decides which tasks and actions are tried.
        only: names of checks to run; default all.
    """
    names = [*CHECKS, "close"]
    for wanted in only or ():
        if wanted not in names:
            raise ValueError(unknown("check", wanted, names))
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    subject = Subject(name, dict(kwargs or {}), samples, seed)
    made = _run("made", subject)
    if made.status == "failed":
        return Report(name, (made,))
    findings = [made]
    findings += [_run(other, subject) for other in CHECKS if other != "made" and (only is None or other in only)]
    try:
        subject.close()
        findings.append(Finding("close", "passed"))
    except (Exception, SystemExit) as error:
        findings.append(Finding("close", "failed", f"close() raised {type(error).__name__}: {error}"))
    return Report(name, tuple(findings))


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
