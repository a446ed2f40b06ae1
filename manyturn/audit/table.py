"""An audit on a terminal: the truth, methods by correlation, methods by anchor, and anchors."""

import math

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from manyturn.audit.result import CreditAudit
from manyturn.trainers.credit.audit.correlation import Estimate
from manyturn.trainers.credit.audit.scores import MethodScore
from manyturn.trainers.credit.audit.turn_sample import OWN

_WIDEST = 400


def print_audit(audit: CreditAudit, console: Console) -> None:
    """Everything that an audit says, in three tables."""
    for line in _facts(audit):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for table in (_methods(audit), _by_anchor(audit), _anchors(audit)):
        if table.row_count:
            # A name that is cut cannot be copied: a narrow terminal gets long lines.
            wide = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
            narrow, console.width = console.width, max(wide, console.width)
            console.print(table)
            console.width = narrow
    for remark in audit.remarks:
        console.print(Text(remark), soft_wrap=True)
    for method, other in audit.without_effect.items():
        console.print(Text(f"no effect here: {method}: the same credit as {other}"), soft_wrap=True, style="dim")
    for method, reason in audit.skipped.items():
        console.print(Text(f"not scored: {method}: {reason}"), soft_wrap=True, style="dim")


def _facts(audit: CreditAudit) -> tuple[str, ...]:
    truth, played = audit.truth, audit.played
    episodes = sum(len(task.episodes) for task in played.tasks)
    success = "" if math.isnan(audit.success) else f", success {audit.success:.0%}"
    return (
        f"{audit.env}, {audit.policy}: {episodes} episodes of {len(played.tasks)} tasks, {len(audit.sample.task_K)} "
        f"turns{success}; true effects from {played.continuations:,} continuations, {played.steps:,} steps",
        f"reliability of the truth {truth.reliability:.2f}, within episodes {truth.reliability_within:.2f}, of the "
        f"gradient {number(truth.gradient)}; {truth.certain:.0%} of turns have a certain effect, "
        f"{number(100 * truth.carrying, 0)}% account for nine tenths of all effect",
        *_branches(audit),
    )


def _branches(audit: CreditAudit) -> list[str]:
    """The cost of methods that compare branches."""
    if math.isnan(audit.branches):
        return []
    return [
        f"methods with branches get {audit.config.siblings} for each turn: {audit.branches:.0f} for each episode",
    ]


def _methods(audit: CreditAudit) -> Table:
    first = audit.scores[0].method if audit.scores else ""
    table = _table("credit against the true effect of turns", "method")
    for name in ("correlation", "in episodes", f"over {first}", "sign", "alignment"):
        table.add_column(name, justify="right", no_wrap=True)
    for score in (*audit.ranked, *audit.oracles):
        table.add_row(
            Text(label(score)),
            short(score.correlation),
            short(score.within),
            "" if score.over_base is None else short(score.over_base, sign="+"),
            number(score.sign.mean),
            "" if score.alignment is None else short(Estimate(*score.alignment[:3])),
        )
    if (ceiling := audit.truth.alignment) is not None:
        table.add_section()
        table.add_row("the true effect itself", "1", "1", "", "1", short(Estimate(*ceiling[:3])))
    return table


def _by_anchor(audit: CreditAudit) -> Table:
    """Methods whose credit depends on the anchor, with the correlation by each."""
    kinds = list(audit.sample.anchors)
    table = _table("correlation by anchor", "method")
    for kind in kinds:
        table.add_column(kind, justify="right", no_wrap=True)
    for own in (*audit.ranked, *audit.oracles):
        others = {score.anchor: score for score in audit.scores if score.method == own.method}
        if len(others) > 1:
            table.add_row(Text(label(own)), *(short(others.get(kind, own).correlation) for kind in kinds))
    return table


def _anchors(audit: CreditAudit) -> Table:
    table = _table("anchors", "anchor")
    table.add_column("turns with a companion", justify="right")
    table.add_column("value that it forgets", justify="right")
    for score in audit.anchors:
        name = f"{score.anchor} (its own)" if score.anchor == OWN else score.anchor
        table.add_row(name, f"{score.shared:.0%}", interval(score.forgotten))
    return table


def label(score: MethodScore) -> str:
    """The method's name; marked where true values are given to it."""
    return f"{score.method} (given the truth)" if score.oracle else score.method


def interval(ends: Estimate, sign: str = "") -> str:
    """A figure and its interval."""
    if math.isnan(ends.mean):
        return "-"
    around = "" if math.isnan(ends.low) else f" [{ends.low:{sign}.2f}, {ends.high:{sign}.2f}]"
    return f"{ends.mean:{sign}.2f}{around}"


def short(ends: Estimate, sign: str = "") -> str:
    """A figure and half the width of its interval."""
    if math.isnan(ends.mean):
        return "-"
    around = "" if math.isnan(ends.low) else f" ±{(ends.high - ends.low) / 2:.2f}"
    return f"{ends.mean + 0.0:{sign}z.2f}{around}"


def number(value: float, digits: int = 2) -> str:
    """A figure, or a hyphen where there is none."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _table(title: str, first: str) -> Table:
    table = Table(title=title, box=box.SIMPLE, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    return table
