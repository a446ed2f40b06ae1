"""Memory of curricula, bounded in size for any split: tasks by number, kinds of tasks by label."""

from collections.abc import Collection, Mapping, Sequence

Row = Sequence[float]
MOST_TASKS = 10_000
MOST_LABELS = 100
OTHERS = "(others)"


def recalled(memory: Sequence[Row] | None, size: int) -> dict[int, Row]:
    """Task -> its numbers, from rows of the task's number and what is remembered of it.

    >>> recalled([[7, 0.5], [12, 1.0]], size=10)
    {7: [0.5]}
    """
    return {int(row[0]): row[1:] for row in memory or () if row[0] < size}


def remembered(before: Mapping[int, Row], news: Mapping[int, Row]) -> list[list[float]]:
    """The rows to remember: those with news last, the longest unchanged first, which are forgotten beyond 10,000.

    >>> remembered({7: [0.5], 3: [0.25]}, {7: [1.0], 9: [0.0]})
    [[3, 0.25], [7, 1.0], [9, 0.0]]
    """
    rows = {**{number: row for number, row in before.items() if number not in news}, **news}
    return [[number, *row] for number, row in rows.items()][-MOST_TASKS:]


def arm(label: str, labels: Collection[str]) -> str:
    """The label by which a kind of tasks is remembered; kinds beyond the first 100 are one.

    >>> arm("easy", ["easy"]), arm("hard", [str(n) for n in range(100)])
    ('easy', '(others)')
    """
    return label if label in labels or len(labels) < MOST_LABELS else OTHERS
