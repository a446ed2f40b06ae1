"""The column "tool_calls" (K): how many tools each turn calls, by which ``stratified`` can divide a group.

Counted are calls that can be read, whether or not a tool could do what it was asked for. ``tools`` names those that
count, such as the searches of Stratified GRPO, arXiv 2510.06214, without the call that gives the answer.
"""

from collections.abc import Collection
from typing import Any, Literal

import numpy as np

from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.tools.calls import BadCall, read_calls
from manyturn.envs.tools.tool_prompt import without_tools
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ToolCallsConfig(ColumnConfig):
    name: Literal["tool_calls"] = "tool_calls"
    tools: tuple[str, ...] = ()
    """Tools whose calls are counted; none named: every call that can be read."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if env is None:
            return None
        tools = tool_names(env.instructions)
        if not tools:
            return (
                f"counts calls of tools, and {env.name} tells agents of none (manyturn.envs.tools.tool_prompt): take "
                "an environment that has some, such as manyturn/Search-v0, or another stage"
            )
        missing = next((tool for tool in self.tools if tool not in tools), None)
        return None if missing is None else f"counts calls of an {unknown('tool', missing, tools)}"


@COLUMNS.register(ToolCallsConfig)
def tool_calls(step: PlayedStep, config: ToolCallsConfig) -> Supplied:
    """Of each turn, and the mean over episodes."""
    counts = [called(turn.action, config.tools) for episode in step.episodes for turn in episode.turns]
    figures = {"tool_calls": sum(counts) / len(step.episodes)}
    return Supplied(columns={"tool_calls": np.array(counts, np.float64)}, figures=figures)


def called(action: str, tools: Collection[str]) -> int:
    """The number of calls of these tools in an action; of any tool if none is named; 0 if it cannot be read.

    >>> two = '[{"name": "look", "arguments": {}}, {"name": "jump", "arguments": {}}]'
    >>> called(two, ()), called(two, ["look"]), called("look", ())
    (2, 1, 0)
    """
    try:
        return sum(not tools or call.name in tools for call in read_calls(action))
    except BadCall:
        return 0


def tool_names(instructions: str) -> list[str]:
    """The tools that instructions tell of.

    >>> from manyturn.envs.tools.tool_prompt import with_tools
    >>> tool_names(with_tools("Be kind.", [{"type": "function", "function": {"name": "look"}}]))
    ['look']
    """
    return [tool["function"]["name"] for tool in without_tools(instructions)[1]]
