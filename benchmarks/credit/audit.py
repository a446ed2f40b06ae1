"""Methods of credit scored by the true effect of each turn, over environments and worlds of the comparison.

    python -m benchmarks.credit.audit [--only WORLD] [--workers 2]
    python -m benchmarks.credit.audit --page        # the tables of docs/credit-audit-results.md from the result
    python -m benchmarks.credit.audit --draw        # its pictures

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
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.kit.provenance import RESULTS, origin, refuse, write
from benchmarks.kit.table import table
from manyturn.audit.audit import credit_audit
from manyturn.audit.methods import every_method, method_of, methods_with_options
from manyturn.audit.result import CreditAudit, plain
from manyturn.trainers.credit.audit.scores import score_methods
from manyturn.trainers.credit.audit.turn_sample import AuditSample
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit_audit.scoring_sample import audited_tasks

OUT = RESULTS / "credit_audit.json"
PICTURES = {"correlation": "credit_audit.png", "alignment": "credit_audit_alignment.png"}
SIZES: dict[str, Any] = {"tasks": 24, "group": 8, "reliability": 0.8, "critic": 32, "siblings": 4}
SIBLINGS = (1, 2, 4, 8)  # branches of each turn that forks are scored with
# Methods beside those that are registered: other options, stages that need some, and our combination with all it has.
FURTHER = (
    "situation_gae:critic=true",
    "situation_gae:gamma=1.0",
    "situation_gae:gamma=1.0,critic=true",
    "situation_gae:gamma=1.0+branches",
    "situation_gae:gamma=1.0,critic=true+branches",
    "psr_nsr:learns=negative",
    "psr_nsr:learns=positive",
    "spa:completeness=none,wage=by_turn+gigpo",
    "gra+gigpo",
)
OF_TEMPTING = ("rubric:part=fit+gigpo", "clip_delta:part=polish+gigpo")  # only there a turn pays


class World(NamedTuple):
    """An environment, the share of random moves of the expert that plays it, and the budget of steps in millions."""

    env: str
    noise: float
    millions: float = 4.0
    args: Mapping[str, Any] = {}
    reward: str = "return"


_TITLES = {
    "correlation": "correlation with the true effect of turns, 95 % interval over tasks",
    "alignment": "cosine with the exact policy gradient, 95 % interval over tasks",
}


def _own(name: str) -> str:
    return f"{Path(__file__).with_name('worlds') / 'properties.py'}:{name}"


WORLDS = {
    "maze": World("manyturn/Maze-v0", 0.5),
    "household tiny": World("manyturn/Household-v0", 0.7, 8, {"difficulty": "tiny"}),
    "household easy": World("manyturn/Household-v0", 0.75, 20, {"difficulty": "easy"}),
    "shop": World("manyturn/Shop-v0", 0.6),
    "desk": World("manyturn/Desk-v0", 0.15),
    "booking": World("manyturn/Talk-Booking-v0", 0.75, 1.5),
    "treasure": World("manyturn/Treasure-v0", 0.7, 8),
    "cooking": World("manyturn/Cooking-v0", 0.45, 8),
    "laboratory": World("manyturn/Laboratory-v0", 0.2, 12, {"difficulty": "small"}),
    "sql": World("manyturn/SQL-v0", 0.3, 0.4, {"difficulty": "tiny"}),
    "drafts": World("manyturn/Drafts-v0", 0.3, 1, {"difficulty": "tiny"}),
    "clarify": World("manyturn/Clarify-v0", 0.4, 1, {"difficulty": "easy"}),
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
        world.env, policy, methods=methods(world), env_args=dict(world.args), workers=workers, **options
    )


def methods(world: World) -> dict[str, CreditConfig]:
    """All methods of a world, registered ones first."""
    more = (*FURTHER, *(OF_TEMPTING if world.reward == "outcome" else ()))
    return {**every_method(), **{word: method_of(word) for word in more}}


def forks_by_siblings(audit: CreditAudit) -> dict[str, Any]:
    """Correlation of forks, and branches for each episode, by the number of branches of each turn."""
    rows = {}
    for siblings in SIBLINGS:
        sample = AuditSample.of(audited_tasks(audit.played.tasks, siblings, ()))
        [score] = score_methods(sample, {"forks": method_of("forks")}).scores
        assert sample.branched is not None
        own = len(sample.batch.truncated_E)
        branches = (len(sample.branched.truncated_E) - own) / own
        rows[str(siblings)] = {"branches_per_episode": branches, "correlation": score.correlation}
    return plain(rows)


def measured_worlds(out: Path) -> dict[str, Any]:
    """Worlds that a result file has already, each with the commit and the date that it was measured at."""
    if not out.is_file():
        return {}
    result = json.loads(out.read_text(encoding="utf-8"))
    made = {name: result[name] for name in ("commit", "date")}
    return {name: {**made, **world} for name, world in result["worlds"].items()}


def take(other: Path, out: Path) -> None:
    """Put the worlds that another result has newly measured into a result; each keeps its commit and date."""
    result, more = (json.loads(path.read_text(encoding="utf-8")) for path in (out, other))
    refuse(out, more["commit"])
    new = {name: world for name, world in measured_worlds(other).items() if world["commit"] == more["commit"]}
    worlds = {**measured_worlds(out), **new}
    ordered = {world: worlds[world] for world in WORLDS if world in worlds}
    out.write_text(json.dumps({**result, "worlds": ordered}, indent=1) + "\n", encoding="utf-8")


def figures(audit: CreditAudit) -> dict[str, Any]:
    """As much of an audit's summary as the page needs."""
    summary = plain(audit.summary)
    for score in summary["methods"]:
        del score["calibration"]
    summary["skipped"] |= methods_with_options()
    names = ("played", "truth", "methods", "skipped", "without_effect", "anchors", "remarks")
    return {
        "noise": float(audit.policy.partition(":")[2]),
        **{name: summary[name] for name in names},
        "forks_by_siblings": forks_by_siblings(audit),
    }


