"""Reinforcement of a tiny adviser that has imitated little, for a frozen language model that acts greedily.

    python -m benchmarks.roles.adviser_reinforcement RUN-FOLDER --model MODEL

``MODEL`` is the folder of SmolLM2-135M-Instruct, whose weights never change. The recipe is ``adviser-tiny``. The same
command continues runs that were interrupted. ``adviser_reinforcement.toml`` has what was expected, and why.
"""

import argparse
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.kit.process import finish_recipe, words_of
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.trainers.record.run_folder import read_metrics

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "adviser_reinforcement.json"
PANELS = ("before", "before_greedy", "after", "after_greedy")
WATCHED = ("success", "adviser/entropy", "adviser/groups_without_signal", "adviser/approx_kl", "adviser/clip_fraction")


def row_of(seed: int, summary: dict[str, Any], run: Path) -> dict[str, Any]:
    """What one run showed: success on the panel, and step by step what learning was like."""
    panels = {name: {key: summary[name][key] for key in ("success", "ci_low", "ci_high")} for name in PANELS}
    lines = [line for line in read_metrics(run) if line["phase"] == "train"]
    steps = [{"step": line["step"], **{name: line[name] for name in WATCHED}} for line in lines]
    differences = {name: summary[name] for name in ("difference", "difference_greedy")}
    return {"seed": seed, **panels, **differences, "warmup": summary["warmup"], "steps": steps}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    about = origin(OUT, ("torch", "transformers", "numpy"), run_folder=chosen.folder, model=chosen.model)
    changes = {
        **plan["run"],
        "roles": {"actor": {"policy": str(chosen.model.resolve()), **plan["actor"]}},
        "evaluation": {"limit": plan["games"]},
    }
    rows = []
    for seed in range(plan["seeds"]):
        run = chosen.folder / f"seed-{seed}"
        summary = finish_recipe("adviser-tiny", seed, run, words_of(changes), **changes)
        rows.append(row_of(seed, summary, run))
    write(OUT, about, {"plan": plan, "runs": rows})


if __name__ == "__main__":
    main()
