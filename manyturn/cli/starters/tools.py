from itertools import permutations, product
from typing import Literal, get_args

import manyturn as mt
from manyturn.envs.tools import ToolError, Toolset, call_text

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday"]
DAYS = get_args(Day)
HOURS = (9, 11, 14, 16)
DIARIES = product(permutations(DAYS, 2), (*HOURS, "full", "away"), (*HOURS, "full", "away"))
REQUESTS = sorted(({"days": days, "free": free} for days, *free in DIARIES), key=mt.digest)


class MyCalendar(mt.TextEnv):
    max_turns = 6

    def __init__(self, **settings):
        super().__init__(**settings)
        self.toolset = Toolset([self.show_day, self.book, self.decline], most_calls=1)
        self.tools = self.toolset.schemas
        self.instructions = self.toolset.instructions("Book a free hour on one of the days; decline if there is none.")

    def tasks(self, split):  # no request is in two splits
        chosen = {"train": REQUESTS[::2], "validation": REQUESTS[1::4], "test": REQUESTS[3::4]}[split]
        return [mt.Task(f"{split}/{i}", split, request) for i, request in enumerate(chosen)]

    def begin(self, task, rng):
        self.free = dict(zip(task.params["days"], task.params["free"], strict=True))
        self.seen, self.right = [], None
        return f"Meet on {' or '.join(self.free)}."

    def respond(self, action):
        # Reads the calls, checks and runs them, and never raises for what is said.
        answered = self.toolset.answer(action)
        if self.right is None or not answered.valid:
            return answered.turn(self)
        return self.succeed(answered.text) if self.right else self.fail(answered.text)

    def show_day(self, day: Day) -> str:
        """Show the diary of a day.

        Args:
            day: The day, in small letters.
        """
        if day not in self.free:
            raise ToolError(f"nobody can come on {day}")  # the agent reads it and goes on
        self.seen.append(day)
        return f"{day}: free at {self.free[day]}" if self.free[day] in HOURS else f"{day}: {self.free[day]}"

    def book(self, day: Day, hour: int) -> str:
        """Book the meeting.

        Args:
            day: The day, in small letters.
            hour: The hour at which it begins.
        """
        self.right = self.free.get(day) == hour
        return "It is booked." if self.right else "That hour is taken."

    def decline(self) -> str:
        """Decline the meeting."""
        self.right = not any(hour in HOURS for hour in self.free.values())
        return "It is declined."

    def admissible(self):  # what a random policy chooses from
        books = [call_text("book", day=day, hour=hour) for day in DAYS for hour in HOURS]
        return [*(call_text("show_day", day=day) for day in DAYS), *books, call_text("decline")]

    def expert(self):  # gives demonstrations, and an upper bound
        for day, hour in self.free.items():
            if day not in self.seen:
                return call_text("show_day", day=day)
            if hour in HOURS:
                return call_text("book", day=day, hour=hour)
        return call_text("decline")
