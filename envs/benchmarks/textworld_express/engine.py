"""TextWorld-Express's engine: one game at a time, in a Java process that is kept from episode to episode.

Source: ``TextWorldExpressEnv`` of the package textworld-express 1.1.0.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from manyturn.envs.benchmarks.java_process import JavaError, JavaLost, JavaObject
from manyturn.envs.benchmarks.textworld_express.games import GAMES, PACKAGE

_ENTRY = "textworldexpress.runtime.PythonInterface"
_NO_PATH = False  # the engine's own path is another each time
_ATTEMPTS = 50  # the engine's own number
UNKNOWN = "Unknown action: I'm not sure what you mean."  # the engine's words


class GameError(RuntimeError):
    """The engine makes no game from these parameters."""


class Answer(NamedTuple):
    """The engine's answer to an action.

    Attributes:
        text: the observation.
        look, inventory: the room and the inventory; empty in games without them.
        commands: valid actions, sorted.
        score: share of the goal that is reached, from 0 to 1; -1 after a fatal mistake in some games.
        won, lost: True if the game has ended so.
    """

    text: str
    look: str
    inventory: str
    commands: list[str]
    score: float
    won: bool
    lost: bool


class Engine:
    """The engine's object in Java. Methods raise JavaLost or JavaError.

    Where games share things, the one that plays is made again with its actions whenever another has played meanwhile.

    Args:
        seconds: that a call may take.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._java: JavaObject | None = None
        self.goal = ""

    def begin(self, game: str, parameters: Mapping[str, int], seed: int, fold: str) -> Answer:
        """Make a game; its first observation. Raises GameError."""
        self._game, self._played, self._path = (game, parameters, seed, fold), list[str](), None
        try:
            return self._made()
        except JavaLost:  # it may have ended since its last episode: no turn is lost yet
            self._java = None
            return self._made()

    def _made(self) -> Answer:
        if self._java is None or not self._java.alive:
            self._java = self._new()
        answer = self._generate(self._java)
        self.goal = self._java.call("getTaskDescription").strip()
        return answer

    def step(self, action: str) -> Answer:
        java = self._java
        if java is None:
            raise JavaLost("the engine has no game: reset the environment")
        with java.process.turn(action):
            if GAMES[self._game[0]].shares and java.process.user is not java:
                self._generate(java)
                for earlier in self._played:
                    java.call("stepJSON", earlier)
            self._played.append(action)
            return _read(java.call("stepJSON", action))

    def gold_path(self) -> list[str]:
        """A path of the engine's own agent from the start, without actions that the engine itself refuses.

        It is drawn and tried in another object of the same process, so that the episode goes on as it is.
        """
        if self._path is None:
            java, path = self._new(), list[str]()
            with java.process.turn("mkGoldPath"):
                drawn = self._drawn_path(java)
                self._generate(java)
                for action in drawn:
                    answer = _read(java.call("stepJSON", action))
                    if answer.text != UNKNOWN:
                        path.append(action)
                    if answer.won or answer.lost:
                        break
            self._path = path
        return self._path

    def _drawn_path(self, java: JavaObject) -> list[str]:
        """The agent's first path to the goal; the game's seed draws it, where the engine goes by the clock."""
        random = java.process.make("scala.util.Random", self._game[2])
        for _ in range(_ATTEMPTS):
            self._generate(java)
            game = java.call("game")
            name = game.getClass().getSimpleName().removesuffix("Game")
            drawn = java.process.make(f"textworldexpress.goldagent.{name}GoldAgent", game).mkGoldPath(random)
            if drawn._1():
                path = list(drawn._2())
                return path[1:] if path[0] == "look around" else path  # the first look is the game's beginning
        return []

    def close(self) -> None:
        """Forget the game; the process goes on."""
        self._java = None

    def _new(self) -> JavaObject:
        return JavaObject(PACKAGE, "textworld-express.jar", _ENTRY, self._seconds)

    def _generate(self, java: JavaObject) -> Answer:
        game, parameters, seed, fold = self._game
        words = ",".join(f"{name}={value}" for name, value in parameters.items())
        if refusal := java.call("load", game, words):
            raise GameError(f"{game} with {words}: {refusal.strip()}")
        java.process.user = java
        try:
            return _read(java.call("generateNewGameJSON", seed, fold, _NO_PATH))
        except JavaError as error:
            raise GameError(
                f"{game} with {words} has no game of seed {seed}, choose other parameters: {error}"
            ) from None


def _read(text: str) -> Answer:
    fields = json.loads(text)
    return Answer(
        fields["observation"].strip(),
        fields["look"].strip(),
        fields["inventory"].strip(),
        sorted(set(fields["validActions"])),
        fields["score"],
        fields["tasksuccess"] or fields["score"] >= 1,
        fields["taskfailure"],
    )
