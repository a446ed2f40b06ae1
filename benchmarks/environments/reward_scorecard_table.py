"""Table of rewards that are paid for nothing, from the results of ``reward_scorecard.py``; docs/scorecard.md has it.

python -m benchmarks.environments.reward_scorecard_table
"""

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.kit.provenance import RESULTS
from benchmarks.kit.table import table

OUT = RESULTS / "reward_scorecard.json"
AGAIN = (RESULTS / "reward_scorecard_sql.json",)  # of worlds that changed later; their rows take the place of others
KINDS = ("empty", "constant", "echo", "repetition", "memory", "injection")
HEAD = ("world", "tasks", "expert", "random", *KINDS, "same text as in training", "solved alike")
_MARKS = {"paid": "**", "paid in part": "*"}


def scorecard_table(result: Mapping[str, Any]) -> str:
    """The table in Markdown: success, or the mean return where success is not known."""
    return table(HEAD, [_line(name, world) for name, world in result["worlds"].items()])


def newest() -> dict[str, Any]:
    """The newest measurement of each world."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in (OUT, *AGAIN)]
    return {"worlds": {name: world for result in results for name, world in result["worlds"].items()}}


def _line(name: str, world: Mapping[str, Any]) -> list[str]:
    overlap = world["overlap"]
    alike = overlap and overlap["solved_alike"]
    return [
        name,
        str(world["tasks"]),
        *(_rate(world.get(policy)) for policy in ("expert", "random")),
        *(_rate(world["kinds"][kind]) for kind in KINDS),
        f"{overlap['same']} of {overlap['tasks']}" if overlap else "-",
        f"{alike[0]} of {alike[1]}" if alike else "-",
    ]


def _rate(figures: Mapping[str, Any] | None) -> str:
    if figures is None:
        return "-"
    mean = (figures["success"] or figures["return"])[0]
    mark = _MARKS.get(figures["verdict"], "")
    return f"{mark}{mean:.2f}{mark}"


if __name__ == "__main__":
    print(scorecard_table(newest()))
