"""Head of a report, before any episode: facts, warnings, figures with intervals, curves, tables."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["run", "evaluation", "comparison"]
Plain = dict[str, Any]


class ReportError(ValueError):
    """There is nothing to report on, or files do not fit each other; the text says how to fix it."""


@dataclass
class Head:
    """The report without its episodes, as plain values for JSON.

    Attributes:
        facts: (name, text) pairs.
        figures: what ``figure`` makes.
        curves: title, axes and series of [x, y, low, high]; y is None at a gap, low and high without a band.
        tables: what ``table`` makes.
        sources: names of the policies that were compared; one name if there is no comparison.
        done: whether nothing will be added to the files any more.
    """

    kind: Kind
    title: str
    sources: list[str]
    done: bool = True
    facts: list[list[str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    figures: list[Plain] = field(default_factory=list)
    curves: list[Plain] = field(default_factory=list)
    tables: list[Plain] = field(default_factory=list)


def number(value: Any, digits: int = 5) -> float | int | None:
    """A number with so many significant digits, integers in full; None for what is no finite number."""
    if isinstance(value, int):
        return int(value)
    return float(f"{value:.{digits}g}") if isinstance(value, float) and math.isfinite(value) else None


def figure(
    name: str, value: Any, low: Any = None, high: Any = None, n: int | None = None, percent: bool = True
) -> Plain:
    """A number at the top, with the ends of its interval and the number of tasks that it rests on."""
    return {"name": name, "value": number(value), "low": number(low), "high": number(high), "n": n, "percent": percent}


def table(title: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Plain:
    """A table.

    Args:
        columns: name -> text, number, percent, interval or seconds.
        rows: cells; numbers are rounded, a cell of an interval is [mean, low, high] in fractions of 1.
    """
    shown = [[_cell(cell, kind) for cell, kind in zip(row, columns.values(), strict=True)] for row in rows]
    return {"title": title, "columns": [{"name": n, "kind": kind} for n, kind in columns.items()], "rows": shown}


def _cell(cell: Any, kind: str) -> Any:
    if kind == "text":
        return str(cell)
    return [number(value) for value in cell] if kind == "interval" else number(cell)


def ends(interval: Mapping[str, Any], mean: str = "mean") -> tuple[Any, Any, Any]:
    """Mean, low and high of an interval as summaries hold it."""
    return interval[mean], interval["ci_low"], interval["ci_high"]


def read_json(path: Path) -> Plain:
    """A file that holds a JSON object; raises ReportError if it holds something else."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read ({error}): run the command that wrote it again") from None
    if not isinstance(plain, dict):
        raise ReportError(f"{path} holds no JSON object: run the command that wrote it again")
    return plain


def plain_text(value: Any) -> str:
    """A plain value as short text: no quotes and braces where they are not needed.

    >>> plain_text({"name": "clip", "low": 0.2, "kl": {"coef": 0.01}})
    'clip (low 0.2, kl (coef 0.01))'
    """
    if isinstance(value, dict):
        name = next((str(value[key]) for key in ("name", "kind", "id") if key in value), "")
        others = ", ".join(
            f"{k} {plain_text(v)}" for k, v in value.items() if k not in ("name", "kind", "id") and v != {}
        )
        return f"{name} ({others})".strip() if others else name
    if isinstance(value, list):
        return ", ".join(map(plain_text, value)) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
