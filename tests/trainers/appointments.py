"""A calendar with three tools, called by JSON: look at a day, then book the free hour for whoever asks."""

from itertools import product

import manyturn as mt
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool import ToolError
from manyturn.envs.tools.tool_prompt import told
from manyturn.envs.tools.toolset import Toolset

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday")
HOURS = (9, 10, 11, 14, 15, 16)
NAMES = ("Ada", "Grace", "Alan", "Barbara", "Edsger", "Donald")


class Calendar(mt.TextEnv):
    max_turns = 4

    def __init__(self, **options):
        super().__init__(**options)
        self._tools = Toolset([self.show_day, self.book, self.cancel], most_calls=1)
        self.tools = self._tools.schemas
        self.instructions = told("Book the free hour of the day for whoever asks.", self.tools)

    def tasks(self, split):
        share = {"train": range(8), "validation": [8], "test": [9]}[split]
        cases = enumerate(product(DAYS, HOURS, NAMES))
        return [
            mt.Task(f"{split}/{i}", split, {"day": day, "free": hour, "name": name})
            for i, (day, hour, name) in cases
            if (7 * i + i // 10) % 10 in share
        ]

    def begin(self, task, rng):
        self._shown, self._booked = False, None
        return f"{task.params['name']} asks for an hour on {task.params['day']}."

    def show_day(self, day: str) -> str:
        """Show the free hours of a day.

        Args:
            day: such as monday.
        """
        if day != self.task.params["day"]:
            return "No hour is free."
        self._shown = True
        return f"Free: {self.task.params['free']}."

    def book(self, day: str, hour: int, name: str) -> str:
        """Book an hour.

        Args:
            day: such as monday.
            hour: from 9 to 16.
            name: for whom.
        """
        params = self.task.params
        if (day, hour) != (params["day"], params["free"]):
            raise ToolError("that hour is taken")
        self._booked = name
        return "Booked."

    def cancel(self, day: str, hour: int) -> str:
        """Cancel an appointment.

        Args:
            day: such as monday.
            hour: from 9 to 16.
        """
        raise ToolError("there is no such appointment")

    def respond(self, action):
        answered = self._tools.answer(action)
        if self._booked is not None:
            right = self._booked == self.task.params["name"]
            return self.succeed(answered.text) if right else self.fail(answered.text)
        return answered.turn(self, **({"looked": 0.1} if answered.valid else {}))

    def admissible(self):
        days = [call_text("show_day", day=day) for day in DAYS]
        hours = [call_text("book", day=self.task.params["day"], hour=h, name=n) for h in HOURS for n in NAMES]
        return days + hours + [call_text("cancel", day=day, hour=9) for day in DAYS]

    def expert(self):
        params = self.task.params
        if not self._shown:
            return call_text("show_day", day=params["day"])
        return call_text("book", day=params["day"], hour=params["free"], name=params["name"])