def page(result: Mapping[str, Any]) -> str:
    """The tables of the documentation."""
    worlds = result["worlds"]
    own = {
        name: {one["method"]: one for one in world["methods"] if one["anchor"] == "environment"}
        for name, world in worlds.items()
    }
    scored = list(dict.fromkeys(method for scores in own.values() for method in scores))
    parts = [_truths(worlds)]
    for figure in PICTURES:
        lines = [(_label(own, method), *(_cell(own[name].get(method), figure) for name in worlds)) for method in scored]
        lines.sort(key=lambda line: "given the truth" in line[0])
        parts.append(f"{figure}:\n\n{table(('method', *worlds), lines)}")
    parts += [f"forks:\n\n{_siblings(worlds)}", f"not scored:\n\n{_skipped(worlds)}"]
    parts.append(f"anchors:\n\n{_anchors(worlds)}")
    return "\n\n".join(parts)


def _label(own: Mapping[str, Mapping[str, Any]], method: str) -> str:
    oracle = any(scores[method]["oracle"] for scores in own.values() if method in scores)
    return f"`{method}` (given the truth)" if oracle else f"`{method}`"


def _cell(score: Mapping[str, Any] | None, figure: str) -> str:
    """A figure; the method that has the same credit in its place; or a hyphen where a method was not scored."""
    if score is None:
        return "-"
    return f"as {score['same_as']}" if score["same_as"] else _ends(score[figure])


def _siblings(worlds: Mapping[str, Any]) -> str:
    """Forks by branches of each turn, with branches for each episode in brackets."""
    lines = []
    for siblings in map(str, SIBLINGS):
        rows = [world["forks_by_siblings"][siblings] for world in worlds.values()]
        cells = [f"{row['correlation']['mean']:.2f} ({row['branches_per_episode']:.0f})" for row in rows]
        lines.append((siblings, *cells))
    return table(("branches of each turn", *worlds), lines)


def _skipped(worlds: Mapping[str, Any]) -> str:
    """Methods that were not scored, the worlds, and the reason."""
    places: dict[tuple[str, str], list[str]] = {}
    for name, world in worlds.items():
        for method, reason in world["skipped"].items():
            places.setdefault((method, reason), []).append(name)
    lines = [
        (f"`{method}`", "all" if len(names) == len(worlds) else ", ".join(names), reason)
        for (method, reason), names in places.items()
    ]
    return table(("method", "worlds", "reason"), lines)


def draw(result: Mapping[str, Any], figure: str, path: Path) -> None:
    """A panel for each world and a row for each method: the figure on its interval, light where the truth is given."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows: dict[str, dict[str, Any]] = {}
    for world, audit in result["worlds"].items():
        for one in audit["methods"]:
            if one["anchor"] == "environment" and one["same_as"] is None and one[figure]["mean"] is not None:
                rows.setdefault(one["method"], {})[world] = one
    means = {method: mean(one[figure]["mean"] for one in by_world.values()) for method, by_world in rows.items()}
    order = sorted(rows, key=means.__getitem__)
    sheet, panels = pyplot.subplots(1, len(result["worlds"]), figsize=(18, 9), layout="constrained", sharey=True)
    for panel, world in zip(panels, result["worlds"], strict=True):
        panel.axvline(0, color="silver", linewidth=1, zorder=0)
        for place, method in enumerate(order):
            if (one := rows[method].get(world)) is not None:
                colour = "#93b4e8" if one["oracle"] else "#1d4ed8"
                panel.plot([one[figure]["low"], one[figure]["high"]], [place, place], color=colour)
                panel.plot(one[figure]["mean"], place, "o", color=colour, markersize=4)
        panel.set_yticks(range(len(order)), order, fontsize=8)
        panel.set_title(world, fontsize=10)
    sheet.supxlabel(f"{_TITLES[figure]}; light: given the truth")
    sheet.savefig(path, dpi=70)
    pyplot.close(sheet)


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
        "turns with a certain effect",
        "turns with 90 % of the effect",
        "branches per episode",
        "s",
    )
    lines = []
    for name, world in worlds.items():
        played, truth = world["played"], world["truth"]
        line = [name, f"{world['noise']:.0%}", f"{played['success']:.2f}", f"{played['turns']:,}"]
        line += [f"{played['continuations']:,}", f"{truth['reliability']:.2f}", f"{truth['certain']:.0%}"]
        line += [f"{truth['carrying']:.0%}", f"{played['branches_per_episode']:.0f}"]
        lines.append((*line, f"{world['seconds']:.0f}"))
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
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--take", type=Path, help="a result of this script for other worlds, to put into --out")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if args.page:
        print(page(json.loads(args.out.read_text(encoding="utf-8"))))
        return
    if args.draw:
        for figure, picture in PICTURES.items():
            draw(json.loads(args.out.read_text(encoding="utf-8")), figure, args.out.with_name(picture))
        return
    if args.take:
        take(args.take, args.out)
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
