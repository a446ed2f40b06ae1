"""A tau2-bench customer played by a language model: what it is told, how it leaves, and the tools it holds.

From a checkout of the benchmark it is told the official guidelines, else words of this project; its name says which,
because scores with the one are not those with the other.
"""

from collections.abc import Callable, Mapping, Sequence
from textwrap import indent
from typing import Any

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.tool import Schema
from manyturn.envs.users.endpoint.llm_client import ModelOptions
from manyturn.envs.users.llm_user import GREETING, ModelUser

MARKS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
OFFICIAL = ", official guidelines"

_PLAYS = (
    "You play a customer who writes to a company's agent. Stay in the role. Say one short thing at a time, in plain "
    "words. Tell what you know only when you are asked for it, and invent nothing."
)
_HANDS = (
    " Your phone is in your hands, and your tools are what you can look at and do with it. Use one when the agent asks "
    "you to do or to look at something, one thing at a time; then tell the agent in your own words what the tool "
    "answered, and nothing that it did not. The agent reads what you say and does not see your tools. If a call was "
    "wrong, mend it and call again."
)
_LEAVES = (
    " When you have what you want, or see that you cannot get it, write {stop} and nothing else; when the agent has "
    "told you that you are handed over to a person, write ###TRANSFER###; when your role does not say what you need to "
    "go on, write ###OUT-OF-SCOPE###."
)
_SCENARIO = "\n\n<scenario>\n{brief}\n</scenario>"
_HEADINGS = {
    "reason_for_call": "Reason for call",
    "known_info": "Known info",
    "unknown_info": "Unknown info",
    "task_instructions": "Task instructions",
}


def model_customer(
    options: ModelOptions, brief: Callable[[Task], str], guidelines: str, tools: Sequence[Schema]
) -> ModelUser:
    """A model in the customer's role.

    Args:
        brief: the scenario of a task, see ``scenario``.
        guidelines: the official ones; empty for those of this project.
        tools: schemas of the customer's own tools.
    """
    rules = guidelines.strip() or _PLAYS + (_HANDS if tools else "") + _LEAVES
    greeting = None if tools else GREETING
    user = ModelUser(brief, options, rules + _SCENARIO, greeting, tools, MARKS)
    user.name += OFFICIAL if guidelines else ""
    return user


def scenario(params: Mapping[str, Any]) -> str:
    """A task's scenario as the benchmark lays it out: headings, their texts one tab further in."""
    text = params["scenario"]
    if not isinstance(text, str):
        parts = [f"{title}:\n{indent(text[name], chr(9))}" for name, title in _HEADINGS.items() if text.get(name)]
        text = "\n".join([f"Domain: {text['domain']}", *parts] if text.get("domain") else parts)
    persona = f"Persona:\n{indent(params['persona'], chr(9))}\n" if params.get("persona") else ""
    return f"{persona}Instructions:\n{indent(text, chr(9))}"
