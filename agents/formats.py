"""Reply formats: how a reply's text says which action is meant."""

import json
import re
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from manyturn.envs.contract.options import Options
from manyturn.envs.tools.calls import is_call


class Parsed(NamedTuple):
    """The action that a reply means; ``valid`` is False if the reply broke the format."""

    action: str
    valid: bool


class FreeText(Options):
    """The whole reply is the action."""

    name: Literal["free_text"] = "free_text"

    def hint(self) -> str:
        """What the agent is told about the format."""
        return ""

    def parse(self, text: str) -> Parsed:
        action = text.strip()
        return Parsed(action, bool(action))

    def render(self, action: str) -> str:
        """The reply that means an action."""
        return action


class Tagged(Options):
    """The action stands between tags: ``<action>go north</action>``; the last such pair counts.

    A reply without a closed pair is passed on whole, so that the environment answers it like any nonsense.
    """

    name: Literal["tagged"] = "tagged"
    tag: str = Field(default="action", pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    """Name of the tag."""
    think: bool = False
    """Ask for reasoning between <think> tags first."""

    def hint(self) -> str:
        first = "Think first, between <think> and </think>. Then give" if self.think else "Answer with"
        return f"{first} exactly one action, between <{self.tag}> and </{self.tag}>."

    def parse(self, text: str) -> Parsed:
        # The last opening tag before the last closing one: a quoted or unclosed earlier tag must not swallow the rest.
        head, close, _ = text.rpartition(f"</{self.tag}>")
        _, opening, action = head.rpartition(f"<{self.tag}>")
        action = re.sub(r"\s+", " ", action).strip()
        if close and opening and action:
            return Parsed(action, True)
        return Parsed(text.strip(), False)

    def render(self, action: str) -> str:
        return f"<{self.tag}>{action}</{self.tag}>"


class ToolCall(Options):
    """Tool calls stand between tags, ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``; the rest is speech.

    As in the Hermes and Qwen conventions: several blocks are several calls, reasoning between ``<think>`` tags is
    dropped, and so is what is said beside a call. A block that is not closed is passed on from its tag, so that an
    environment answers it like any broken call, and never takes it for speech.
    """

    name: Literal["tool_call"] = "tool_call"
    think: bool = False
    """Ask for reasoning between <think> tags first."""

    def hint(self) -> str:
        first = "Think first, between <think> and </think>. " if self.think else ""
        return (
            f'{first}Call a tool with <tool_call>{{"name": TOOL, "arguments": {{...}}}}</tool_call>; '
            "several such blocks are several calls. Without a call, what you write is said to the user."
        )

    def parse(self, text: str) -> Parsed:
        rest = _after_thoughts(text)
        calls = [block.strip() for block in _BLOCK.findall(rest)]
        if len(calls) != rest.count("<tool_call>") or len(calls) != rest.count("</tool_call>"):
            return Parsed(rest[max(0, rest.find("<tool_call>")) :].strip(), False)
        if calls:
            action = calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"
            return Parsed(action or text.strip(), bool(action))
        speech = _THOUGHTS.sub("", rest).strip()
        return Parsed(speech or text.strip(), bool(speech) and not is_call(speech))

    def render(self, action: str) -> str:
        if not is_call(action):
            return action
        try:
            found = json.loads(action)
        except (ValueError, RecursionError):
            return action
        calls = [json.dumps(call, ensure_ascii=False) for call in found] if isinstance(found, list) else [action]
        return "\n".join(f"<tool_call>\n{_TAG.sub(_escaped, call)}\n</tool_call>" for call in calls)


_BLOCK = re.compile(r"<tool_call>((?:(?!<tool_call>).)*?)</tool_call>", re.DOTALL)
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_TAG = re.compile(r"</?(?:tool_call|think)>")


def _escaped(tag: re.Match[str]) -> str:
    """A tag inside a JSON string, written so that it closes nothing."""
    return tag[0].replace("<", "\\u003c")


def _after_thoughts(text: str) -> str:
    """What follows the reasoning; a template may have opened it, so that the reply holds its end alone."""
    thoughts, closed, rest = text.partition("</think>")
    opened = thoughts.lstrip().startswith("<think>")
    if closed and (opened or "<tool_call>" not in thoughts):
        return rest
    return "" if opened else text


ReplyFormat = Annotated[FreeText | Tagged | ToolCall, Field(discriminator="name")]
