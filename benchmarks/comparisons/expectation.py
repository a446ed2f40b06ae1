"""Expectations of a comparison, judged over its seeds."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kit.provenance import write
from manyturn.agents.evaluation.statistics import paired_difference, sign_flip_p

Line = Mapping[str, Any]


def verdict(expected: Mapping[str, Any], lines: Sequence[Line], key: str = "arm") -> dict[str, Any]:
    """The paired difference of an expectation over seeds; shown if its interval lies above 0.

    Args:
        expected: ``arm``, which should lie above ``against``, and the ``measure``.
        lines: the figures of each run.
        key: figure of a line that names its arm.
    """
    ours, base = (
        {str(line["seed"]): [line[expected["measure"]]] for line in lines if line[key] == expected[side]}
        for side in ("arm", "against")
    )
    difference, p = paired_difference(ours, base), sign_flip_p(ours, base)
    ends = {"difference": difference.mean, "ci_low": difference.low, "ci_high": difference.high, "p": p}
    plain = {name: None if math.isnan(value) else round(value, 4) for name, value in ends.items()}
    return {**expected, **plain, "verdict": "shown" if difference.low > 0 else "not shown"}


def write_judged(
    out: Path, about: Mapping[str, Any], plan: Mapping[str, Any], lines: Sequence[Line], summary: str, key: str = "arm"
) -> None:
    """Write the lines of a comparison with the verdicts on its plan, and beside them the table; print the verdicts.

    Args:
        about: origin of the result.
        summary: the table.
        key: figure of a line that names its arm.
    """
    verdicts = [verdict(expected, lines, key) for expected in plan["expected"]]
    write(out, about, {"plan": plan, "verdicts": verdicts, "runs": lines})
    out.with_suffix(".md").write_text(summary + "\n", encoding="utf-8")
    for judged in verdicts:
        print(json.dumps(judged))


def mean_and_range(lines: Sequence[Line], name: str) -> str:
    """The mean of a figure over lines that have it, with the least and the greatest.

    >>> mean_and_range([{"success": 0.25}, {"success": 0.75}, {"success": None}], "success")
    '0.500 (0.250 to 0.750)'
    """
    values = [line[name] for line in lines if line[name] is not None] or [math.nan]
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"
