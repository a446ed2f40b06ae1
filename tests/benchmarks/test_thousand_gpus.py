"""The page for a thousand GPUs says something else than its result, or a measured figure is nowhere measured."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import thousand_gpus  # noqa: E402


def test_the_page_is_made_from_the_result():
    found = json.loads(thousand_gpus.OUT.read_text(encoding="utf-8"))
    assert thousand_gpus.PAGE.read_text(encoding="utf-8") == thousand_gpus.page(found)


def test_what_is_called_measured_is_in_the_file_that_it_names_and_no_longer_order_is_slower():
    found = json.loads(thousand_gpus.OUT.read_text(encoding="utf-8"))
    assert found["measured"] and all(
        (thousand_gpus.RESULTS / file).is_file() for *_, file in found["measured"].values()
    )
    for episodes in thousand_gpus.EPISODES:
        hours = [row["per_hour"] for row in found["steps"] if row["episodes"] == episodes]
        assert hours == sorted(hours)
        assert all(row["of_possible"] <= 1 for row in found["steps"])
