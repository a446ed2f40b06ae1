"""TextWorld as an environment of text."""

import importlib
import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.benchmarks.textworld.games import VERSION, game_file, maker
from manyturn.envs.benchmarks.textworld.presets import PRESETS, Preset, checked_words, words_of
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task

REWARDS = ("outcome", "score", "plan")
LONGEST_ACTION = 200  # characters
_SEEDS = 2**20  # of each split
_OTHER_VERBS = {"goal", "i", "inventory", "l", "look", "wait", "z"}
_COMMAND = re.compile(r"[A-Za-z0-9' -]+")
_STATUS = re.compile(r"\s*>\s*-= [^\n]* =-\s*-?\d+/\d+\s*\Z")
_REFUSED = "That's not a command of this game."
_LATEST = ("feedback", "description", "inventory")


class TextWorld(TextEnv):
    """Explore a house, take, open, cook and put things, and fulfil a quest.

    Task:
        A game that TextWorld's generator makes from a seed (Côté et al. 2018, arXiv 1806.11532): a preset, or any
        arguments of its program ``tw-make``.
    Observation:
        At first the quest, the room and the inventory; then the game's answer, without title and status line.
        ``progress`` is the share of the game's points.
    Actions:
        The game's commands: ``go north``, ``take``, ``open``, ``insert KEY into BOX``, ``cook`` and so on, all listed
        as admissible. One command a turn; other commands of the interpreter, such as ``save``, are invalid.
    Reward:
        1 when the quest is fulfilled. ``rewards="score"`` adds the points of earlier turns as the part ``score``,
        together less than 1. ``rewards="plan"`` adds TextWorld's intermediate reward as the part ``plan``: for a turn
        that brings the goal nearer, or takes it further away, plus or minus 1 over the length of the first plan.
    End:
        Success or failure as the game says: some quests can be spoilt. Truncated at ``max_turns``.
    Splits:
        train, validation and test are ranges of seeds; food of ``cooking`` is divided among them, as in the original.
        Small games may be equal in two splits.
    Expert:
        The first command of TextWorld's own plan, which knows the state; where the game has none, as in ``cooking``,
        the next command of its walkthrough, which off its path may lead nowhere.
    Floors:
        ``manyturn envs manyturn/TextWorld-v0`` measures expert and random policy.

    Args:
        split: train, validation or test.
        difficulty: a preset: ``w2-o3-q4`` (2 rooms, 3 objects, quest of 4 commands; default), ``w4-o6-q8``, ``simple``,
            ``coin``, ``treasure`` or ``cooking``; not with ``make``.
        make: arguments of ``tw-make``, such as ``["custom", "--world-size", "3", "--quest-length", "5"]``.
        size: number of games of a split; each takes about 5 seconds of a processor, once.
        rewards: ``outcome`` (sparse), ``score`` or ``plan`` (dense).
        max_turns: default of the preset, 12 to 50; with ``make`` 50.
    """

    instructions = (
        "You play a text game in a house. The first text says what to do. Each turn, answer with exactly one "
        "command.\n\n"
        "Commands:\n  look\n  inventory\n  go DIRECTION (north, east, south, west)\n  examine THING\n  take THING\n"
        "  take THING from PLACE\n  drop THING\n  put THING on SUPPORTER\n  insert THING into CONTAINER\n  open THING\n"
        "  close THING\n  lock THING with KEY\n  unlock THING with KEY\n  eat THING\n  cook THING with THING\n"
        "  slice, chop or dice THING with KNIFE\n  prepare meal"
    )
    max_turns = 50
    levels: Mapping[str, Preset] = PRESETS
    harmless = (*TextEnv.harmless, "rewards", "size")  # make is the command line of a program

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        make: Sequence[str] | None = None,
        size: int = 1000,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        if rewards not in REWARDS:
            raise ValueError(f"no rewards {rewards!r}: choose {', '.join(REWARDS)}")
        if not 1 <= size <= _SEEDS:
            raise ValueError(f"size = {size} must be from 1 to {_SEEDS}")
        if make is not None:
            if difficulty is not None:
                raise ValueError("make says what the games are: leave out one of make and difficulty")
            self.levels = {}
        super().__init__(split, max_turns, difficulty)
        words = self.level.words if make is None else checked_words(make)
        maker()
        self._rewards = rewards
        self.part_names = () if rewards == "outcome" else (rewards,)
        self._tasks = {name: _tasks(name, self.difficulty or "made", words, size) for name in SPLITS}
        self._game: Any = None
        self._state: Mapping[str, Any] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    # ---- the episode ----------------------------------------------------------------------------------------

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.close()
        self._game = _started(str(game_file(task.params["make"], task.params["seed"])))
        self._state = self._game.reset()
        self._plan = list(self._state["policy_commands"] or self._state["game"].walkthrough or ())
        self._verbs = {*self._state["verbs"], *_OTHER_VERBS}
        state = self._state
        return "\n\n".join(_spaced(state[name]) for name in ("objective", "description", "inventory"))

    def respond(self, action: str) -> Turn:
        command = action.strip(" \n")
        words = command.lower().split(" ")
        # A full stop, a comma or "then" would make several commands of one.
        if (
            len(command) > LONGEST_ACTION
            or not _COMMAND.fullmatch(command)
            or words[0] not in self._verbs
            or "then" in words
        ):
            return self.invalid(_REFUSED)
        before, situation = self._state, self.anchor()
        self._state, _, _ = self._game.step(command)
        text = cleaned(self._state["feedback"])
        if self._state["won"]:
            return self.succeed(text)
        if self._state["lost"]:
            return self.fail(text)
        meant = command in before["admissible_commands"] or words[0] in _OTHER_VERBS or self.anchor() != situation
        return self.go_on(text, **self._parts(before)) if meant else self.invalid(text, **self._parts(before))

    def _parts(self, before: Mapping[str, Any]) -> dict[str, float]:
        if self._rewards == "score":
            gain = (self._state["score"] - before["score"]) / self._state["max_score"]
        else:
            gain = self._state["intermediate_reward"] / max(1, len(self._plan))
        return {self._rewards: gain} if gain and self._rewards != "outcome" else {}

    # ---- what trainers see ----------------------------------------------------------------------------------

    def admissible(self) -> list[str]:
        return list(self._state["admissible_commands"])

    def anchor(self) -> Hashable:
        """Points, the room and the inventory as the game describes them."""
        return self.task.id, self._state["score"], self._state["description"], self._state["inventory"]

    def progress(self) -> float:
        return max(0.0, self._state["score"] / self._state["max_score"])

    def measures(self) -> Mapping[str, float]:
        return {"score": float(self._state["score"]), "max_score": float(self._state["max_score"])}

    def expert(self) -> str:
        if self._state["policy_commands"]:
            return self._state["policy_commands"][0]
        path = iter(self._plan)
        following = next(path, "look")
        for action in self._actions:
            if action == following:
                following = next(path, "look")
        return following

    def close(self) -> None:
        """End the interpreter."""
        game, self._game = self._game, None
        if game is not None:
            game.close()


