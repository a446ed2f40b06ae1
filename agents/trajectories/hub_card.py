"""Header of a card for the Hugging Face Hub, whose search, filters and viewer read it.

The tag ``rl-environment`` puts a data set under the Hub's filter for environments of reinforcement learning. The
licence is "unknown", which the Hub accepts: the terms of an environment's texts are up to its author.
"""

import json
from collections.abc import Mapping, Sequence

ENVIRONMENT = "rl-environment"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def header(title: str, tags: Sequence[str], rows: int, files: Mapping[str, str]) -> str:
    """YAML between the two rules of a card.

    Args:
        title: shown as the data set's name; any text.
        rows: number of rows, which decides the size category.
        files: split -> path of its file in the folder.

    >>> print(header("Tasks of a: b", ["manyturn"], 1200, {"test": "data/test.jsonl"}))
    ---
    pretty_name: "Tasks of a: b"
    license: unknown
    task_categories: [reinforcement-learning]
    tags: [manyturn]
    size_categories: ["1K<n<10K"]
    configs:
    - config_name: default
      data_files:
      - split: test
        path: "data/test.jsonl"
    ---
    """
    lines = [
        "---",
        f"pretty_name: {json.dumps(title)}",
        "license: unknown",
        "task_categories: [reinforcement-learning]",
        f"tags: [{', '.join(tags)}]",
        f"size_categories: [{json.dumps(size_category(rows))}]",
        "configs:",
        "- config_name: default",
        "  data_files:",
    ]
    for split, path in files.items():
        lines += [f"  - split: {split}", f"    path: {json.dumps(path)}"]
    return "\n".join([*lines, "---"])


def size_category(rows: int) -> str:
    """The Hub's name for a number of rows.

    >>> [size_category(rows) for rows in (999, 1000, 50_000, 2_000_000)]
    ['n<1K', '1K<n<10K', '10K<n<100K', 'n>1M']
    """
    return next((name for below, name in _SIZES if rows < below), "n>1M")
