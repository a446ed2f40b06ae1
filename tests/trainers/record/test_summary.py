"""A difference on a few held-out tasks that a run's summary takes for certain, or for more than there can be."""

import pytest

from manyturn.trainers.record.summary import summarise_run

pytestmark = pytest.mark.versions


def difference(before: list[float], after: list[float]) -> dict[str, float]:
    figures = {
        name: {"success": sum(values) / len(values), "by_task": {str(i): [value] for i, value in enumerate(values)}}
        for name, values in (("before", before), ("after", after))
    }
    return summarise_run({}, figures, {})["difference"]


@pytest.mark.parametrize(
    ("before", "after"),
    [([0.0] * 8, [0.0] * 8), ([0.0] * 8, [1.0] * 8), ([0.0] * 8, [0.0, 0.0] + [1.0] * 6)],
    ids=["none and none", "none and all", "none and most"],
)
def test_a_few_tasks_prove_no_difference_to_the_last_digit_and_none_above_one(before, after):
    found = difference(before, after)
    assert found["success"] == (sum(after) - sum(before)) / 8
    assert -1 <= found["ci_low"] < found["ci_high"] <= 1
