"""A frozen model before and after rounds of experience, on held-out tasks; with a control of exchanged answers.

    python -m benchmarks.runs.experience RUN-FOLDER MODEL-FOLDER      about five minutes of CPU time

The model folder holds SmolLM2-135M-Instruct. Of each seed ``manyturn improve`` makes the same rounds with the method
``cases``. Then the panel is played with the last round's cases again, but each has the actions of another case, which
do not clear its fault. The same command continues runs that were interrupted, and ``experience.toml`` has what was
expected.
"""

import argparse
import json
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import manyturn as mt
from benchmarks.kit.fault_world import REMEDIES
from benchmarks.kit.provenance import RESULTS, ROOT, origin, write
from manyturn.agents.experience.store import Experience

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "experience.json"
ENV = f"{ROOT}/benchmarks/kit/fault_world.py:Machines"
AGENT = {"only_admissible": True, "format": "free_text"}
METHOD = {"name": "cases", "shown": 1, "failures": False}
DECODINGS = {"sampled": 1.0, "greedy": 0.0}
_LED = "These actions led to success:\n"


def exchanged(experience: Experience) -> str:
    """The file of an experience in which each case has the actions of another one, without its own remedy.

    It has no hash, as one that was written by hand, since its texts are in no attempt.
    """
    cases = experience.entries
    lines: list[dict[str, Any]] = [{"experience": 1, "shown": experience.shown}]
    for place, case in enumerate(cases):
        others = [*cases[place + 1 :], *cases[:place]]
        remedy = f"press {REMEDIES[case.task.split('/')[1]]}"
        actions = next(text for text in (one.text.partition(_LED)[2] for one in others) if remedy not in text)
        seen = case.text.partition(_LED)[0]
        lines.append({**case.plain(), "text": seen + _LED + actions})
    return "".join(json.dumps(line) + "\n" for line in lines)


def measured(evaluation: Path) -> dict[str, Any]:
    """Success on a panel with its interval, of all tasks and by tag."""
    summary = json.loads((evaluation / "summary.json").read_text())
    tags = {tag: _rounded(of["success"]) for tag, of in summary["by_tag"].items()}
    return {**_rounded(summary["success"]), "errors": summary["errors"]["n"], "by_tag": tags}


def _rounded(interval: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) for name, value in interval.items() if name != "n_episodes"}


def against(first: Path, second: Path) -> dict[str, Any]:
    """Success of the second evaluation less that of the first, paired by task."""
    [comparison] = mt.compare(first, second)["comparisons"]
    return {name: round(comparison["success"][name], 4) for name in ("difference", "ci_low", "ci_high")}


def one_seed(seed: int, model: Path, folder: Path, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The rounds of a seed, and the control."""
    began = time.process_time()
    common = {"agent": AGENT, "seed": seed}
    sizes = {"rounds": plan["rounds"], "pool": {"limit": plan["pool"]}, "validation": {"limit": plan["panel"]}}
    made = mt.improve(
        str(model), ENV, out=folder, method={**METHOD, "attempts": plan["attempts"]}, progress=True,
        sampling={"max_tokens": 8}, **sizes, **common,
    )  # fmt: skip
    evaluations = {r.round: folder / "rounds" / str(_of(r.unchanged_since, r.round)) for r in made.rounds}
    control = folder / "exchanged.jsonl"
    control.write_text(exchanged(made.experience))
    rows: dict[str, Any] = {"seed": seed, "rounds": [], "exchanged": {}, "rise": {}, "over_exchanged": {}}
    for result in made.rounds:
        panels = {name: measured(evaluations[result.round] / name) for name in DECODINGS}
        attempts = None if result.attempts is None else _rounded(result.attempts)
        counts = {"entries": result.experience["entries"], "solved": len(result.solved)}
        spent = {"prompt_tokens": result.total.prompt_tokens, "reply_tokens": result.total.reply_tokens}
        rows["rounds"].append({"round": result.round, **counts, "attempts": attempts, **panels, **spent})
    for name, temperature in DECODINGS.items():
        out = folder / f"exchanged-{name}"
        mt.evaluate(
            str(model), ENV, split="validation", limit=plan["panel"], out=out, experience=control,
            sampling={"max_tokens": 8, "temperature": temperature}, **common,
        )  # fmt: skip
        last = evaluations[plan["rounds"]] / name
        rows["exchanged"][name] = measured(out)
        rows["rise"][name] = against(evaluations[0] / name, last)
        rows["over_exchanged"][name] = against(out, last)
    return {**rows, "cpu_seconds": round(time.process_time() - began, 1)}


def _of(earlier: int | None, number: int) -> int:
    """The round that measured a round's experience."""
    return number if earlier is None else earlier


def verdicts(rows: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Verdicts on what was expected."""

    def rises(tag: str) -> float:
        panels = [(row["rounds"][0][name], row["rounds"][-1][name]) for row in rows for name in DECODINGS]
        return sum(last["by_tag"][tag]["mean"] - first["by_tag"][tag]["mean"] for first, last in panels)

    return {
        "H1": all(row["rise"][name]["ci_low"] > 0 for row in rows for name in DECODINGS),
        "H2": all(row["over_exchanged"][name]["ci_low"] > 0 for row in rows for name in DECODINGS),
        "H3": rises("fault of no training task") < rises("fault of training tasks") / 2,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("model_folder", type=Path)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    folders = {"run_folder": chosen.run_folder, "model_folder": chosen.model_folder}
    about = origin(OUT, ("torch", "transformers", "numpy"), **folders)
    rows: list[dict[str, Any]] = []
    for seed in plan["seeds"]:
        rows.append(one_seed(seed, chosen.model_folder, chosen.run_folder / f"seed-{seed}", plan))
        write(OUT, about, {"plan": plan, "verdicts": verdicts(rows), "runs": rows})


if __name__ == "__main__":
    main()
