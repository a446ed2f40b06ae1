"""First turns at which trained policies act otherwise than the expert: what failed episodes have in common.

    python -m benchmarks.environments.first_departures RUN-FOLDER --recipe desk-tiny

The folder is that of ``recipe_success``. Each sampled episode of its evaluations after training is played again, and
the expert is asked at each turn, until the policy does something else. Every seed is written.
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.agents.records.tables import table_in
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.tools.calls import is_call, read_calls

_KINDS = (
    (r"search\[", "search"),
    (r"click\[buy now\]", "buy"),
    (r"click\[(next >|< prev|back to search|description|features|reviews)\]", "look elsewhere"),
    (r"click\[[a-z]+\d+\]", "open a product"),
    (r"click\[", "choose an option"),
    (r".*\?$", "ask"),
)


def kind_of(action: str) -> str:
    """A tool's name, with the rule that is named; or what one does in a shop or a talk."""
    if is_call(action):
        [call, *_] = read_calls(action)
        return " ".join([call.name, *([str(call.arguments["answer"])] if "answer" in call.arguments else [])])
    return next((kind for pattern, kind in _KINDS if re.match(pattern, action, re.DOTALL)), "say")


def departure(env: EnvHandle, task: Task, seed: int, turns: Sequence[Mapping[str, Any]]) -> str | None:
    """Actions of expert and policy at the first turn at which they differ; None if they never do.

    Raises:
        SystemExit: the environment is not the one that was played.
    """
    step = env.reset(task, seed)
    for turn in turns:
        if step.observation != turn["observation"]:
            raise SystemExit(f"{task.id} is not as it was played: {step.observation!r}, {turn['observation']!r}")
        expert, action = env.expert(), turn["action"] or turn["reply"]
        if action != expert:
            first, second = kind_of(expert), kind_of(action)
            return f"{second} instead of {first}" if first != second else f"another {first}"
        step = env.step(action)
    return None


def departures(evaluation: Path) -> dict[str, Any]:
    """Episodes of an evaluation, those that failed, and the first departures of these and of the others."""
    about = json.loads((evaluation / "summary.json").read_text(encoding="utf-8"))
    seed, env = about["seed"], EnvHandle(about["env"], about["args"])
    tasks = {task.id: task for task in env.tasks(about["split"])}
    turns_of = defaultdict[tuple[str, str, int], list[Mapping[str, Any]]](list)
    for turn in read_turns(table_in(evaluation, "turns")):
        turns_of[turn["stage"], turn["task"], turn["member"]].append(turn)
    counts = {True: Counter[str](), False: Counter[str]()}
    for episode in (episodes := read_episodes(table_in(evaluation, "episodes"))):
        _, task, _ = place = episode["stage"], episode["task"], episode["member"]
        turns = sorted(turns_of[place], key=lambda turn: turn["turn"])
        if first := departure(env, tasks[task], EpisodeKey(seed, *place).reset_seed(), turns):
            counts[bool(episode["success"])][first] += 1
    return {
        "seed": seed,
        "episodes": len(episodes),
        "failed": sum(not episode["success"] for episode in episodes),
        "of_failed": dict(counts[False].most_common()),
        "of_successful": dict(counts[True].most_common()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("--recipe", required=True, help="whose runs these are, which names the file of results")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    out = chosen.out or RESULTS / f"{chosen.recipe}-departures.json"
    about = origin(out, ("numpy", "pyarrow"), run_folder=chosen.run_folder)
    runs = [departures(file.parent) for file in chosen.run_folder.glob("seed-*/evaluation/summary.json")]
    runs.sort(key=lambda run: run["seed"])
    write(out, about, {"runs": runs})
    for run in runs:
        print(f"seed {run['seed']}: {run['failed']} of {run['episodes']} failed; of these {run['of_failed']}")


if __name__ == "__main__":
    main()