def _tasks(split: str, name: str, words: Sequence[str], size: int) -> GeneratedTasks:
    first, prefix = SPLITS.index(split) * _SEEDS, f"{split}/{name}/"
    made = words_of(words, split)
    return GeneratedTasks(
        lambda number: Task(f"{prefix}{number}", split, {"make": made, "seed": first + number, "version": VERSION}),
        size,
        prefix,
    )


def _started(file: str) -> Any:
    """The interpreter with a game."""
    textworld: Any = importlib.import_module("textworld")  # takes seconds, and is an extra
    infos = textworld.EnvInfos(
        **dict.fromkeys((*_LATEST, "objective", "score", "max_score", "won", "lost", "verbs", "game"), True),
        **dict.fromkeys(("admissible_commands", "policy_commands", "intermediate_reward"), True),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the interpreter has no score of its own for these games, and TextWorld has
        game = textworld.start(file, infos)
    game.seed(1)  # else the interpreter draws from the clock
    return game


def cleaned(feedback: str) -> str:
    """The game's answer without the status line, and without what the interpreter says after the end.

    >>> cleaned("\\n\\n-= Attic =-\\nDust.\\n\\n\\n\\nNo exit.\\n\\n>      -= Attic =-1/3")
    '-= Attic =-\\nDust.\\n\\nNo exit.'
    """
    text = _STATUS.sub("", feedback)
    for end in ("*** The End ***", "*** You lost! ***"):
        head, mark, _ = text.partition(end)
        text = f"{head.rstrip()}\n\n{mark}" if mark else text
    return _spaced(text)


def _spaced(text: str) -> str:
    return re.sub(r"\n[ \t]*(\n[ \t]*)+", "\n\n", text).strip()
