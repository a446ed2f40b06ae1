"""A game of TextArena's: Tower of Hanoi from every position of four disks."""

from itertools import product

import textarena

import manyturn as mt
from manyturn.envs.contract.random_keys import digest

POLES, DISKS = "ABC", 4
GOAL = ("C",) * DISKS
STARTS = sorted((where for where in product(POLES, repeat=DISKS) if where != GOAL), key=digest)


def moves(where):
    """What can be done, and the position that it leads to: the pole of each disk, the smallest first."""
    tops = {pole: where.index(pole) for pole in POLES if pole in where}
    for pole, disk in tops.items():
        for other in POLES:
            if other != pole and tops.get(other, DISKS) > disk:
                yield f"[{pole} {other}]", (*where[:disk], other, *where[disk + 1 :])


DISTANCE = {GOAL: 0}
for near in (waiting := [GOAL]):
    for _, far in moves(near):  # every move can be taken back
        if far not in DISTANCE:
            DISTANCE[far] = DISTANCE[near] + 1
            waiting.append(far)


class Hanoi(mt.TextEnv):
    max_turns = 20

    def tasks(self, split):
        starts = {"train": STARTS[::2], "validation": STARTS[1::4], "test": STARTS[3::4]}[split]
        return [mt.Task(f"{split}/{i}", split, {"where": list(where)}) for i, where in enumerate(starts)]

    def begin(self, task, rng):
        self.game = textarena.make("TowerOfHanoi-v0-raw", num_disks=DISKS, max_turns=100)
        self.game.reset(num_players=1, seed=0)
        self.where = tuple(task.params["where"])
        self.game.state.game_state["towers"] = {
            pole: [disk + 1 for disk in reversed(range(DISKS)) if self.where[disk] == pole] for pole in POLES
        }
        rules, _ = self.read()  # the board that comes with them is the game's own start
        return f"{rules}\n{self.game.get_board_str()}"

    def read(self):
        _, messages = self.game.get_observation()
        return messages[0][1], messages[-1][1]

    def respond(self, action):
        known = dict(moves(self.where))
        if action not in known:
            return self.invalid("There is no such move.")
        self.where = known[action]
        over, _ = self.game.step(action)
        _, last = self.read()
        return self.succeed(last) if over else self.go_on(last)

    def admissible(self):
        return [action for action, _ in moves(self.where)]

    def anchor(self):
        return (self.task.id, self.where)

    def expert(self):
        return min(moves(self.where), key=lambda move: DISTANCE[move[1]])[0]
