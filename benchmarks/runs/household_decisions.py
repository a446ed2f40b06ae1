"""Decisions of the recipe household-tiny on the expert's way: take something that is in view, or go on.

    python -m benchmarks.runs.household_decisions RUN-FOLDER

The folder is that of ``recipe_success --recipe household-tiny``. The expert plays validation tasks. Wherever something
can be taken, the checkpoints before and after reinforcement say how likely they make the expert's first word: drawn
token by token, and where whole commands are chosen. Decisions are grouped by what is in view: whether the object that
the task names is, and among how many. Beside them stand two rules: take something where the named object is in view,
and the best one that only counts; and how likely a free reply would be one of the commands.
"""

import argparse
import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.engine.engine import Engine, GivenReply
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Act, Episode, Player
from manyturn.agents.text.choice_decoding import Choices, ReplyChoices
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.record.run_folder import read_config
from manyturn.trainers.run.setup.run_builder import Run, open_run
from manyturn.trainers.run.warmup.imitation_samples import imitation_samples

_GOAL = re.compile(r"Your task is to: put (?:some|an?) (\w+) (?:in|on|in/on) \w+\.")
_THING = re.compile(r"\ban? (\w+) \d")
_MANY = 4  # things in view from which on their number is one group


Lists = dict[EpisodeKey, list[Sequence[str]]]


class Decision(NamedTuple):
    """A turn at which something can be taken.

    Attributes:
        is_named: whether the object that the task names is in view.
        things: how many things are in view.
        prompt: token ids up to the reply.
        choices: replies that are possible.
        first: the token that the expert's begins with.
        takes: whether that is to take something.
    """

    is_named: bool
    things: int
    prompt: list[int]
    choices: Choices
    first: int
    takes: bool

    @property
    def group(self) -> tuple[str, str]:
        seen = "named object in view" if self.is_named else "only other objects in view"
        return seen, str(self.things) if self.things < _MANY else f"{_MANY} or more"


class Listed(Scripted):
    """The expert, and the commands that were listed at each of its turns."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.lists: Lists = defaultdict(list)

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return _ListedPlayer(super().player(key, instructions), self.lists[key])


class _ListedPlayer:
    def __init__(self, player: Player, lists: list[Sequence[str]]):
        self._player, self._lists, self.ledger = player, lists, player.ledger

    async def act(self, step: Answer, seat: Seat) -> Act:
        self._lists.append(step.admissible or ())
        return await self._player.act(step, seat)

    def leave(self) -> None:
        self._player.leave()


async def demonstrated(run: Run, tasks: int) -> tuple[list[Episode], Lists]:
    """The expert's episodes of the first validation tasks, and the commands of its turns."""
    plan = plan_groups(run.validation_tasks(tasks), 1, run.config.seed, "decisions")
    expert, max_turns = Listed(), run.config.rollout.max_turns
    episodes = await gather(run.seats, run.demonstrator(expert), plan, max_turns=max_turns, patience=run.patience)
    return episodes, expert.lists


def decisions_in(episodes: Sequence[Episode], lists: Lists, commands: ReplyChoices, take: int) -> Iterator[Decision]:
    """Their decisions to take something or to go on.

    Args:
        take: the token of the word.

    Raises:
        SystemExit: a task is of another kind than the level tiny has.
    """
    for sample in imitation_samples(episodes):
        episode = episodes[sample.episode]
        goal = _GOAL.search(episode.turns[0].observation)
        if goal is None:
            raise SystemExit(f"no task of difficulty tiny: {episode.turns[0].observation!r}")
        for place in (np.flatnonzero(sample.reply_mask[1:] & ~sample.reply_mask[:-1]) + 1).tolist():
            turn, first = int(sample.reply[place]), int(sample.ids[place])
            choices = commands.of(lists[episode.key][turn])
            if any(reply[0] == take for reply in choices.replies):
                things = _THING.findall(episode.turns[turn].observation)
                prompt = sample.ids[:place].tolist()
                yield Decision(goal[1] in things, len(things), prompt, choices, first, first == take)


async def judged(engine: Engine, decisions: Sequence[Decision]) -> dict[str, Any]:
    """Shares of decisions that the policy makes as the expert does, by unit of choice and by group.

    A greedy policy makes the likeliest; for a sampled one it is the mean probability. ``listed`` is the mean chance of
    a free reply to be one of the commands.
    """
    given = [GivenReply(decision.prompt, reply) for decision in decisions for reply in decision.choices.replies]
    scores, listed = iter(await engine.score(given)), list[float]()
    likely = defaultdict[str, dict[tuple[str, str], list[tuple[bool, float]]]](lambda: defaultdict(list))
    for decision in decisions:
        firsts, wholes, best = dict[int, float](), defaultdict[int, float](float), (0.0, -1)
        for reply in decision.choices.replies:
            row = next(scores)
            whole = float(np.exp(sum(row)))
            firsts[reply[0]], best = float(np.exp(row[0])), max(best, (whole, reply[0]))
            wholes[reply[0]] += whole
        listed.append(sum(wholes.values()))
        for unit, words, word in (("token", firsts, max(firsts, key=firsts.__getitem__)), ("command", wholes, best[1])):
            outcome = word == decision.first, words[decision.first] / sum(words.values())
            for group in (("all", "all"), (decision.group[0], "all"), decision.group):
                likely[unit][group].append(outcome)
    return {**{unit: _rows(groups) for unit, groups in likely.items()}, "listed": round(float(np.mean(listed)), 3)}


def _rows(groups: dict[tuple[str, str], list[tuple[bool, float]]]) -> dict[str, Any]:
    rows = defaultdict[str, dict[str, Any]](dict)
    for (seen, things), outcomes in sorted(groups.items()):
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
        commands = ReplyChoices(run.config.agent.reply_format, language.template)
        decisions = list(decisions_in(*await demonstrated(run, tasks), commands, take))
        by_name = float(np.mean([decision.takes == decision.is_named for decision in decisions]))
        rules = {"by name": round(by_name, 3), "by counting": round(by_counting(decisions), 3)}
        result: dict[str, Any] = {"decisions": len(decisions), "rules": rules}
        for name, checkpoint in (("before", checkpoints[0]), ("after", checkpoints[-1])):
            language.load_weights(checkpoint / "model")
            result[name] = await judged(run.only.engine, decisions)
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
        for unit in ("token", "command"):
            before, after = run["before"][unit]["all"], run["after"][unit]["all"]
            print(f"seed {run['seed']}, by {unit}: before {before}, after {after}")


if __name__ == "__main__":
    main()
