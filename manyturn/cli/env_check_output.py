"""Lines of ``manyturn check`` on the terminal: one per finding, printed as it comes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from manyturn.envs.conformance.check_runner import Finding, Report, check
from manyturn.terminal.escape import visible

_COLOURS = {"passed": "green", "warning": "yellow", "failed": "red", "skipped": "dim"}


def print_check(env: str, env_args: Mapping[str, Any], samples: int, timeout: float) -> Report:
    """Check an environment, print what is found, and return it.

    Args:
        env, env_args, samples, timeout: as for ``manyturn.envs.conformance.check_runner.check``.
    """
    console = Console(highlight=False)
    console.print(Text(visible(f"manyturn check {env}"), "bold"), soft_wrap=True)

    def say(finding: Finding) -> None:
        if not finding.same_as:
            _print(console, finding)

    report = check(env, env_args, samples, timeout=timeout, on_finding=say)
    for finding in report.repeats:
        _print(console, finding)
    counts = Counter(finding.status for finding in report.findings)
    console.print(", ".join(f"{counts[status]} {status}" for status in _COLOURS if counts[status]))
    return report


def _print(console: Console, finding: Finding) -> None:
    text = Text(visible(finding.row))
    text.stylize(_COLOURS[finding.status], 0, len(finding.status))
    console.print(text, soft_wrap=True)
