"""Text worlds of ours and engines of others, as the benchmark of engines plays them."""

import importlib
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speed.environments.peers import alfworld_engine
from manyturn.envs.benchmarks.scienceworld.simulator import Simulator
from manyturn.envs.benchmarks.textworld.games import game_file
from manyturn.envs.benchmarks.textworld.presets import PRESETS
from manyturn.envs.benchmarks.textworld_express.engine import Answer, Engine
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.registration.builtin_envs import register_all
from manyturn.envs.contract.registration.env_registry import make

PACKAGES = ("scienceworld", "textworld", "textworld-express", "alfworld", "py4j")
EXPERIMENTS = ("boil", "chemistry-mix", "find-animal", "lifespan-longest-lived", "test-conductivity", "use-thermometer")
_SECONDS = 600.0  # for a call of Java


class Game(NamedTuple):
    """A world in which episodes are played.

    Attributes:
        episodes: how many there are.
        turns: the most of one.
        reset: begins an episode by its number.
        commands: the admissible commands now.
        step: plays a command; True if the episode has ended.
    """

    episodes: int
    turns: int
    reset: Callable[[int], object]
    commands: Callable[[], Sequence[str]]
    step: Callable[[str], bool]


def ours(name: str, difficulty: str) -> Game:
    """An environment of ours. A step is the full one of Gymnasium, with the list of commands."""
    register_all()
    env = make(name, difficulty=difficulty).unwrapped
    assert isinstance(env, TextEnv)
    tasks = env.tasks("train")[:48]

    def step(command: str) -> bool:
        _, _, terminated, truncated, _ = env.step(command)
        return terminated or truncated

    return Game(
        len(tasks),
        env.max_turns,
        lambda number: env.reset(seed=number, options={"task": tasks[number]}),
        lambda: env.admissible() or [],
        step,
    )


def scienceworld(*, listed: bool) -> Game:
    """ScienceWorld's raw step: text, score and end; ``listed`` adds the valid actions."""
    simulator, last = Simulator(_SECONDS), [""]

    def reset(number: int) -> None:
        last[0] = simulator.begin(EXPERIMENTS[number], 0, "easy")

    def step(command: str) -> bool:
        last[0] = simulator.step(command)
        score, is_completed = simulator.status()
        if listed:
            simulator.valid_actions(last[0])
        return is_completed or score < 0

    return Game(len(EXPERIMENTS), 30, reset, lambda: simulator.valid_actions(last[0]), step)


def textworld(preset: str, *, listed: bool) -> Game:
    """TextWorld's step: text, score and end; ``listed`` adds the admissible commands."""
    files = [str(game_file(PRESETS[preset].words, seed)) for seed in range(3)]
    timed, twins = ([_interpreter(file, listed=flag) for file in files] for flag in (listed, True))
    number, unplayed, state = [0], list[str](), list[Any]()

    def reset(place: int) -> None:
        number[0], unplayed[:], state[:] = place, [], [twins[place].reset()]
        timed[place].reset()

    def step(command: str) -> bool:
        unplayed.append(command)
        _, _, has_ended = timed[number[0]].step(command)
        return bool(has_ended)

    def commands() -> Sequence[str]:
        for command in unplayed:  # lists come from a twin, which plays only while commands are drawn
            state[0], _, _ = twins[number[0]].step(command)
        unplayed.clear()
        return state[0]["admissible_commands"]

    return Game(len(files), PRESETS[preset].turns, reset, commands, step)


def _interpreter(file: str, *, listed: bool) -> Any:
    package: Any = importlib.import_module("textworld")
    infos = package.EnvInfos(score=True, won=True, lost=True, admissible_commands=listed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the interpreter has no score of its own for these games
        game = package.start(file, infos)
    game.seed(1)
    return game


def textworld_express(game: str) -> Game:
    """TextWorld-Express's raw step, which always lists the valid actions: one call, and its JSON as Python values."""
    engine, answer = Engine(_SECONDS), list[Answer]()

    def reset(number: int) -> None:
        answer[:] = [engine.begin(game, {}, number, "train")]

    def step(command: str) -> bool:
        answer[0] = engine.step(command)
        return answer[0].won or answer[0].lost

    return Game(12, 50, reset, lambda: answer[0].commands, step)


def alfworld() -> Game:
    """ALFWorld's own engine on one of our problems, with the package's domain and grammar and the list of commands."""
    folder = tempfile.TemporaryDirectory()  # the engine reads the file at each reset
    engine, state = alfworld_engine(Path(folder.name)), list[Any]()

    def reset(_: int) -> None:
        assert folder.name
        state[:] = [engine.reset()]

    def step(command: str) -> bool:
        state[0], _, has_ended = engine.step(command)
        return bool(has_ended)

    return Game(4, 30, reset, lambda: state[0]["admissible_commands"], step)
