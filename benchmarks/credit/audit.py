"""Methods of credit scored by the true effect of each turn, over environments and worlds of the comparison.

    python -m benchmarks.credit.audit [--only WORLD] [--workers 2]
    python -m benchmarks.credit.audit --page        # the tables of docs/credit-audit.md from the result

In each world an expert of whose moves a share is random plays 24 tasks x 8 episodes, so that some succeed and some do
not. Continuations are added until the reliability of the truth is 0.8, where the budget of steps allows it. Nothing is
trained. ``--only`` measures some worlds again and leaves the others, and each world has its commit. ``manyturn
credit-audit`` makes each row by itself.
"""

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.kit.table import table
from manyturn.audit.audit import credit_audit
from manyturn.audit.methods import every_method
from manyturn.audit.result import CreditAudit, plain

OUT = RESULTS / "credit_audit.json"
SIZES: dict[str, Any] = {"tasks": 24, "group": 8, "reliability": 0.8, "critic": 32}


class World(NamedTuple):
    """An environment, the share of random moves of the expert that plays it, and the budget of steps in millions."""

    env: str
    noise: float
    millions: float = 4.0
    args: Mapping[str, Any] = {}
    reward: str = "return"


def _own(name: str) -> str:
    return f"{Path(__file__).with_name('worlds.py')}:{name}"


WORLDS = {
    "maze": World("manyturn/Maze-v0", 0.5),
    "household tiny": World("manyturn/Household-v0", 0.7, 8, {"difficulty": "tiny"}),
    "household easy": World("manyturn/Household-v0", 0.75, 20, {"difficulty": "easy"}),
    "shop": World("manyturn/Shop-v0", 0.6),
    "desk": World("manyturn/Desk-v0", 0.15),
    "booking": World("manyturn/Talk-Booking-v0", 0.75, 1.5),
    "repeated": World(_own("Repeated"), 0.5),
    "tempting": World(_own("Tempting"), 0.3, reward="outcome"),
    "long": World(_own("Long"), 0.2),
    "decisive": World(_own("Decisive"), 0.35),
}


def audited(world: World, workers: int) -> CreditAudit:
    """The audit of one world."""
    options = {**SIZES, "steps": round(world.millions * 1e6), "reward": world.reward}
    policy = f"expert:{world.noise:g}"
    return credit_audit(
        world.env, policy, methods=every_method(), env_args=dict(world.args), workers=workers, **options
    )


def measured_worlds(out: Path) -> dict[str, Any]:
    """Worlds that a result file has already, each with the commit and the date that it was measured at."""
    if not out.is_file():
        return {}
    result = json.loads(out.read_text(encoding="utf-8"))
    made = {name: result[name] for name in ("commit", "date")}
    return {name: {**made, **world} for name, world in result["worlds"].items()}


def figures(audit: CreditAudit) -> dict[str, Any]:
    """As much of an audit's summary as the page needs."""
    summary = plain(audit.summary)
    for score in summary["methods"]:
        del score["calibration"]
    names = ("played", "truth", "methods", "skipped", "anchors", "remarks")
    return {"noise": float(audit.policy.partition(":")[2]), **{name: summary[name] for name in names}}


def page(result: Mapping[str, Any]) -> str:
    """The tables of the documentation."""
    worlds = result["worlds"]
    own = {
        name: {one["method"]: one for one in world["methods"] if one["anchor"] == "environment"}
        for name, world in worlds.items()
    }
    methods = list(dict.fromkeys(method for scores in own.values() for method in scores))
    parts = [_truths(worlds)]
    for title, figure in (("correlation", "correlation"), ("alignment", "alignment")):
        lines = []
        for method in methods:
            cells = [_ends(own[name].get(method, {}).get(figure)) for name in worlds]
            lines.append((f"`{method}`", *cells))
        parts.append(f"{title}:\n\n{table(('method', *worlds), lines)}")
    parts.append(f"anchors:\n\n{_anchors(worlds)}")
    return "\n\n".join(parts)


def _anchors(worlds: Mapping[str, Any]) -> str:
    """Of each kind of anchor the share of value that it forgets, and the share of turns with a companion."""
    kinds = [one["anchor"] for one in next(iter(worlds.values()))["anchors"]]
    lines = [
        (name, *(f"{one['forgotten']['mean']:.2f} ({one['shared']:.0%})" for one in world["anchors"]))
        for name, world in worlds.items()
    ]
    return table(("world", *kinds), lines)


def _truths(worlds: Mapping[str, Any]) -> str:
    head = (
        "world",
        "random moves",
        "success",
        "turns",
        "continuations",
        "reliability",
        "certain",
        "carrying 90 %",
        "s",
    )
    lines = []
    for name, world in worlds.items():
        played, truth = world["played"], world["truth"]
        line = [name, f"{world['noise']:.0%}", f"{played['success']:.2f}", f"{played['turns']:,}"]
        line += [f"{played['continuations']:,}", f"{truth['reliability']:.2f}", f"{truth['certain']:.0%}"]
        lines.append((*line, f"{truth['carrying']:.0%}", f"{world['seconds']:.0f}"))
    return table(head, lines)


def _ends(interval: Mapping[str, float] | None) -> str:
    if interval is None or interval["mean"] is None:
        return "-"
    return f"{interval['mean'] + 0.0:.2f} ±{(interval['high'] - interval['low']) / 2:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if args.page:
        print(page(json.loads(args.out.read_text(encoding="utf-8"))))
        return
    about = origin(args.out, ("numpy", "scipy"))
    worlds = measured_worlds(args.out)
    for name in args.only:
        began = time.monotonic()
        audit = audited(WORLDS[name], args.workers)
        made = {"commit": about["commit"], "date": about["date"], "seconds": round(time.monotonic() - began, 1)}
        worlds[name] = {**figures(audit), **made}
        best = audit.ranked[0]
        print(
            f"{name}: {audit.truth.reliability:.2f} by {audit.played.ended}; {best.method} {best.correlation.mean:.2f}"
        )
        ordered = {world: worlds[world] for world in WORLDS if world in worlds}
        write(args.out, about, {**SIZES, "worlds": ordered})


if __name__ == "__main__":
    main()
