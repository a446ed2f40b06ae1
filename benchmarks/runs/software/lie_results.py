"""Words and files of the results of lies by machine, for the measurement and for its tables."""

import json
from pathlib import Path

from benchmarks.kit.provenance import RESULTS

OUT = RESULTS / "software_lies.json"
OUT_AT_ONCE = RESULTS / "software_lies_at_once.json"
REACH = RESULTS / "software_reach.json"
SPLITS = ("validation", "test", "test_functions", "train", "smoke")
OUTCOMES = PAID, VISIBLE, REFUSED = "paid", "passes the visible tests only", "fails the visible tests"


def shares_of(file: Path) -> dict[str, float]:
    """Task -> measured share, from the result of ``memorization``."""
    return {
        name: share
        for row in json.loads(file.read_text()).values()
        if "shares" in row
        for name, share in row["shares"].items()
    }
