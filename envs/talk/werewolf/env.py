"""Werewolf in small, in which each seat is a policy of its own."""

import json
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of
from manyturn.envs.talk.werewolf.game import KILL, LOOK, SEATS, SEER, SPEAK, VILLAGER, VOTE, WEREWOLF, Game
from manyturn.envs.talk.werewolf.scripted_seats import scripted_move

_NAMES = (
    "Ada", "Bram", "Cleo", "Dina", "Emil", "Faye", "Goran", "Hana", "Ivo", "Jana", "Karl", "Lena", "Milo", "Nora",
    "Otto", "Petra", "Quinn", "Rosa", "Sami", "Tara", "Ugo", "Vera", "Willem", "Xenia", "Yara", "Zeno", "Anton", "Bea",
    "Carlo", "Doris", "Elsa", "Fritz",
)  # fmt: skip
_TASKS = {"train": 20_000, "validation": 2_000, "test": 2_000}
_CALLS = {
    LOOK: "It is night. Choose a player to look at.",
    KILL: "It is night. Choose a player to kill.",
    SPEAK: "It is day {}, and your turn to speak.",
    VOTE: "It is day {}. Cast your vote.",
}


class Werewolf(TextEnv):
    """Five seats: a hidden werewolf, a seer and three villagers, who talk by day and vote one of them out.

    Task:
        Names of the seats, the order in which they speak, and who is what.
    Observation:
        What the seat that acts next may know, and has not read yet: statements and votes of the days, who died, and for
        the seer what it saw. ``info["role"]`` names the seat.
    Actions:
        ``look at NAME`` and ``kill NAME`` by night; ``accuse NAME``, ``I am the seer and NAME is the werewolf``, ``I am
        the seer and NAME is innocent`` and ``say nothing`` by day, at the end of any other words, which all read; then
        ``vote for NAME``.
    Reward:
        1 for each seat of the side that wins, living or dead. The part ``seer.outcome`` is the seer's, and so on.
    End:
        The werewolf is voted out, or kills until only one other seat lives. Success is the villagers' win.
    Splits:
        train, validation and test share no game.
    Expert:
        Scripted play of each seat, by what it may know. A task is a game that the scripted villagers win against the
        scripted werewolf, so a werewolf that learns begins with losing.
    Floors:
        On 400 test tasks the expert succeeds in all, random admissible moves in 34 %, silence in none.

    Args:
        split: split that ``reset`` draws from.
        max_turns: of all seats together; default 40, which is more than a game has.
    """

    instructions = (
        "Five players sit at a table: one werewolf, one seer and three villagers. Each player knows only its own "
        "role. At night the seer looks at one player and learns whether it is the werewolf. From the second night on, "
        "the werewolf also kills one player. By day all players speak in turn, and then vote. The player with the "
        "most votes is out; if the vote is tied, everyone stays. The seer and the villagers win when the werewolf is "
        "voted out. The werewolf wins when only one other player is left. End each message with your move. At night: "
        "look at NAME, or kill NAME. By day: accuse NAME; I am the seer and NAME is the werewolf; I am the seer and "
        "NAME is innocent; or say nothing. To vote: vote for NAME."
    )
    roles = (WEREWOLF, SEER, "first_villager", "second_villager", "third_villager")
    part_names = tuple(f"{role}.outcome" for role in roles)
    max_turns = 40

    def __init__(self, split: str = "train", max_turns: int | None = None):
        super().__init__(split, max_turns)

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/"

        def make(number: int) -> Task:
            draws = Draws("werewolf-task", prefix, number)
            while True:
                params = {"names": _shuffled(_NAMES, draws)[:SEATS], "roles": _shuffled(self.roles, draws)}
                if split_of(digest(params)) == split and _scripted_winner(params) == VILLAGER:
                    return Task(f"{prefix}{number}", split, params)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._game, self._key = _game_of(task.params), digest(task.params)
        return self._observation()

    def respond(self, action: str) -> Turn:
        move = self._game.read_move(action)
        if move is None:
            return self.unreadable(f"End your message with one of your moves, such as: {self.admissible()[0]}.")
        self._game.play(move, action)
        if self._game.winner is None:
            return self.go_on(self._observation())
        won = self._game.winner == VILLAGER
        text = f"{'The villagers win' if won else 'The werewolf wins'}."
        return Turn(text, self._earned(), terminated=True, success=won)

    def _earned(self) -> dict[str, float]:
        wins = self._game.winner
        sides = {role: WEREWOLF if role == WEREWOLF else VILLAGER for role in self.roles}
        return {f"{role}.outcome": 1.0 for role in self.roles if sides[role] == wins}

    def _observation(self) -> str:
        game = self._game
        living = ", ".join(game.names[seat] for seat in game.living)
        lines = [f"You are {game.names[game.actor]}, {_title(game)}. Alive: {living}.", *game.news()]
        return "\n".join([*lines, _CALLS[game.phase].format(game.day)])

    def role(self) -> str:
        return self.task.params["roles"][self._game.actor]

    def admissible(self) -> list[str]:
        return [self._game.text(move) for move in self._game.moves()]

    def anchor(self) -> Hashable:
        game = self._game
        return (self.task.id, game.actor, game.phase, digest(game.events_of(game.actor)))

    def expert(self) -> str:
        """The scripted move of the seat that acts."""
        return self._game.text(scripted_move(self._game, self._key))

    def measures(self) -> Mapping[str, float]:
        """Earnings of the werewolf and of the others, and the days that were played."""
        won = self._game.winner
        return {
            "werewolf_wins": float(won == WEREWOLF),
            "villagers_win": float(won == VILLAGER),
            "days": float(self._game.day),
        }

    def save(self) -> bytes:
        return json.dumps(self._game.plain()).encode()

    def load(self, data: bytes) -> None:
        self._game = Game.from_plain(json.loads(data))


def _title(game: Game) -> str:
    kind = game.kind_of(game.actor)
    return f"{'a' if kind == VILLAGER else 'the'} {kind}"


def _shuffled(items: Sequence[str], draws: Draws) -> list[str]:
    left = list(items)
    return [left.pop(draws.below(len(left))) for _ in items]


def _game_of(params: Mapping[str, Sequence[str]]) -> Game:
    roles = params["roles"]
    return Game(list(params["names"]), roles.index(WEREWOLF), roles.index(SEER))


def _scripted_winner(params: Mapping[str, Sequence[str]]) -> str | None:
    game, key = _game_of(params), digest(params)
    while game.winner is None:
        move = scripted_move(game, key)
        game.play(move, game.text(move))
    return game.winner
