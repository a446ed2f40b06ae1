"""A policy that has learned when to ask, against policies that never, always or wherever several things fit ask.

    python -m benchmarks.environments.clarify RUN-FOLDER      some minutes of CPU time

The recipe ``clarify-tiny`` is run for each seed, and its policy plays held-out requests before and after reinforcement,
sampled and greedy. The same command continues runs that were interrupted. ``clarify.toml`` has what was expected.
"""

import argparse
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import manyturn as mt
from benchmarks.kit.process import finish_recipe, words_of
from benchmarks.kit.provenance import RESULTS, origin, write

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "clarify.json"
RECIPE, KEEP = "clarify-tiny", {"keep_checkpoints": 9}
DECODINGS = {"sampled": 1.0, "greedy": 0.0}
_THING = re.compile(r"(\d+): ([\w ]+), (\d+) times")


class Asker:
    """Brings the likeliest thing that fits, after one question in some episodes. Override ``asks``."""

    def __init__(self) -> None:
        self._things: list[tuple[str, list[str], int]] = []

    def asks(self) -> bool:
        return False

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        if not info["turn"]:
            shelf = _THING.findall(observation)
            self._things = [(number, words.split(), int(count)) for number, words, count in shelf]
            if self.asks():
                return f"ask {self.question()}"
        else:
            left = re.search(r"Left: ([\d, ]+)", observation)
            numbers = left[1].split(", ") if left else []
            self._things = [thing for thing in self._things if thing[0] in numbers]
            if len(self._things) > 1:
                return f"ask {self.question()}"
        return f"bring {max(self._things, key=lambda thing: thing[2])[0]}"

    def question(self) -> str:
        """An attribute in which the things differ, if there is one."""
        sizes = {words[0] for _, words, _ in self._things}
        return "size" if len(sizes) > 1 else "colour"


class AmbiguousOnly(Asker):
    """Asks wherever several things fit."""

    def asks(self) -> bool:
        return len(self._things) > 1


class Always(Asker):
    """Asks in every episode."""

    def asks(self) -> bool:
        return True


def figures(evaluation: Any) -> dict[str, Any]:
    """Success, turns, return and measures of an evaluation, with their intervals."""
    summary = evaluation.summary
    chosen = {name: summary[name] for name in ("success", "turns", "return")} | summary["measures"]
    columns = ("mean", "ci_low", "ci_high", "n_tasks")
    return {name: {key: one[key] for key in columns if key in one} for name, one in chosen.items()}


def rules(requests: int) -> dict[str, Any]:
    """Figures of policies that do not learn."""
    panel = {"env_args": {"difficulty": "tiny"}, "limit": requests, "seed": 1}
    policies = {
        "never": Asker,
        "ambiguous only": AmbiguousOnly,
        "always": Always,
        "expert": "expert",
        "random": "random",
    }
    return {name: figures(mt.evaluate(policy, "manyturn/Clarify-v0", **panel)) for name, policy in policies.items()}


def learned(seed: int, folder: Path, requests: int) -> dict[str, Any]:
    """Figures of a run's policy after its warm-up and after its last step."""
    run = folder / f"seed-{seed}"
    summary = finish_recipe(RECIPE, seed, run, words_of(KEEP), **KEEP)
    steps = sorted(path.name for path in (run / "checkpoints").glob("step_*"))
    rows: dict[str, Any] = {"seed": seed, "seconds": summary["seconds"]}
    for name, step in (("before", steps[0]), ("after", steps[-1])):
        for decoding, temperature in DECODINGS.items():
            played = mt.evaluate(
                run / "checkpoints" / step, limit=requests, seed=1, out=run / "held-out" / f"{name}-{decoding}",
                sampling={"temperature": temperature},
            )  # fmt: skip
            rows[f"{name}, {decoding}"] = figures(played)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    about = origin(OUT, ("torch", "transformers", "numpy"), run_folder=chosen.folder)
    result = {"plan": plan, "rules": rules(plan["requests"]), "runs": list[dict[str, Any]]()}
    for seed in range(plan["seeds"]):
        result["runs"].append(learned(seed, chosen.folder, plan["requests"]))
        write(OUT, about, result)


if __name__ == "__main__":
    main()
