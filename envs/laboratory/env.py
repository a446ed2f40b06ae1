"""Laboratory: experiments in a text world where time, heat, electricity and growth follow simple laws."""

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import SPLITS, Task
from manyturn.envs.laboratory.box_goals import Conductivity, Thermometer
from manyturn.envs.laboratory.commands import commands, focus_of, operation_of, perform, refusal
from manyturn.envs.laboratory.expert import next_command
from manyturn.envs.laboratory.goals import Change, Find, Goal, Grow, Lifespan, Mix
from manyturn.envs.laboratory.layout import Plan
from manyturn.envs.laboratory.tasks import LEVELS, LaboratoryLevel, LaboratoryTasks
from manyturn.envs.laboratory.world import World

REWARDS = ("outcome", "turns")
KINDS: dict[str, type[Goal]] = {
    "change": Change,
    "find": Find,
    "lifespan": Lifespan,
    "conductivity": Conductivity,
    "thermometer": Thermometer,
    "mix": Mix,
    "grow": Grow,
}
PART_NAMES = ("focus", "place", "switch", "state", "take", "test", "measure", "read", "pour", "mix", "water", "grow")
"""Names of the sub-goals, as parts of the reward."""


class Laboratory(TextEnv):
    """Do experiments in a laboratory of rooms: heat and cool, mix, measure, test, grow, find and order things.

    Task:
        One of seven kinds: change the state of a substance; find a thing of a category; focus on animals in the order
        of their life spans; find out if a thing conducts electricity; measure a temperature; mix a product; grow a
        plant or an animal. In the manner of ScienceWorld (Wang et al. 2022, arXiv 2203.07540), with rules, sentences
        and tasks of its own: scores are not comparable with ScienceWorld's.
    Observation:
        On entering a room, what stands and lies there and its doors; otherwise what a command has done, and what has
        melted or grown meanwhile in sight. ``progress`` is the sum of the weights of the sub-goals reached, which
        count in their order.
    Actions:
        ``look``, ``inventory``, ``look at``, ``focus on``, ``read``, ``take`` and ``drop THING``, ``go to ROOM``,
        ``open`` and ``close`` doors and lids, ``turn on`` and ``turn off DEVICE``, ``put``, ``pour``, ``mix``,
        ``measure``, ``connect``, ``disconnect``, ``wait one minute``, ``wait ten minutes``. Any command takes a
        minute of the laboratory's time. Anything else is invalid and takes none.
    Reward:
        1 when all sub-goals are reached. ``rewards="turns"`` adds for each sub-goal but the last its weight, once, as
        a part with its name; together less than 1.
    End:
        Success when all sub-goals are reached. Failure when the agent focuses on a wrong object or at a wrong time,
        uses the wrong box, or spoils what it needs. Truncated at ``max_turns``.
    Splits:
        train, validation and test share no task. Plans of rooms in ``test_unseen``, and the objects and substances
        that its goals are about, occur in no other split.
    Expert:
        Looks at things and reads before it uses a fact, searches rooms and cabinets for what it has not seen, and
        uses only what it was shown.
    Floors:
        ``manyturn envs manyturn/Laboratory-v0`` measures expert and random policy on every level.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: ``tiny`` (1 room; change and find only; default), ``small`` (2 rooms), ``medium`` (4) or ``long``
            (12, without find and lifespan).
        kind: only tasks of this kind.
        rewards: ``outcome`` (sparse) or ``turns`` (dense).
        max_turns: default by difficulty, 15, 30, 50 and 100.
    """

    instructions = (
        "You are in a laboratory and must do an experiment. Each turn, answer with exactly one command.\n\n"
        "Commands:\n  look\n  inventory\n  look at THING\n  focus on THING\n  read THING\n  take THING\n  drop THING\n"
        "  put THING in CONTAINER\n  put THING on SURFACE\n  go to ROOM\n  open THING\n  close THING\n"
        "  open door to ROOM\n  close door to ROOM\n  turn on DEVICE\n  turn off DEVICE\n  pour VESSEL into VESSEL\n"
        "  mix VESSEL\n  measure SUBSTANCE\n  connect THING to THING\n  disconnect THING\n  wait one minute\n"
        "  wait ten minutes\n\n"
        "Each command takes one minute. To heat or cool a substance, put its vessel in or on a device, turn the device "
        "on and wait. A device that is too hot boils what you want to melt. Look at a device to learn its temperature, "
        "and at a substance to learn when it melts and boils. To mix substances, pour them into one vessel and mix "
        "them. To measure a substance, carry a thermometer. Only things that you do not carry can be connected. Focus "
        "on an object only if the task asks for it: a wrong focus ends the experiment."
    )
    splits = (*SPLITS, "test_unseen")
    levels = LEVELS
    level: LaboratoryLevel
    harmless = (*TextEnv.harmless, "kind", "rewards")
    world: World
    goal: Goal

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        kind: str | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        if rewards not in REWARDS:
            raise ValueError(f"no rewards {rewards!r}: choose {' or '.join(REWARDS)}")
        if kind is not None and kind not in KINDS:
            raise ValueError(f"no kind {kind!r}: choose {', '.join(KINDS)}")
        super().__init__(split, max_turns, difficulty)
        name = self.difficulty or ""
        if kind is not None:
            self.level, name = replace(self.level, kinds=(kind,)), f"{name}-{kind}"
        self._pays_turns = rewards == "turns"
        self.part_names = PART_NAMES if self._pays_turns else ()
        self._tasks = {split: LaboratoryTasks(split, name, self.level) for split in self.splits}
        self._reached = 0

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        params = task.params
        plan, self.goal = _problem(*(params[name] for name in _PARAMS))
        self.world, self._reached = World(plan), 0
        return f"{self.goal.text} {self.world.describe()}"

    def respond(self, action: str) -> Turn:
        world, goal = self.world, self.goal
        operation = operation_of(world, action)
        if operation is None:
            return self.invalid(refusal(world, action))
        focus = focus_of(world, operation)
        is_wrong = focus >= 0 and not goal.accepts(world, focus)
        text = perform(world, operation)
        if is_wrong:
            return self.fail(f"{text} That is wrong. The experiment has failed.")
        parts = self._parts()
        if self._reached == len(goal.subgoals):
            return self.succeed(f"{text} The experiment has succeeded.", **parts)
        if goal.has_failed(world):
            return self.fail(f"{text} The experiment cannot succeed any more.", **parts)
        return self.go_on(text, **parts)

    def admissible(self) -> list[str]:
        return commands(self.world)[1].copy()

    def anchor(self) -> Hashable:
        return (self.task.id, self._reached, self.world.save())

    def progress(self) -> float:
        return math.fsum(weight for _, weight in self.goal.subgoals[: self._reached])

    def expert(self) -> str:
        return next_command(self.world, self.goal)

    def save(self) -> bytes:
        return json.dumps([self._reached, self.world.save()]).encode()

    def load(self, data: bytes) -> None:
        self._reached, state = json.loads(data)
        self.world.load(state)

    def _parts(self) -> dict[str, float]:
        """Note sub-goals that have been reached, in their order; the parts that pay for those but the last."""
        parts: dict[str, float] = {}
        subgoals = self.goal.subgoals
        while self._reached < len(subgoals) and self.goal.holds(self.world, subgoals[self._reached][0]):
            name, weight = subgoals[self._reached]
            self._reached += 1
            if self._pays_turns and self._reached < len(subgoals):
                name = name.rstrip("0123456789")
                parts[name] = parts.get(name, 0.0) + weight
        return parts


_PARAMS = ("rooms", "doors", "things", "start", "kind", "goal")


@lru_cache(maxsize=256)
def _problem(rooms: str, doors: str, things: str, start: int, kind: str, goal: str) -> tuple[Plan, Any]:
    """Plan and goal, shared by the episodes of a task."""
    values = (rooms, doors, things, start, kind, goal)
    plan = Plan(dict(zip(_PARAMS, values, strict=True)))
    return plan, KINDS[kind](plan)
