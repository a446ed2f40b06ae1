"""Werewolf against scripted players, and both sides against their past selves.

    python -m benchmarks.roles.werewolf RUN-FOLDER      about half an hour of CPU time

Some runs train a werewolf against scripted players, and others train a werewolf and the other players against each
other. Then each side's last weights meet the other side's weights after earlier steps, on held-out games. The same
command continues runs that were interrupted. ``werewolf.toml`` has what was expected.
"""

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import manyturn as mt
from benchmarks.kit.process import finish_recipe, words_of
from benchmarks.kit.provenance import RESULTS, origin, write

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "werewolf.json"
VILLAGE = dict.fromkeys(("seer", "first_villager", "second_villager", "third_villager"), "village")
BOTH_LEARN = {"roles": VILLAGE, "steps": 20, "checkpoint_every": 10, "keep_checkpoints": 9}


def wins(summary: dict[str, Any]) -> dict[str, float]:
    """Share of games that the werewolf wins, with its 95 % interval: the villagers' success turned round."""
    return {
        "wins": round(1 - summary["success"], 4),
        "ci_low": round(1 - summary["ci_high"], 4),
        "ci_high": round(1 - summary["ci_low"], 4),
    }


def met(folder: Path, wolf: int, village: int, games: int) -> Path:
    """Folder of an evaluation: held-out games between a run's werewolf and its villagers, each after so many steps."""
    out = folder / "meetings" / f"wolf-{wolf}-village-{village}"
    others = f"{folder}/checkpoints/step_{village:06d}"
    roles = {"roles": dict.fromkeys(VILLAGE, others)} if village != wolf else {}
    mt.evaluate(f"{folder}/checkpoints/step_{wolf:06d}", limit=games, seed=1, out=out, **roles)
    return out


def won(meeting: Path) -> dict[str, float]:
    """Share of a meeting's games that the werewolf wins."""
    success = json.loads((meeting / "summary.json").read_text())["success"]
    return wins({**success, "success": success["mean"]})


def against_script(seed: int, folder: Path) -> dict[str, Any]:
    """A werewolf before and after training against scripted players."""
    summary = finish_recipe("werewolf-tiny", seed, folder)
    names = ("before", "before_greedy", "after", "after_greedy", "random")
    return {"seed": seed, **{name: wins(summary[name]) for name in names}, "gain": _turned(summary["difference"]),
            "gain_greedy": _turned(summary["difference_greedy"]), "seconds": summary["seconds"]}  # fmt: skip


def _turned(difference: dict[str, float], key: str = "success") -> dict[str, float]:
    """The werewolf's side of a difference of the villagers' success."""
    return {"wins": -difference[key], "ci_low": -difference["ci_high"], "ci_high": -difference["ci_low"]}


def against_past(seed: int, folder: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """Both sides of a run after its last step, each against the other side after earlier ones.

    ``less_own`` is paired by game: the share that the werewolf wins in a meeting, less the share when both sides are
    the last ones.
    """
    finish_recipe("werewolf-tiny", seed, folder, words_of(BOTH_LEARN), **BOTH_LEARN)
    last, games = BOTH_LEARN["steps"], plan["games"]
    own = met(folder, last, last, games)
    rows: dict[str, Any] = {"seed": seed, "own": won(own)}
    for step in plan["past_steps"]:
        meetings = {
            f"last_wolf_and_village_{step}": met(folder, last, step, games),
            f"wolf_{step}_and_last_village": met(folder, step, last, games),
        }
        compared = mt.compare(own, *meetings.values())["comparisons"]
        for (name, meeting), comparison in zip(meetings.items(), compared, strict=True):
            rows[name] = {**won(meeting), "less_own": _turned(comparison["success"], "difference")}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    about = origin(OUT, ("torch", "transformers", "numpy"), run_folder=chosen.folder)
    script, past = [], []
    for seed in range(plan["seeds"]):
        script.append(against_script(seed, chosen.folder / f"script-{seed}"))
        write(OUT, about, {"plan": plan, "against_script": script, "against_past": past})
    for seed in range(plan["past_seeds"]):
        past.append(against_past(seed, chosen.folder / f"past-{seed}", plan))
        write(OUT, about, {"plan": plan, "against_script": script, "against_past": past})


if __name__ == "__main__":
    main()
