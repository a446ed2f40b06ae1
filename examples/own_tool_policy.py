"""A policy of your own that calls tools: it reads what they answer, and is compared with the random one.

    python examples/own_tool_policy.py

The world is the one that ``manyturn new-env my_calendar --kind tools`` writes: find a free hour and book it. Its tools
are typed methods; the environment's ``instructions`` and ``tools`` describe them to a language model.
"""

import re
from importlib.resources import files

import manyturn as mt
from manyturn.envs.tools import call_text

WORLD = f"{files('manyturn.cli.starters') / 'tools.py'}:MyCalendar"


class Secretary:
    """Looks at each day that may be, books the first free hour, and declines where there is none.

    An object plays one episode, so that ``self`` is its memory.
    """

    def __init__(self):
        self.days: list[str] = []

    def act(self, observation: str, info: dict) -> str:
        if offer := re.fullmatch(r"Meet on (\w+) or (\w+)\.", observation):
            self.days = list(offer.groups())
        if free := re.search(r"(\w+): free at (\d+)", observation):
            return call_text("book", day=free[1], hour=int(free[2]))
        return call_text("show_day", day=self.days.pop(0)) if self.days else call_text("decline")


def main(limit: int = 40, out: str = "runs/tools") -> dict:
    mt.evaluate("random", WORLD, limit=limit, out=f"{out}/random")
    mt.evaluate(Secretary, WORLD, limit=limit, out=f"{out}/secretary").show()
    result = mt.compare(f"{out}/random", f"{out}/secretary")
    result.show()
    return result


if __name__ == "__main__":
    main()
