"""The kit's rows as a result file, and the table of docs/gpu.md made from it.

Rows of one table are of one device and one commit, and none is of toy size. A row that failed is shown as one.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import gpu_items

from benchmarks.kit.provenance import RESULTS, ROOT, refuse

OUT, PAGE = RESULTS / "gpu.json", ROOT / "docs" / "gpu.md"
BEGIN, END = "<!-- figures: python benchmarks/gpu_table.py -->", "<!-- end of figures -->"
UNMEASURED = (
    "**All of it is unmeasured.** No GPU was at hand so far: no figure of speed, memory or correctness on a GPU is "
    "known to us. The kit itself runs in the tests, at toy size on a CPU."
)
_SHARED = ("device", "driver", "cuda", "commit", "versions")


def collected(folder: Path) -> list[dict[str, Any]]:
    """The last row of each item in a folder's journals.

    Raises:
        SystemExit: there is none, or rows differ in where they are from.
    """
    rows = {(row["part"], row["item"]): row for path in sorted(folder.glob("*.jsonl")) for row in gpu_items.read(path)}
    if not rows:
        raise SystemExit(f"{folder} has no rows: run python benchmarks/gpu.py PART --journal {folder} on a GPU")
    for name in (*_SHARED, "toy"):
        if len(found := {json.dumps(row[name]) for row in rows.values()}) > 1:
            raise SystemExit(f"rows differ in {name}: {', '.join(sorted(found))}: keep those of one, measure the rest")
    return list(rows.values())


def result(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A result file: what all rows share once, then the rows."""
    rows = list(rows)
    shared = {name: rows[0][name] for name in _SHARED}
    own = ("part", "item", "date", "seconds", "figures")
    return {
        "command": "python benchmarks/gpu.py all",
        "date": max(row["date"] for row in rows),
        **shared,
        "rows": [{name: row[name] for name in own} for row in rows],
    }


def write(rows: list[dict[str, Any]], out: Path = OUT) -> None:
    """Write the result. Raises SystemExit for rows that are no result."""
    if rows[0]["toy"]:
        raise SystemExit("toy sizes are no result")
    refuse(out, rows[0]["commit"])
    out.write_text(json.dumps(result(rows), indent=1) + "\n")
    print(f"written to {out}")


def section(found: Mapping[str, Any] | None) -> str:
    """What the page has between its marks, of a result file's content; None: there is no such file."""
    if found is None:
        return UNMEASURED
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    lines = [
        f"Measured on one {found['device']} (driver {found['driver']}, CUDA {found['cuda']}) with {versions}, "
        f"at commit {found['commit']}, until {found['date']}.",
    ]
    for part in dict.fromkeys(row["part"] for row in found["rows"]):
        lines += ["", f"**{part}**", "", "| item | figures | within bounds |", "|---|---|---|"]
        lines += [_line(row) for row in found["rows"] if row["part"] == part]
    return "\n".join(lines)


def _line(row: Mapping[str, Any]) -> str:
    figures = dict(row["figures"])
    kept, bounds = figures.pop("ok", None), figures.pop("bounds", {})
    if "error" in figures:
        return f"| {row['item']} | failed: {figures['error'].replace('|', '/')} | |"
    told = []
    for name, value in figures.items():
        bound = f" (at most {bounds[name]:g})" if name in bounds else ""
        told.append(f"{name.replace('_', ' ')} {_shown(value)}{bound}")
    return f"| {row['item']} | {'; '.join(told)} | {'' if kept is None else 'yes' if kept else '**no**'} |"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def page(text: str, found: Mapping[str, Any] | None) -> str:
    """The page with its section as it has to be."""
    before, begins, rest = text.partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not (begins and ends):
        raise SystemExit(f"the page has lost its marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{section(found)}\n\n{END}{after}"


def known(out: Path = OUT) -> dict[str, Any] | None:
    """The result file's content, if there is one."""
    return json.loads(out.read_text()) if out.is_file() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--journal", type=Path, help="folder of journals to make the result from")
    options = parser.parse_args()
    if options.journal:
        write(collected(options.journal))
    PAGE.write_text(page(PAGE.read_text(), known()))
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
