"""A world of a few words in which every method has what it asks for, and a policy of a second's warm-up is half good.

The first observation says in which order lamps want to be lit. A wrong colour costs a little, what is no colour means
nothing, and both leave everything as it was: situations come again, within an episode and across its group.
"""

from itertools import product

import manyturn as mt
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool_prompt import with_tools

COLOURS = ("red", "blue", "green")
NUMBERS = ("0.1", "0.5", "0.9")
KINDS = {"short": 1, "long": 2}
WAITING = ("the lamp by the door waits", "the lamp on the shelf waits")


class Lamps(mt.TextEnv):
    """Lamps.

    Args:
        counted: each observation says how many replies there were, so that none comes twice.
        copies: how often each order is a task of its own.
        unscored: an episode that succeeds at its first turn cannot be scored.
        limit: most turns.
        calls: the colours are tools, which are called by JSON.
        numbers: lamps are lit by numbers, which can be read as confidences.
    """

    instructions = "light the lamps in order"
    part_names = ("outcome", "step")

    def __init__(self, counted=False, copies=3, unscored=False, limit=5, calls=False, numbers=False):
        super().__init__()
        self.counted, self.copies, self.unscored, self.max_turns, self.calls = counted, copies, unscored, limit, calls
        self.colours = NUMBERS if numbers else COLOURS
        if calls:
            tools = [{"type": "function", "function": {"name": colour}} for colour in COLOURS]
            self.tools, self.instructions = tools, with_tools(self.instructions, tools)

    def tasks(self, split):
        orders = [(kind, order) for kind, lamps in KINDS.items() for order in product(self.colours, repeat=lamps)]
        copies = self.copies if split == "train" else 1
        return [
            mt.Task(f"{split}/{copy}/{n}", split, {"order": order, "copy": (split, copy)}, difficulty=kind)
            for copy in range(copies)
            for n, (kind, order) in enumerate(orders)
        ]

    def begin(self, task, rng):
        self.lit, self.said = 0, 0
        return f"{' '.join(task.params['order'])} {self._seen()}"

    def respond(self, action):
        self.said += 1
        if action not in self.admissible():
            return self.invalid(self._seen())
        if action != self.expert():
            return self.go_on(self._seen(), step=-0.05)
        self.lit += 1
        if self.progress() < 1:
            return self.go_on(self._seen(), step=0.1)
        return self.succeed("all lit", outcome=float("nan") if self.unscored and self.said == 1 else 1.0, step=0.1)

    def admissible(self):
        return [self._action(colour) for colour in self.colours]

    def progress(self):
        return self.lit / len(self.task.params["order"])

    def answer(self):
        return self.task.params["order"][-1]

    def expert(self):
        return self._action(self.task.params["order"][self.lit])

    def _action(self, colour):
        return call_text(colour) if self.calls else colour

    def _seen(self):
        return WAITING[self.lit] + (f" {self.said}" if self.counted else "")
