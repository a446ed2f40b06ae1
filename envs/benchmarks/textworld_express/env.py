"""TextWorld-Express as an environment of text."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from manyturn.envs.benchmarks.java_process import require_engine
from manyturn.envs.benchmarks.textworld_express.engine import UNKNOWN, Engine
from manyturn.envs.benchmarks.textworld_express.games import PACKAGE, VERSION, checked, tasks_of
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task

REWARDS = ("outcome", "score")
LONGEST_ACTION = 200  # characters


class TextWorldExpress(TextEnv):
    """Play one of eight small text games: cook, tidy up, find a coin, read a map, calculate, sort, follow instructions.

    Task:
        A game that the engine makes from a seed (Jansen and Côté 2022, arXiv 2208.01174). The engine is the authors',
        of the package textworld-express.
    Observation:
        At first the task and the room, then the engine's answer. ``progress`` is the score, 0 where it is negative.
    Actions:
        Exactly the commands that the engine lists, such as ``take knife``, ``move north``, ``open door to south``,
        ``put coin in box``, ``read cookbook``. All are listed as admissible.
    Reward:
        1 when the game is won. ``rewards="score"`` adds what each earlier turn adds to the score, as the part
        ``score``; together less than 1. ``measures`` has the official score, from 0 to 1, or -1 after a fatal mistake.
    End:
        Success or failure as the engine says; in some games a mistake is fatal. Truncated at ``max_turns``.
    Splits:
        The official ones, with 1,000 seeds each: train, validation (the original's dev) and test. Cooking and tidying
        have other things in each of them. Small games, as of ``simonsays``, may be equal in two splits.
    Expert:
        The engine's own path from the start, without the actions in it that the engine refuses. It knows the state,
        and after another action may lead nowhere. In 55 validation games of ``peckingorder`` two things have the same
        name, and the engine takes the wrong one: no policy can win these.
    Floors:
        ``manyturn envs manyturn/TextWorldExpress-v0`` measures expert and random policy.

    Args:
        split: train, validation or test.
        game: ``cookingworld`` (default), ``twc``, ``coin``, ``mapreader``, ``arithmetic``, ``sorting``, ``simonsays``
            or ``peckingorder``.
        parameters: of the game, by the package's names, such as ``{"numLocations": 5, "includeDoors": 0}``.
        rewards: ``outcome`` (sparse) or ``score`` (dense).
        seconds: that Java may take to answer before it is killed, and the episode is lost and played again.
        max_turns: default 100, as in the package; with ``cookingworld`` 200, and never below ``gameLength``.
    """

    instructions = (
        "You play a text game. The first text says what to do. Each turn, answer with exactly one command, such as "
        "look around, inventory, move north, open fridge, open door to south, take knife, put coin in box, "
        "read cookbook, eat meal."
    )
    max_turns = 100
    harmless = (*TextEnv.harmless, "game", "parameters", "rewards", "seconds")

    def __init__(
        self,
        split: str = "train",
        game: str = "cookingworld",
        parameters: Mapping[str, int] | None = None,
        rewards: str = "outcome",
        seconds: float = 120.0,
        max_turns: int | None = None,
    ):
        if rewards not in REWARDS:
            raise ValueError(f"no rewards {rewards!r}: choose {' or '.join(REWARDS)}")
        if not 1 <= seconds <= 3600:
            raise ValueError(f"seconds = {seconds} must be from 1 to 3600")
        parameters = dict(parameters or {})
        turns = max(checked(game, parameters).turns, parameters.get("gameLength", 0))
        super().__init__(split, turns if max_turns is None else max_turns)
        require_engine(PACKAGE, VERSION)
        self._engine = Engine(seconds)
        self._pays_turns = rewards == "score"
        self.part_names = ("score",) if self._pays_turns else ()
        self._tasks = {split: tasks_of(split, game, parameters) for split in self.splits}

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    # ---- the episode ----------------------------------------------------------------------------------------

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        params = task.params
        self._answer = self._engine.begin(params["game"], params["parameters"], params["seed"], params["fold"])
        return f"{self._engine.goal}\n\n{self._answer.text}"

    def respond(self, action: str) -> Turn:
        command = action.strip(" \n")
        if len(command) > LONGEST_ACTION or not command.isascii() or not command.isprintable():
            return self.invalid(UNKNOWN)  # as the engine says of whatever it cannot read
        before, self._answer = self._answer.score, self._engine.step(command)
        if self._answer.lost:
            return self.fail(f"{self._answer.text}\nThe game is lost.")
        if self._answer.won:
            return self.succeed(f"{self._answer.text}\nThe game is won.")
        gain = self._answer.score - before
        parts = {"score": gain} if gain and self._pays_turns else {}
        is_unknown = self._answer.text == UNKNOWN
        return self.invalid(UNKNOWN, **parts) if is_unknown else self.go_on(self._answer.text, **parts)

    # ---- what trainers see ----------------------------------------------------------------------------------

    def admissible(self) -> list[str]:
        return list(self._answer.commands)

    def anchor(self) -> Hashable:
        """The score, the room, the inventory and the valid actions."""
        answer = self._answer
        return self.task.id, answer.score, answer.look, answer.inventory, tuple(answer.commands)

    def progress(self) -> float:
        return min(1.0, max(0.0, self._answer.score))

    def measures(self) -> Mapping[str, float]:
        return {"score": self._answer.score}

    def expert(self) -> str:
        path = iter(self._engine.gold_path())
        # The actions of the path that were taken, others between them.
        following = next(path, "look around")
        for action in self._actions:
            if action == following:
                following = next(path, "look around")
        return following

    def close(self) -> None:
        """Forget the episode; the Java process goes on for other environments."""
        self._engine.close()
