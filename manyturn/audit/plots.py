"""Pictures of an audit as SVG: methods by correlation and alignment, and what a unit of credit is worth."""

import math
from collections.abc import Callable, Sequence
from html import escape

from manyturn.audit.result import CreditAudit
from manyturn.audit.table import label
from manyturn.trainers.credit.audit.correlation import Estimate
from manyturn.trainers.credit.audit.scores import MethodScore

_INK, _LIGHT, _MARK = "#1f2933", "#d3d9e0", "#2f6fb3"
_ROW, _LABEL, _PLOT = 22, 310, 420


def plots(audit: CreditAudit) -> dict[str, str]:
    """Name -> picture."""
    ranked = [*audit.ranked, *audit.oracles]
    pictures = {"correlation": dots(ranked, "correlation with the true effect", lambda score: score.correlation)}
    pictures["within"] = dots(ranked, "correlation within episodes", lambda score: score.within)
    if ranked and ranked[0].alignment is not None:
        pictures["alignment"] = dots(
            ranked,
            "cosine with the exact policy gradient",
            lambda score: Estimate(*(score.alignment or (math.nan,) * 3)[:3]),
            None if audit.truth.alignment is None else audit.truth.alignment.mean,
        )
    pictures["calibration"] = calibration(audit.ranked[:6])
    return pictures


def dots(
    scores: Sequence[MethodScore], title: str, figure: Callable[[MethodScore], Estimate], ceiling: float | None = None
) -> str:
    """A row for each method: its figure as a dot on its interval.

    Args:
        ceiling: what can be reached at most; a dashed line.
    """
    rows = [(label(score), figure(score)) for score in scores]
    ends = [end for _, one in rows for end in one if not math.isnan(end)] + ([] if ceiling is None else [ceiling])
    low, high = min([0.0, *ends]), max([0.1, *ends])
    step = 0.1 if high - low <= 1 else 0.25
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    height = _ROW * len(rows) + 60

    def at(value: float) -> float:
        return _LABEL + (value - low) / (high - low) * _PLOT

    parts = [f'<text x="{_LABEL}" y="16" font-weight="600">{escape(title)}</text>']
    for number in range(round((high - low) / step) + 1):
        tick = low + number * step
        parts.append(_line(at(tick), 28, at(tick), height - 26, _INK if abs(tick) < 1e-9 else _LIGHT))
        parts.append(f'<text x="{at(tick):.1f}" y="{height - 8}" text-anchor="middle">{tick:.2g}</text>')
    if ceiling is not None:
        parts.append(_line(at(ceiling), 28, at(ceiling), height - 26, _INK, "4 3"))
    for row, (name, one) in enumerate(rows):
        y = 40 + row * _ROW
        parts.append(f'<text x="{_LABEL - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>')
        if not math.isnan(one.low):
            parts.append(_line(at(one.low), y, at(one.high), y, _MARK))
        if not math.isnan(one.mean):
            parts.append(f'<circle cx="{at(one.mean):.1f}" cy="{y}" r="4" fill="{_MARK}"/>')
    return _svg(_LABEL + _PLOT + 30, height, parts)


def calibration(scores: Sequence[MethodScore]) -> str:
    """For each method the mean true effect of ten bins of its credit; a straight line is a fixed exchange rate."""
    side, gap = 150, 40
    parts = list[str]()
    for place, score in enumerate(scores):
        left, top = gap + (place % 3) * (side + gap), 30 + (place // 3) * (side + gap + 10)
        xs, ys = [one[0] for one in score.calibration], [one[1] for one in score.calibration]
        across, up = max(map(abs, xs), default=1.0) or 1.0, max(map(abs, ys), default=1.0) or 1.0
        spots = [
            (left + (x / across + 1) * side / 2, top + (1 - y / up) * side / 2) for x, y in zip(xs, ys, strict=True)
        ]
        parts.append(f'<text x="{left}" y="{top - 8}" font-weight="600">{escape(score.method[:26])}</text>')
        parts.append(_line(left, top + side / 2, left + side, top + side / 2, _LIGHT))
        parts.append(_line(left + side / 2, top, left + side / 2, top + side, _LIGHT))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{_MARK}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{_MARK}"/>' for x, y in spots]
        parts.append(f'<text x="{left + side}" y="{top + side + 14}" text-anchor="end">credit ±{across:.2g}</text>')
        parts.append(f'<text x="{left}" y="{top + side + 14}">effect ±{up:.2g}</text>')
    rows = -(-len(scores) // 3)
    return _svg(gap + 3 * (side + gap), 30 + rows * (side + gap + 10), parts)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="1.5"{dashed}/>'


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{_INK}">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )
