"""A game of textarena 0.7.4 for one player: ``textarena:FrozenLake-v0``.

Source: the package textarena 0.7.4, ``textarena.core`` and ``textarena.state``. Its games draw from the random state of
the whole process. Here each episode has one of its own, which is put in its place for as long as the game computes.
"""

import contextlib
import random
import threading
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import textarena
from textarena.envs.registration import ENV_REGISTRY

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.registration.env_registry import NeedsSetup, UnknownEnv
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task
from manyturn.envs.packages.textarena_games import FIXED, VERSION, refusal

_SEEDS = 2**20  # of each split
_MOST = 1000  # characters of a move, for Python refuses to read numbers of more than 4,300 digits
_TURN = threading.Lock()  # whose game has its random state in the process


class ArenaEnv(TextEnv):
    """The agent reads what the game says and writes a move in square brackets, as the game explains.

    The outcome is the reward that the game gives at its end, where 1 is won and a share of the way is less. A task is a
    seed. The package has no splits: ours are ranges of seeds, and a game in which nothing is drawn has one task.

    Args:
        game: its id in textarena, such as ``FrozenLake-v0``.
        max_turns: truncates an episode; many games have a limit of their own, which ends them.
    """

    instructions = (
        "Play the game that the first message explains. Each action is one move, in the form that the message gives."
    )
    max_turns = 100
    part_names = ()

    def __init__(self, game: str, max_turns: int | None = None):
        if (installed := version("textarena")) != VERSION:
            raise NeedsSetup(
                f"textarena {installed} is installed, and the games that were read are those of {VERSION}: "
                "pip install 'manyturn[textarena]'"
            )
        if why := refusal(game, game in ENV_REGISTRY):
            raise UnknownEnv(why)
        self.splits = SPLITS[:1] if game in FIXED else SPLITS
        super().__init__(max_turns=max_turns)
        self._name = game
        # The game alone, without wrappers: they would repeat in each observation what was said before.
        self._game = textarena.make(f"{game}-raw")
        self._random: Any = None

    @contextlib.contextmanager
    def _own_random(self) -> Iterator[None]:
        """The process's random state is this episode's, and afterwards what it was before."""
        with _TURN:
            others = random.getstate()
            if self._random is not None:
                random.setstate(self._random)
            try:
                yield
            finally:
                self._random = random.getstate()
                random.setstate(others)

    def tasks(self, split: str) -> Sequence[Task]:
        first = SPLITS.index(split) * _SEEDS
        size = 1 if self._name in FIXED else _SEEDS
        same = {"game": self._name, "version": VERSION}
        return GeneratedTasks(lambda i: Task(f"{split}/{i}", split, {**same, "seed": first + i}), size, f"{split}/")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        with self._own_random():
            self._game.reset(num_players=1, seed=task.params["seed"])
            return self._heard()

    def respond(self, action: str) -> Turn:
        if len(action) > _MOST:
            return self.invalid(f"A move has at most {_MOST:,} characters.")
        with self._own_random():
            done, _ = self._game.step(action)
            text = self._heard()
        state = self._game.state
        if not done:
            return self.invalid(text) if state.error_count else self.go_on(text)
        [reward] = state.rewards.values()
        end = self.succeed if reward >= 1 else self.fail
        return end(f"{text}\n{state.game_info[0].get('reason') or ''}".strip(), outcome=float(reward))

    def _heard(self) -> str:
        """Text of the game since the last move, without that move."""
        _, messages = self._game.get_observation()
        of_player = textarena.ObservationType.PLAYER_ACTION
        return "\n\n".join(text.strip() for _, text, kind in messages if kind is not of_player)
