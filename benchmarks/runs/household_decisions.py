"""Decisions of the recipe household-tiny on the expert's way: take something that is in view, or go on.

    python -m benchmarks.runs.household_decisions RUN-FOLDER

The folder is that of ``recipe_success --recipe household-tiny``. The expert plays validation tasks. Wherever something
can be taken, the checkpoints before and after reinforcement say how likely they make the expert's first word among the
possible ones. Decisions are grouped by what is in view: whether the object that the task names is, and among how many.
Beside them stand two rules: take something where the named object is in view, and the best one that only counts.
"""

import argparse
import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Episode
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.record.run_folder import read_config
from manyturn.trainers.run.setup.run_builder import Run, open_run
from manyturn.trainers.run.warmup.imitation_samples import imitation_samples

_GOAL = re.compile(r"Your task is to: put (?:some|an?) (\w+) (?:in|on|in/on) \w+\.")
_THING = re.compile(r"\ban? (\w+) \d")
_MANY = 4  # things in view from which on their number is one group


class Decision(NamedTuple):
    """A turn at which something can be taken.

    Attributes:
        is_named: whether the object that the task names is in view.
        things: how many things are in view.
        ids: (T,) tokens up to the reply.
        possible: tokens that a reply can begin with.
        first: the one that the expert's begins with.
        takes: whether that is to take something.
    """

    is_named: bool
    things: int
    ids: np.ndarray
    possible: Sequence[int]
    first: int
    takes: bool

    @property
    def group(self) -> tuple[str, str]:
        seen = "named object in view" if self.is_named else "only other objects in view"
        return seen, str(self.things) if self.things < _MANY else f"{_MANY} or more"


async def demonstrated(run: Run, tasks: int) -> list[Episode]:
    """The expert's episodes of the first validation tasks."""
    plan = plan_groups(run.validation_tasks(tasks), 1, run.config.seed, "decisions")
    teacher, max_turns = run.demonstrator(Scripted(0.0)), run.config.rollout.max_turns
    return await gather(run.seats, teacher, plan, max_turns=max_turns, patience=run.patience)


def decisions_in(episodes: Sequence[Episode], take: int) -> Iterator[Decision]:
    """Their decisions to take something or to go on.

    Args:
        take: the token of the word.

    Raises:
        SystemExit: a task is of another kind than the level tiny has.
    """
    for sample in imitation_samples(episodes):
        turns = episodes[sample.episode].turns
        goal = _GOAL.search(turns[0].observation)
        if goal is None:
            raise SystemExit(f"no task of difficulty tiny: {turns[0].observation!r}")
        for place in np.flatnonzero(sample.reply_mask[1:] & ~sample.reply_mask[:-1]) + 1:
            possible, first = sample.allowed.get(int(place), ()), int(sample.ids[place])
            if take in possible:
                things = _THING.findall(turns[sample.reply[place]].observation)
                yield Decision(goal[1] in things, len(things), sample.ids[:place], possible, first, first == take)


@torch.no_grad()
def judged(model: torch.nn.Module, decisions: Sequence[Decision]) -> dict[str, Any]:
    """Shares of decisions that the policy makes as the expert does, by group.

    A greedy policy makes the likeliest; for a sampled one it is the mean probability.
    """
    likely = defaultdict[tuple[str, str], list[tuple[bool, float]]](list)
    for decision in decisions:
        logits = model(input_ids=torch.from_numpy(decision.ids)[None]).logits[0, -1, list(decision.possible)]
        probability, place = logits.softmax(-1), decision.possible.index(decision.first)
        outcome = int(probability.argmax()) == place, float(probability[place])
        for group in (("all", "all"), (decision.group[0], "all"), decision.group):
            likely[group].append(outcome)
    rows = defaultdict[str, dict[str, Any]](dict)
    for (seen, things), outcomes in sorted(likely.items()):
        greedy, probability = np.mean(outcomes, axis=0).round(3).tolist()
        rows[seen][things] = {"n": len(outcomes), "greedy": greedy, "sampled": probability}
    return {"all": rows.pop("all")["all"], **rows}


def by_counting(decisions: Sequence[Decision]) -> float:
    """Share of right decisions of the best rule that only counts the things in view."""
    numbers = Counter((decision.things, decision.takes) for decision in decisions)
    most = sum(max(numbers[things, True], numbers[things, False]) for things in {things for things, _ in numbers})
    return most / len(decisions)


async def measure(folder: Path, tasks: int) -> dict[str, Any]:
    """The decisions of a run's first and last checkpoint."""
    checkpoints = sorted((folder / "checkpoints").glob("step_*"))
    async with open_run(read_config(folder)) as run:
        language = run.only.language
        [take] = language.tokenizer.encode("take", add_special_tokens=False)
        decisions = list(decisions_in(await demonstrated(run, tasks), take))
        by_name = float(np.mean([decision.takes == decision.is_named for decision in decisions]))
        rules = {"by name": round(by_name, 3), "by counting": round(by_counting(decisions), 3)}
        result: dict[str, Any] = {"decisions": len(decisions), "rules": rules}
        for name, checkpoint in (("before", checkpoints[0]), ("after", checkpoints[-1])):
            language.load_weights(checkpoint / "model")
            result[name] = judged(language.model.eval(), decisions)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--out", type=Path, default=RESULTS / "household_decisions.json")
    chosen = parser.parse_args()
    about = origin(chosen.out, ("torch", "transformers", "numpy"), run_folder=chosen.run_folder)
    folders = sorted(chosen.run_folder.glob("seed-*"), key=lambda folder: int(folder.name.partition("-")[2]))
    runs = [
        {"seed": int(folder.name.partition("-")[2]), **asyncio.run(measure(folder, chosen.tasks))} for folder in folders
    ]
    write(chosen.out, about, {"tasks": chosen.tasks, "runs": runs})
    for run in runs:
        print(f"seed {run['seed']}: before {run['before']['all']}, after {run['after']['all']}")


if __name__ == "__main__":
    main()
