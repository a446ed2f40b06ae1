"""Environments written with openreward's own classes, behind its own server: ``python openreward_worlds.py PORT``."""

import sys

import uvicorn
from openreward.environments import (  # pyright: ignore[reportMissingImports]
    Environment,
    Server,
    Split,
    TextBlock,
    ToolOutput,
    terminal,
    tool,
)
from pydantic import BaseModel


class Number(BaseModel):
    number: int


class Words(BaseModel):
    text: str


class Guessing(Environment):
    """Find a number; words end the episode, and 99 raises."""

    def get_prompt(self):
        return [TextBlock(text=f"Guess from 0 to {self.task_spec['most']}.")]

    @classmethod
    def list_splits(cls):
        return [Split(name="train", type="train"), Split(name="hard", type="test")]

    @classmethod
    def list_tasks(cls, split):
        most, count = (10, 70) if split == "train" else (20, 2)
        return [{"most": most, "number": n % most, "place": n} for n in range(count)]

    @tool
    async def guess(self, args: Number) -> ToolOutput:
        """Guess the number."""
        if args.number == 99:
            raise RuntimeError("broken on purpose")
        over = args.number == self.task_spec["number"]
        blocks = [TextBlock(text="Yes." if over else "x" + " " * 9000 + "No.")]
        return ToolOutput(blocks=blocks, reward=1.0 if over else -0.125, finished=over)


class Speaking(Guessing):
    """The same; what is said to end it is worth something."""

    @terminal
    @tool
    def say(self, args: Words) -> ToolOutput:
        """Give up in words."""
        return ToolOutput(blocks=[TextBlock(text="Over.")], reward=len(args.text) / 8, finished=True)


if __name__ == "__main__":
    uvicorn.run(Server([Guessing, Speaking]).app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
