"""The household environment: ALFWorld's rules and text, with tasks of its own or official game files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import SPLITS, Task
from manyturn.envs.household.expert import next_command
from manyturn.envs.household.games import GameFolder
from manyturn.envs.household.layouts import LEVELS, RoomLevel
from manyturn.envs.household.pddl import write_problem
from manyturn.envs.household.problem import KINDS
from manyturn.envs.household.task_generator import HouseholdTasks, build, find_task
from manyturn.envs.household.text import GRAMMARS, Grammar
from manyturn.envs.household.world import Tables, World

INSTRUCTIONS = """\
You are in a room and must do a household task. Each turn, answer with exactly one command.

Commands:
  look
  inventory
  go to RECEPTACLE
  open RECEPTACLE
  close RECEPTACLE
  take OBJECT from RECEPTACLE
  {put}
  examine RECEPTACLE, or the OBJECT that you hold
  use LAMP
  clean OBJECT with sinkbasin N
  heat OBJECT with microwave N
  cool OBJECT with fridge N
  slice OBJECT with the knife that you hold{help}

Names have a number: cabinet 3, mug 1. You can hold one object. Go to a receptacle to see what it holds; if it is \
closed, open it. To clean, heat or cool an object, hold it and stand at the sinkbasin, microwave or fridge. To \
look at an object under a lamp, hold it, go to the lamp and use the lamp.
If a command is impossible, the answer is: Nothing happens.
The goal is at the end of the first text: put an object somewhere, put a clean, hot or cool one somewhere, put two \
of a kind in the same receptacle, or look at an object under a lamp."""


class Household(TextEnv):
    """Find, change and place objects in a room.

    Task:
        One of ALFWorld's six kinds of goals: put an object somewhere, put a clean, hot or cool one there, put two of a
        kind there, or look at one under a lamp. Tasks are made from a number, or read from official game files.
    Observation:
        ALFWorld's sentences. A receptacle shows what it holds when the agent goes to it, or opens it if it is closed.
        The anchor is task and observation, because GiGPO groups by that; a key of the hidden state would separate
        visits that differ only in some door left open elsewhere.
    Actions:
        ``go to``, ``open``, ``close``, ``take``, ``move``, ``examine``, ``use``, ``clean``, ``heat``, ``cool``,
        ``slice``, ``look`` and ``inventory``. An impossible command is invalid and answered with ``Nothing happens.``
    Reward:
        1 when the goal is reached, and nothing else. ``progress`` is the share of the goal's conditions that hold.
    End:
        Success when the goal holds. An episode cannot fail; it is truncated at ``max_turns``.
    Splits:
        train, validation and test share no problem. Rooms and goals of ``test_unseen`` occur in no other split; only
        generated tasks have it.
    Expert:
        Searches, and uses only what the agent was shown.
    Floors:
        ``manyturn envs manyturn/Household-v0`` measures expert and random policy on every level. Doing nothing never
        succeeds in a generated task.

    Args:
        split: train, validation, test, or for generated tasks test_unseen.
        difficulty: ``tiny``, ``easy`` (default), ``medium`` or ``hard``; not with ``games``.
        kinds: goal kinds to keep: put, light, clean, heat, cool, two; default all that the difficulty has.
        games: folder of official game files; see ``games.py`` for what is read and how splits are recognised.
        grammar: ``"move"`` (``move X to Y``) or ``"put"`` (older files: ``put X in/on Y``, ``You arrive at loc 7.``);
            default: what the game file says, and ``"move"`` for generated tasks.
        max_turns: default 20, 30, 40, 50 for the four difficulties and 50 for games.
    """

    harmless = (*TextEnv.harmless, "kinds", "grammar")
    max_turns = 50
    splits = (*SPLITS, "test_unseen")
    levels: Mapping[str, RoomLevel] = LEVELS
    _world: World  # of the episode

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        kinds: Sequence[str] | str | None = None,
        games: str | Path | None = None,
        grammar: str | None = None,
        max_turns: int | None = None,
    ):
        if grammar is not None and grammar not in GRAMMARS:
            raise ValueError(f"no grammar {grammar!r}: choose {' or '.join(GRAMMARS)}")
        chosen_kinds = _kinds(kinds, KINDS if games is not None else self.level_of(difficulty or "easy").kinds)
        self._grammar = GRAMMARS[grammar] if grammar else None
        self._folder: GameFolder | None = None
        if games is None:
            difficulty = difficulty or "easy"
            self._tasks: dict[str, Sequence[Task]] = {
                name: HouseholdTasks(name, difficulty, chosen_kinds) for name in self.splits
            }
        else:
            if difficulty is not None:
                raise ValueError("games have no difficulty: leave out one of games and difficulty")
            self.levels = {}
            self._folder = GameFolder(games, chosen_kinds)
            self._tasks = {**{name: self._folder.tasks(name) for name in SPLITS}, "test_unseen": ()}
        super().__init__(split, max_turns, difficulty)
        if not len(self._tasks[split]):
            filled = [name for name, tasks in self._tasks.items() if len(tasks)]
            raise ValueError(f"no tasks in split {split!r} of {games}; choose split {' or '.join(filled) or 'none'}")
        shown = self._grammar or GRAMMARS["move"]
        if self._folder:
            shown = self._folder.tables(self._tasks[split][0], self._grammar).grammar
        self.instructions = instructions(shown)

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def find(self, task_id: str) -> Task:
        if self._folder:
            return super().find(task_id)
        task = _cached_task(task_id)
        return task if task is not None else super().find(task_id)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        if self._folder:
            tables = self._folder.tables(task, self._grammar)
        else:
            params = task.params
            tables = _tables(
                params["receptacles"], params["objects"], params["goal"], self._grammar or GRAMMARS["move"]
            )
        self._world = World(tables)
        return self._world.intro()

    def respond(self, action: str) -> Turn:
        world = self._world
        text, understood = world.act(action)
        if world.won:
            # As in ALFWorld, a file whose goal holds from the start ends with any command, even an invalid one.
            return replace(self.succeed(text), understood=understood)
        return self.go_on(text) if understood else self.invalid(text)

    def admissible(self) -> list[str]:
        return self._world.admissible()

    def progress(self) -> float:
        return self._world.progress()

    def expert(self) -> str:
        """The next command of an expert that searches and uses only what the agent was shown."""
        return next_command(self._world)

    def save(self) -> bytes:
        return self._world.save()

    def load(self, data: bytes) -> None:
        self._world.load(data)

    def export_pddl(self) -> str:
        """The current task as a PDDL problem of ALFWorld's domain."""
        return write_problem(self._world.problem)


def instructions(grammar: Grammar) -> str:
    """Instructions that the agent reads once."""
    put = grammar.put.format(o="OBJECT", r="RECEPTACLE")
    return INSTRUCTIONS.format(put=put, help="\n  help" if grammar.help else "")


Household.instructions = instructions(GRAMMARS["move"])
_cached_task = lru_cache(maxsize=256)(find_task)


@lru_cache(maxsize=64)
def _tables(receptacles: str, objects: str, goal: str, grammar: Grammar) -> Tables:
    """Shared by the episodes of a group, and by a snapshot and its restoration."""
    return Tables(build({"receptacles": receptacles, "objects": objects, "goal": goal}), grammar)


def _kinds(kinds: Sequence[str] | str | None, offered: Sequence[str]) -> tuple[str, ...] | None:
    """The goal kinds asked for, checked against those on offer; None for all."""
    if kinds is None:
        return None
    chosen = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    wrong = [kind for kind in chosen if kind not in offered]
    if wrong or not chosen:
        raise ValueError(f"no goal kind {', '.join(map(repr, wrong)) or 'given'}: choose from {', '.join(offered)}")
    return chosen
