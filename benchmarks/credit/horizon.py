"""Credit over horizons: how far each method's credit follows true effects as episodes grow and two turns decide.

    python -m benchmarks.credit.horizon
    python -m benchmarks.credit.horizon --table

Episodes of 4, 8, 16, 32 and 64 turns pay one bit at the end. An expert with a share of random moves plays 24 tasks x 8
episodes of each length. It succeeds as often in all of them, so that lengths differ in nothing else. Nothing is
trained.
"""

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.kit.table import table
from manyturn.audit.audit import credit_audit
from manyturn.audit.result import plain

OUT = RESULTS / "credit_horizon.json"
ENV = f"{Path(__file__).with_name('worlds') / 'horizon.py'}:Horizon"
TURNS = (4, 8, 16, 32, 64)
NOISE = 0.35
METHODS = ("grpo", "gigpo", "hgpo", "graphgpo", "g2po", "rtmc", "forks", "turn_gae", "dual_gae", "situation_gae")
EXPECTED = """Written before the run, from lengths 4 and 8 only. Credit that gives all turns of an episode one number
falls as one over the square root of the turns, to about 0.11 at 64. Forks stay above 0.7 at every length. A perfect
critic falls more slowly than grpo, since its noise is that of the turns after the decision. Graph credit stays below
grpo with the environment's anchor, which forgets an early mistake, and is above it with the history as anchor only
where episodes of a group share a history, so at the first turns."""
SIZES: dict[str, Any] = {"tasks": 24, "group": 8, "reliability": 0.8, "critic": 32, "steps": 12_000_000}


def measured(turns: int, workers: int) -> dict[str, Any]:
    """Correlation, and correlation within episodes, of each method at one length."""
    began = time.monotonic()
    audit = credit_audit(
        ENV,
        f"expert:{NOISE:g}",
        methods=METHODS,
        anchors=("environment", "history"),
        env_args={"places": turns},
        workers=workers,
        **SIZES,
    )
    summary = plain(audit.summary)
    scores = [{name: score[name] for name in ("method", "anchor", "correlation")} for score in summary["methods"]]
    about = {"turns": turns, "seconds": round(time.monotonic() - began, 1)}
    return {**about, "played": summary["played"], "truth": summary["truth"], "methods": scores}


def page(result: Mapping[str, Any]) -> str:
    """Markdown table: a row for each method, a column for each length."""
    rows = result["lengths"]
    own = [{s["method"]: s["correlation"] for s in row["methods"] if s["anchor"] == "environment"} for row in rows]
    lines = [(f"`{method}`", *(_ends(s[method]) for s in own)) for method in METHODS]
    lines.append(("reliability of the truth", *(f"{row['truth']['reliability']:.2f}" for row in rows)))
    return table(("method", *(f"{row['turns']} turns" for row in rows)), lines)


def _ends(interval: Mapping[str, float]) -> str:
    return f"{interval['mean']:.2f} [{interval['low']:.2f}, {interval['high']:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if args.table:
        print(page(json.loads(args.out.read_text(encoding="utf-8"))))
        return
    about = origin(args.out, ("numpy", "scipy"))
    lengths = []
    for turns in TURNS:
        lengths.append(measured(turns, args.workers))
        print(f"{turns} turns: {lengths[-1]['truth']['reliability']:.2f} in {lengths[-1]['seconds']:.0f} s", flush=True)
    write(args.out, about, {**SIZES, "noise": NOISE, "expected": EXPECTED, "lengths": lengths})


if __name__ == "__main__":
    main()
