"""A world in which knowledge carries from task to task: a fault has the same remedy at every machine.

Machines show the name of a fault, and one of six buttons clears it. Which one is written in no observation and in no
instruction: only a press shows it. Tasks of the two splits differ in machine and in wording. Of the held-out faults
``UNSEEN`` occur at no training task, so that experience of training tasks says nothing about them.
"""

from collections.abc import Sequence

import manyturn as mt

BUTTONS = ("red", "green", "blue", "white", "black", "yellow")
REMEDIES = {
    **{"kestrel": "white", "walnut": "red", "harbor": "yellow", "velvet": "blue", "pepper": "green"},
    **{"anchor": "black", "tulip": "red", "copper": "white", "marble": "green", "falcon": "yellow"},
    **{"ginger": "blue", "saddle": "black", "violin": "green", "lantern": "red", "cactus": "yellow"},
    **{"pillow": "white", "rocket": "blue", "beaver": "black", "magnet": "red", "turtle": "green"},
    **{"candle": "yellow", "basket": "blue", "helmet": "white", "ribbon": "black", "teapot": "red"},
}
UNSEEN = ("candle", "basket", "helmet", "ribbon", "teapot")
_SEEN = tuple(fault for fault in REMEDIES if fault not in UNSEEN)
_MACHINES = {"train": ("pump", "crane"), "validation": ("loom", "kiln", "mixer", "oven"), "test": ("drill", "lathe")}
_FAULTS = {"train": _SEEN, "validation": tuple(REMEDIES), "test": tuple(REMEDIES)}


def _tag(fault: str) -> str:
    """Tag of the tasks with a fault, by which summaries tell them apart."""
    return "fault of no training task" if fault in UNSEEN else "fault of training tasks"


class Machines(mt.TextEnv):
    """A machine with a fault, and two presses to clear it."""

    instructions = "A machine has a fault. Press the button that clears it."
    max_turns = 2

    def tasks(self, split: str) -> list[mt.Task]:
        return [
            mt.Task(f"{split}/{fault}/{machine}", split, {"fault": fault, "machine": machine}, tags=(_tag(fault),))
            for machine in _MACHINES[split]
            for fault in _FAULTS[split]
        ]

    def begin(self, task: mt.Task, rng: object) -> str:
        fault, machine = task.params["fault"], task.params["machine"]
        return f"The {machine} shows fault {fault}." if task.split == "train" else f"Fault {fault} at the {machine}."

    def respond(self, action: str):
        if action == self.expert():
            return self.succeed("The fault is cleared.")
        return self.go_on("The fault is still there.")

    def admissible(self) -> Sequence[str]:
        return [f"press {button}" for button in BUTTONS]

    def expert(self) -> str:
        return f"press {REMEDIES[self.task.params['fault']]}"
