"""ScienceWorld as an environment of text."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from manyturn.envs.benchmarks.java_process import require_engine
from manyturn.envs.benchmarks.scienceworld.simulator import AMBIGUOUS, Simulator
from manyturn.envs.benchmarks.scienceworld.variations import KINDS, PACKAGE, VERSION, Variations
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.tasks.task import Task

REWARDS = ("outcome", "turns")
LIMITS = ("own", "eto")
SIMPLIFICATIONS = ("teleportAction", "openDoors", "selfWateringFlowerPots", "openContainers", "noElectricalAction")
LONGEST_ACTION = 200  # characters
_UNKNOWN = "No known action matches that input."  # the simulator's words
_NO_CHOICE = "Unknown action."  # its answer to a number that was not offered


class ScienceWorld(TextEnv):
    """Do an experiment of primary school in a house with a greenhouse, a workshop and a foundry.

    Task:
        One of 30 tasks in one of its variations, 7,207 in all: change states of matter, mix, measure, build circuits,
        find and grow living things, order them by life span, study inclined planes and genetics (Wang et al. 2022,
        arXiv 2203.07540). The simulator is the authors', of the package scienceworld.
    Observation:
        The simulator's text. Lines of a list are sorted: their order would depend on what happened before, and on how
        many episodes the Java process has played. So texts are not equal to the package's, line by line they are.
        ``progress`` is the score.
    Actions:
        The simulator's commands, such as ``go to kitchen``, ``pick up thermometer``, ``use thermometer on water``,
        ``focus on water``, ``wait``. A request that can mean several things is answered with numbers to choose from.
        ``commands=True`` lists valid actions, up to a thousand; the list takes the simulator ten times as long as a
        turn.
    Reward:
        1 when the goal is reached. ``rewards="turns"`` adds what each earlier turn adds to the score, as two parts:
        ``ordered`` (sub-goals in their order) and ``optional`` (others); together less than 1. ``measures`` has the
        official score, from 0 to 100, or -100 after a fatal mistake.
    End:
        Success at score 100. Failure when the agent focuses on a wrong thing, for which the original's score is -100.
        Truncated after 200 turns, or with ``limits="eto"`` where the agents of ETO are, after 10 to 120. The original
        also ends after 100 moves, of which a command can take ten; here it does not.
    Splits:
        The official ones: train, validation (the original's dev) and test have other variations of the same tasks.
    Expert:
        The simulator's own path from the start. It knows the state, and after another action may lead nowhere. With
        ``limits="eto"`` it is too long for some tasks.
    Floors:
        ``manyturn evaluate random --env manyturn/ScienceWorld-v0 --env.args '{commands = true}'`` measures the random
        policy.

    Args:
        split: train, validation or test.
        tasks: names of tasks, such as ``boil``; default all, or with ``limits="eto"`` the 24 that ETO plays.
        simplification: ``easy`` (default, the original's preset), ``""``, or names with commas between them:
            teleportAction, openDoors, selfWateringFlowerPots, openContainers, noElectricalAction.
        rewards: ``outcome`` (sparse) or ``turns`` (dense).
        commands: list valid actions.
        limits: ``own`` or ``eto``; without ``max_turns``.
        seconds: that Java may take to answer before it is killed, and the episode is lost and played again.
        max_turns: the same limit for all tasks.
    """

    instructions = (
        "You are in a house with rooms for experiments, and must do the task of the first text. Each turn, answer with "
        "exactly one command.\n\nCommands:\n  look around\n  look at OBJ\n  look in OBJ\n  inventory\n  task\n"
        "  go to LOCATION\n  teleport to LOCATION\n  open OBJ\n  close OBJ\n  pick up OBJ\n  put down OBJ\n"
        "  move OBJ to OBJ\n  pour OBJ into OBJ\n  dunk OBJ into OBJ\n  mix OBJ\n  activate OBJ\n  deactivate OBJ\n"
        "  use OBJ on OBJ\n  read OBJ\n  eat OBJ\n  flush OBJ\n  connect OBJ to OBJ\n  disconnect OBJ\n  focus on OBJ\n"
        "  wait (10 steps)\n  wait1 (1 step)\n\nFocus on an object only if the task asks for it: a wrong focus ends "
        "the task. If a command can mean several things, answer with the number of the one that you mean."
    )
    max_turns = 200
    harmless = (*TextEnv.harmless, "tasks", "simplification", "rewards", "commands", "limits", "seconds")
    side_by_side = 16  # worlds in the memory of one Java process

    def __init__(
        self,
        split: str = "train",
        tasks: Sequence[str] | str | None = None,
        simplification: str = "easy",
        rewards: str = "outcome",
        commands: bool = False,
        limits: str = "own",
        seconds: float = 120.0,
        max_turns: int | None = None,
    ):
        for option, value, choices in (("rewards", rewards, REWARDS), ("limits", limits, LIMITS)):
            if value not in choices:
                raise ValueError(f"no {option} {value!r}: choose {' or '.join(choices)}")
        if limits == "eto" and max_turns is not None:
            raise ValueError("limits='eto' has no effect where max_turns is set: leave out one of them")
        if not 1 <= seconds <= 3600:
            raise ValueError(f"seconds = {seconds} must be from 1 to 3600")
        super().__init__(split, max_turns)
        names = _names(tasks, limits)
        _check_simplification(simplification, names)
        require_engine(PACKAGE, VERSION)
        self._simulator = Simulator(seconds)
        self._limits = {name: KINDS[name].limit or self.max_turns for name in names} if limits == "eto" else {}
        self.max_turns = max(self._limits.values(), default=self.max_turns)
        self._lists, self._pays_turns = commands, rewards == "turns"
        self.part_names = ("ordered", "optional") if self._pays_turns else ()
        self._tasks = {split: Variations(split, names, simplification) for split in self.splits}
        self._score = self._ordered = 0.0

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    # ---- the episode ----------------------------------------------------------------------------------------

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        params = task.params
        self.max_turns = self._limits.get(params["task"], self.max_turns)
        self._score = self._ordered = 0.0
        return self._simulator.begin(params["task"], params["variation"], params["simplification"])

    def respond(self, action: str) -> Turn:
        action = action.strip(" \n")
        if len(action) > LONGEST_ACTION or not action.isascii() or not action.isprintable():
            return self.invalid(_UNKNOWN)  # as the simulator says of whatever it cannot read
        text = self._simulator.step(action)
        status = self._simulator.status()
        parts = self._parts(status.score)
        self._score = status.score
        if status.score < 0:
            return self.fail(f"{text}\nThe task has failed.")
        if status.completed:
            return self.succeed(f"{text}\nThe task is done.")
        return self.invalid(text, **parts) if text.startswith((_UNKNOWN, _NO_CHOICE)) else self.go_on(text, **parts)

    def _parts(self, score: float) -> dict[str, float]:
        """The change of the score, by the kind of sub-goal that was reached."""
        if not self._pays_turns or score in (self._score, -1.0):
            return {}
        subgoals = self._simulator.subgoals()
        ordered = subgoals.reached / subgoals.total
        gains = {"ordered": ordered - self._ordered, "optional": score - self._score - ordered + self._ordered}
        self._ordered = ordered
        return {name: gain for name, gain in gains.items() if abs(gain) > 1e-9}

    # ---- what trainers see ----------------------------------------------------------------------------------

    def admissible(self) -> list[str] | None:
        return self._simulator.valid_actions(self.observation) if self._lists else None

    def anchor(self) -> Hashable:
        """The score, the room and the inventory; after an ambiguous request its text too."""
        choice = self.observation if self.observation.startswith(AMBIGUOUS) else ""
        return self.task.id, self._score, self._simulator.surroundings(), choice

    def progress(self) -> float:
        return max(0.0, self._score)

    def measures(self) -> Mapping[str, float]:
        return {"score": float(round(100 * self._score))}

    def expert(self) -> str:
        path = iter(self._simulator.gold_path())
        # The actions of the path that were taken, others between them.
        following = next(path, "look around")
        for action in self._actions:
            if action == following:
                following = next(path, "look around")
        return following

    def close(self) -> None:
        """Forget the episode; the Java process goes on for other environments."""
        self._simulator.close()


def _names(tasks: Sequence[str] | str | None, limits: str) -> tuple[str, ...]:
    """The names of tasks to play. Raises ValueError that names the nearest."""
    if tasks is None:
        return tuple(name for name, kind in KINDS.items() if limits == "own" or kind.limit is not None)
    names = tuple(dict.fromkeys([tasks] if isinstance(tasks, str) else tasks))
    if not names:
        raise ValueError("tasks names no task: name one, such as boil")
    for name in names:
        if name not in KINDS:
            near = near_names(name, KINDS, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(KINDS)}"
            raise ValueError(f"ScienceWorld has no task {name!r}: {hint}")
        if limits == "eto" and KINDS[name].limit is None:
            raise ValueError(f"ETO does not play {name}: leave it out, or leave out limits='eto'")
    return names


def _check_simplification(simplification: str, names: Sequence[str]) -> None:
    """Raise ValueError for a simplification that there is not, or that makes a task impossible."""
    chosen = simplification.split(",") if simplification else []
    for part in chosen:
        if part not in ("easy", *SIMPLIFICATIONS):
            raise ValueError(f"no simplification {part!r}: choose easy, or some of {', '.join(SIMPLIFICATIONS)}")
    electrical = [name for name in names if KINDS[name].electrical]
    if "noElectricalAction" in chosen and electrical:
        raise ValueError(f"noElectricalAction makes {electrical[0]} impossible: leave it out, or name other tasks")
