"""The kit's rows as a result file, and the table of docs/gpu.md made from it.

A row counts if the code that it depends on is today's, whatever was committed since it was made. None is of toy size.
Each row says its device, versions and commit; a row that failed is shown as one.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.gpu_kit.measurement_log import Journal, Row
from benchmarks.gpu_kit.schedule import ITEMS
from benchmarks.kit.provenance import RESULTS, ROOT, refuse

OUT, PAGE = RESULTS / "gpu.json", ROOT / "docs" / "gpu.md"
BEGIN, END = "<!-- figures: python benchmarks/gpu.py table -->", "<!-- end of figures -->"
UNMEASURED = (
    "**All of it is unmeasured.** No GPU was at hand so far: no figure of speed, memory or correctness on a GPU is "
    "known to us. The kit itself runs in the tests, at toy size on a CPU."
)
_OWN = ("item", "case", "device", "driver", "cuda", "versions", "commit", "code", "date", "seconds")
_CONTENT = ("figures", "error", "skipped")


def result(journal: Journal) -> dict[str, Any]:
    """The content of a result file.

    Raises:
        SystemExit: no row is current, or one is of a toy or of no commit.
    """
    rows = [row for row in journal.current() if row["device"] != "unknown"]
    if not rows:
        raise SystemExit(f"{journal.folder} has no rows of today's code: run python benchmarks/gpu.py short on a GPU")
    if any(row["toy"] for row in rows):
        raise SystemExit("toy sizes are no result")
    for row in rows:
        refuse(OUT, row["commit"])
    order = [item.name for item in ITEMS]
    rows.sort(key=lambda row: order.index(row["item"]))  # and within an item as they were measured
    return {
        "command": "python benchmarks/gpu.py short",
        "commit": max(rows, key=lambda row: row["date"])["commit"],
        "date": max(row["date"] for row in rows),
        "rows": [{name: row[name] for name in (*_OWN, *_CONTENT) if name in row} for row in rows],
    }


def section(content: Mapping[str, Any] | None) -> str:
    """The text between the page's marks, from a result file's content; None: there is no such file."""
    if content is None:
        return UNMEASURED
    devices = dict[str, list[Row]]()
    for row in content["rows"]:
        versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
        place = f"{row['device']} (driver {row['driver']}, CUDA {row['cuda']}) with {versions}"
        devices.setdefault(place, []).append(row)
    lines = []
    for place, rows in devices.items():
        commits = ", ".join(sorted({row["commit"] for row in rows}))
        lines += ["", f"Measured on one {place}, until {max(row['date'] for row in rows)}, at {commits}."]
        for item in dict.fromkeys(row["item"] for row in rows):
            lines += ["", f"**{item}**", "", "| case | figures | within bounds |", "|---|---|---|"]
            lines += [_line(row) for row in rows if row["item"] == item]
    return "\n".join(lines[1:])


def _line(row: Row) -> str:
    if "figures" not in row:
        text = f"failed: {row['error']}" if "error" in row else f"skipped: {row['skipped']}"
        return f"| {row['case']} | {text.replace('|', '/')} | |"
    figures = dict(row["figures"])
    ok, bounds = figures.pop("ok", None), figures.pop("bounds", {})
    parts = []
    for name, value in figures.items():
        bound = f" (at most {bounds[name]:g})" if name in bounds else ""
        if not isinstance(value, list):  # kernels stand in the result file
            parts.append(f"{name.replace('_', ' ')} {_shown(value)}{bound}")
    text = "; ".join(parts) or "passed"
    return f"| {row['case']} | {text} | {'' if ok is None else 'yes' if ok else '**no**'} |"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).replace("|", "/")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def page(text: str, content: Mapping[str, Any] | None) -> str:
    """The page with its section as it has to be. Raises SystemExit for a page without the section's marks."""
    before, begins, rest = text.partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not (begins and ends):
        raise SystemExit(f"the page has lost its marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{section(content)}\n\n{END}{after}"


def committed(out: Path = OUT) -> dict[str, Any] | None:
    """The result file's content, if there is one."""
    return json.loads(out.read_text()) if out.is_file() else None


def main(folder: Path) -> int:
    """Write result and page from a folder of rows, or the page only where there is no such folder."""
    if folder.is_dir():
        OUT.write_text(json.dumps(result(Journal(folder)), indent=1) + "\n")
        print(f"written to {OUT}")
    PAGE.write_text(page(PAGE.read_text(), committed()))
    print(f"written to {PAGE}")
    return 0
