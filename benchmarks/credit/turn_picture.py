"""The picture of README: the turns of an episode, with the true effect of each and the credit that methods give it.

    python -m benchmarks.credit.turn_picture            about ten seconds of the processor
    python -m benchmarks.credit.turn_picture --draw     only the picture, from the result

An expert with a share of random moves cooks, and a credit audit estimates the effect of each of its turns. The episode
is the first that failed within nine turns, one of which lowered the expected return by at least a half.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.audit.audit import credit_audit
from manyturn.audit.methods import method_of
from manyturn.audit.result import CreditAudit
from manyturn.trainers.credit.audit.turn_sample import OWN

OUT = RESULTS / "turn_credit.json"
ENV, POLICY = "manyturn/Cooking-v0", "expert:0.3"
SIZES: dict[str, Any] = {"group": 8, "reliability": 0.9, "critic": 4, "siblings": 4, "seed": 0}
METHODS = ("grpo", "gigpo", "forks")
TITLES = {"effect": "true effect", "grpo": "GRPO", "gigpo": "GiGPO", "forks": "forks (BPO)"}
LONGEST, LOST = 9, -0.5


def episode_of(audit: CreditAudit) -> dict[str, Any]:
    """The episode that is drawn: its task, and of each turn action, true effect, standard error and credits.

    Raises:
        SystemExit: no episode of the audit lost that much by one turn.
    """
    first, effects = 0, audit.sample.effects
    for played in audit.played.tasks:
        for member, episode in enumerate(played.episodes):
            turns = range(first, first + len(episode.turns))
            first = turns.stop
            lost = min(effects.effect_K[turns.start : turns.stop])
            if episode.success is False and len(turns) <= LONGEST and lost <= LOST:
                rows = [
                    {
                        "action": turn.action,
                        "effect": round(float(effects.effect_K[k]), 4),
                        "error": round(float(effects.error_K[k]), 4),
                        **{name: round(float(audit.credits[name, OWN][k]), 4) for name in METHODS},
                    }
                    for k, turn in zip(turns, episode.turns, strict=True)
                ]
                return {"task": played.task, "member": member, "turns": rows}
    raise SystemExit(f"no failed episode of at most {LONGEST} turns has a turn that lost {-LOST:g}: audit more tasks")


def draw(result: Mapping[str, Any], path: Path) -> None:
    """A row for each turn, and a panel for the true effect and for each method, which has a scale of its own."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = result["turns"]
    places = np.arange(len(rows))
    sheet, panels = pyplot.subplots(
        1, len(TITLES), figsize=(11, 0.36 * len(rows) + 1), layout="constrained", sharey=True
    )
    for panel, (column, title) in zip(panels, TITLES.items(), strict=True):
        values = np.array([row[column] for row in rows])
        reach = 1.5 * max(float(np.abs(values).max()), 1e-9)
        panel.barh(places, values, color="#b45309" if column == "effect" else "#1d4ed8", height=0.62)
        panel.axvline(0, color="silver", linewidth=1)
        for place, value in zip(places, values, strict=True):
            side = -1 if value < 0 else 1
            align = "right" if side < 0 else "left"
            text = f"{value + 0.0:.2f}".replace("-0.00", "0.00")
            panel.text(value + side * 0.04 * reach, place, text, va="center", ha=align, fontsize=9)
        panel.set_xlim(-reach, reach)
        panel.set_xticks([])
        panel.set_title(title, fontsize=12, fontweight="bold" if column == "effect" else "normal")
        panel.spines[["top", "right", "bottom", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(places, [f"{place + 1}  {row['action']}" for place, row in enumerate(rows)], fontsize=10)
    panels[0].invert_yaxis()
    title = f"{len(rows)} turns of {result['env']} {result['task']}: {', '.join(TITLES.values())}"
    sheet.savefig(path, dpi=110, metadata={"Title": title})
    pyplot.close(sheet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    if not chosen.draw:
        about = origin(chosen.out, ("numpy", "scipy", "matplotlib"))
        methods = {name: method_of(name) for name in METHODS}
        audit = credit_audit(ENV, POLICY, methods=methods, tasks=chosen.tasks, steps=2_000_000, **SIZES)
        about |= {"env": ENV, "policy": POLICY, "tasks": chosen.tasks, **SIZES}
        write(chosen.out, about, {"reliability_of_the_truth": round(audit.truth.reliability, 4), **episode_of(audit)})
    draw(json.loads(chosen.out.read_text(encoding="utf-8")), chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
