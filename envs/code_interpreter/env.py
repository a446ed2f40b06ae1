"""Computing with an interpreter as an environment."""

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.code_interpreter.session import SECONDS, Session
from manyturn.envs.code_interpreter.tasks import LEVELS, SIZES, answer, cells, question, tasks
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.container_engine_check import usable
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool import ToolError
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Toolset

INSTRUCTIONS = (
    "Compute the number that the task asks for; a % b is the remainder of a divided by b. You have a Python "
    "interpreter without a network; print what you want to see. Definitions persist between cells, as in a "
    "notebook. Earlier cells run again before each new one, with their output hidden, so seed random generators. "
    f"A cell that raises or is stopped is undone. All cells share {SECONDS} seconds. Then answer with the number; "
    "you have one answer."
)
_NUMBER = re.compile(r"\d{1,18}")
_WHOLE = re.compile(r"[+-]?\d{1,40}")
_LISTED = 12  # numbers that a random policy may answer with


class Code(TextEnv):
    """Compute a number that is too laborious to get by hand, with a Python interpreter that persists.

    Task:
        One to three things to compute, each from the result before: number theory, sequences, simulations, texts and
        tables. The tool is that of ToRL (Li et al. 2025, arXiv 2503.23383), over tasks of its own.
    Observation:
        What the last cell printed.
    Actions:
        The tools ``python`` (a cell) and ``answer`` (the number), one JSON call each turn. Cells run in a sandbox;
        ``session.py`` says how the interpreter persists.
    Reward:
        1 if the answer is exactly right, and nothing else.
    End:
        The answer ends the episode; there is one.
    Splits:
        train, validation, test, and ``test_unseen``, whose kinds of tasks occur nowhere else. Nothing is asked for with
        the same parameters in two splits.
    Expert:
        Computes one thing after the other, a cell for each, and answers with what the last one showed.
    Floors:
        The expert succeeds always (96 episodes), random admissible actions in none of 320, doing nothing never. The
        most frequent number of a split answers about 1 % of its tasks.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: ``easy`` (one thing to compute), ``medium`` (two, the second from the first's result) or ``hard``
            (three).
        engine: what sandboxes are made with: arguments of ``container_engine.ContainerEngine``, such as ``image``.
        max_turns: default 8.

    Raises:
        NeedsSetup: there is no container engine or no image.
    """

    max_turns = 8
    waits_outside = True
    splits = tuple(SIZES)
    levels = LEVELS
    part_names = ()

    def __init__(
        self,
        split: str = "train",
        difficulty: str = "easy",
        engine: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
    ):
        super().__init__(split, max_turns, difficulty)
        self._engine = usable(engine, "code cells")
        self._work = Work(Session(self._engine))
        self.tools = self._work.tools.schemas
        self.instructions = with_tools(INSTRUCTIONS, self.tools)

    def tasks(self, split: str) -> Sequence[Task]:
        assert self.difficulty is not None
        return tasks(split, self.difficulty)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._work = Work(Session(self._engine))
        return question(task.params)

    def respond(self, action: str) -> Turn:
        answered = self._work.tools.answer(action)
        if self._work.given is None:
            return answered.turn(self)
        right = self._work.given == answer(self.task.params)
        return self.succeed("The answer is right.") if right else self.fail("The answer is wrong.")

    def admissible(self) -> list[str]:
        """A cell that shows a number, and answers with the numbers that were seen last."""
        numbers = list(dict.fromkeys(_NUMBER.findall(self.observation)))[:_LISTED]
        calls = [call_text("python", code=f"print({number} + 1)") for number in numbers[:3]]
        return [call_text("python", code="print(1 + 1)"), *calls, *(call_text("answer", value=n) for n in numbers)]

    def anchor(self) -> Hashable:
        return (self.task.id, digest(self._work.session.cells), self.observation)

    def expert(self) -> str:
        """Computes one thing after the other, a cell for each, and answers with what the last one showed."""
        steps, done = cells(self.task.params), self._work.session.cells
        left = next((step for step in steps if step not in done), None)
        if left is not None:
            return call_text("python", code=left)
        if done[-1] != steps[-1]:  # something else was computed meanwhile
            show = steps[-1].rpartition("\n")[2]
            if done[-1] != show:
                return call_text("python", code=show)
        return call_text("answer", value=self._work.shown)

    def answer(self) -> str:
        return call_text("answer", value=str(answer(self.task.params)))

    def save(self) -> bytes:
        work = self._work
        return json.dumps({"cells": work.session.cells, "shown": work.shown, "given": work.given}).encode()

    def load(self, data: bytes) -> None:
        state, self._work = json.loads(data), Work(Session(self._engine))
        self._work.session.cells = state["cells"]
        self._work.shown, self._work.given = state["shown"], state["given"]


class Work:
    """The tools of one episode, and what has come of them.

    Args:
        session: of its interpreter.

    Attributes:
        tools: python and answer.
        shown: the output of the last cell that was kept.
        given: the answer; None before.
    """

    def __init__(self, session: Session):
        self.session = session
        self.shown = ""
        self.given: int | None = None
        self.tools = Toolset([self.python, self.answer], most_calls=1)

    def python(self, code: str) -> str:
        """Run a cell of Python; you see what it prints.

        Args:
            code: of the cell, at most 20,000 characters.
        """
        shown = self.session.run(code)
        if shown.completed:
            self.shown = shown.text
        return shown.text

    def answer(self, value: int | str) -> str:
        """Answer; this ends the work.

        Args:
            value: a whole number.
        """
        text = str(value).strip()
        if not _WHOLE.fullmatch(text):
            raise ToolError(f"{text!r:.80} is not an integer: answer with digits only")
        self.given = int(text)
        return ""
