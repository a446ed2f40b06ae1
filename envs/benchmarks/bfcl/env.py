"""BFCL v4 multi-turn as an environment."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from manyturn.envs.benchmarks.bfcl.package_data import KINDS, entries, schemas
from manyturn.envs.benchmarks.bfcl.world import GoldCall, World, all_among, gold_call
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.calls import calls_text, is_call
from manyturn.envs.tools.tool import Schema, Tool
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Toolset

MOST_STEPS = 20  # actions with calls after one message of the user
MOST_CALLS = 64  # in one action
MORE_FUNCTIONS = "There are more functions now that you can call. Please try again."


class BFCL(TextEnv):
    """The multi-turn tasks of the Berkeley Function-Calling Leaderboard, version 4 (Patil et al. 2025).

    Task:
        A user says a fixed number of fixed messages, each of which asks for function calls.
    Observation:
        The user's message, or the results of calls. The first one lists the functions; those held back in ``miss_func``
        are listed when they are added. ``progress`` is the share of messages answered well.
    Actions:
        JSON calls, one or a list. Text ends the agent's work on the message. As in the original, a call of a function
        that is held back is carried out.
    Reward:
        1 if every message was answered well, and nothing else.
    End:
        After each message, every interface must be in the reference solution's state and the calls so far must have
        given its results. The episode fails at the first message where that is not so, or after more than 20 actions
        with calls. Where the reference calls nothing, nothing is checked until the next message. A call that cannot be
        read counts as one of the 20; in the original it ends the agent's work on the message.
    Splits:
        test, the only one.
    Expert:
        Makes the reference solution's calls.
    Floors:
        An agent that calls nothing succeeds in no task. ``manyturn evaluate expert --env manyturn/BFCL-v0`` measures
        the expert.

    Args:
        split: ``test``, the only one.
        kind: ``base``, ``miss_func`` (a function is held back for a while), ``miss_param`` (a value is missing for a
            while) or ``long_context`` (results are long).
        max_turns: default 200.
    """

    instructions = (
        "A user makes several requests, one after another. Fulfil them by calling functions: answer only with "
        '{"name": FUNCTION, "arguments": {...}}, or a list of several calls. When a request is done, or cannot be '
        "done, write a text to the user instead; then the user makes the next request."
    )
    harmless = (*TextEnv.harmless, "kind")
    max_turns = 200
    splits = ("test",)
    part_names = ()

    def __init__(self, split: str = "test", kind: str = "base", max_turns: int | None = None):
        if kind not in KINDS:
            raise ValueError(f"no kind {kind!r}: choose {', '.join(KINDS)}")
        super().__init__(split, max_turns)
        self.kind = kind
        self._entries = {one["id"]: one for one in entries(kind)}
        self._tasks = tuple(Task(f"test/{name}", "test", dict(one)) for name, one in self._entries.items())

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks

    # ---- the episode ----------------------------------------------------------------------------------------

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        entry, long = task.params, self.kind == "long_context"
        self._world, self._gold_world = World(entry, long), World(entry, long)
        self._gold = [[gold_call(text) for text in turn] for turn in entry["ground_truth"]]
        self._results: list[str] = []
        self._message, self._steps, self._called = 0, 0, False
        held_back = {name for names in entry.get("missed_function", {}).values() for name in names}
        offered = [one for name in entry["involved_classes"] for one in schemas(name)]
        self._schemas = {one["function"]["name"]: one for one in offered}
        self._toolset = Toolset(map(self._tool, offered), most_calls=MOST_CALLS)
        return with_tools(self._message_text(), [one for name, one in self._schemas.items() if name not in held_back])

    def _tool(self, schema: Schema) -> Tool:
        name = schema["function"]["name"]
        return Tool(schema, lambda arguments: self._run(name, arguments))

    def _run(self, name: str, arguments: dict[str, Any]) -> str:
        result = self._world.call(name, **arguments)
        self._results.append(result)
        self._called = True
        return result

    def _message_text(self) -> str:
        """The user's message."""
        return "\n".join(one["content"] for one in self.task.params["question"][self._message]) or MORE_FUNCTIONS

    def respond(self, action: str) -> Turn:
        if not is_call(action) or action.split() == ["[]"]:
            return self._answered()
        self._steps += 1
        answered = self._toolset.answer(action)
        if self._steps > MOST_STEPS:
            return self.fail(f"{answered.text}\nToo many steps.")
        return answered.turn(self)

    def _answered(self) -> Turn:
        """The agent has said that it is done with the message."""
        if not self._stands():
            return self.fail("This is not what the user asked for.")
        self._message += 1
        self._steps, self._called = 0, False
        if self._message == len(self._gold):
            return self.succeed("Thank you, that was all.")
        added = self.task.params.get("missed_function", {}).get(str(self._message), ())
        return self.go_on(with_tools(self._message_text(), [self._schemas[name] for name in added]))

    def _stands(self) -> bool:
        """The original's check after a message."""
        gold = self._gold[self._message]
        expected = [self._gold_world.do(call) for call in gold]
        if not gold:
            return True
        return self._called and self._world.same(self._gold_world) and all_among(expected, self._results)

    # ---- what trainers see ----------------------------------------------------------------------------------

    def progress(self) -> float:
        """The share of messages that were answered well."""
        return self._message / len(self._gold)

    def anchor(self) -> Hashable:
        return self.task.id, self._message, tuple(self._results), self.observation

    def expert(self) -> str:
        gold: list[GoldCall] = self._gold[self._message]
        if gold and not self._called:
            return calls_text((call.name, self._world.arguments(call)) for call in gold)
        return "Done." if gold else "I cannot do that with what I have."
