"""Actions as tool calls, and speech without one."""

import json
import re
from typing import Literal

from manyturn.agents.text.reply_format import FORMATS, Parsed, ReplyFormat
from manyturn.envs.contract.registry import Named
from manyturn.envs.tools.calls import is_call

_THINKING = 512  # tokens of reasoning
_BLOCK = re.compile(r"<tool_call>((?:(?!<tool_call>).)*?)</tool_call>", re.DOTALL)
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_TAG = re.compile(r"</?(?:tool_call|think)>")


class ToolCallConfig(Named):
    name: Literal["tool_call"] = "tool_call"
    think: bool = False
    """Ask for reasoning between <think> tags first."""


@FORMATS.register(ToolCallConfig)
class ToolCall(ReplyFormat):
    """Tool calls are between tags, ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``; the rest is speech.

    As in the Hermes and Qwen conventions: several blocks are several calls, reasoning between ``<think>`` tags is
    dropped, and so is what is said next to a call. A block that is not closed is passed on from its tag, so that an
    environment answers it like any broken call, and never takes it for speech.
    """

    def __init__(self, config: ToolCallConfig):
        self.thinks = config.think

    def hint(self) -> str:
        first = "Think first, between <think> and </think>. " if self.thinks else ""
        return (
            f'{first}To call a tool, write <tool_call>{{"name": TOOL, "arguments": {{...}}}}</tool_call>; '
            "write one block per call. Text without a call goes to the user."
        )

    def reply_tokens(self, *, tools: bool) -> int:
        return super().reply_tokens(tools=True) + (_THINKING if self.thinks else 0)

    def parse(self, text: str) -> Parsed:
        rest = _after_thoughts(text)
        calls = [block.strip() for block in _BLOCK.findall(rest)]
        if len(calls) != rest.count("<tool_call>") or len(calls) != rest.count("</tool_call>"):
            return Parsed(rest[max(0, rest.find("<tool_call>")) :].strip(), format_valid=False)
        if calls:
            action = calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"
            return Parsed(action or text.strip(), bool(action))
        speech = spoken(text)
        return Parsed(speech or text.strip(), bool(speech) and not is_call(speech))

    def render(self, action: str) -> str:
        if not is_call(action):
            return action
        try:
            parsed = json.loads(action)
        except (ValueError, RecursionError):
            return action
        calls = [json.dumps(call, ensure_ascii=False) for call in parsed] if isinstance(parsed, list) else [action]
        return "\n".join(f"<tool_call>\n{_TAG.sub(_escaped, call)}\n</tool_call>" for call in calls)


def spoken(text: str) -> str:
    """The speech of a reply, without its reasoning."""
    return _THOUGHTS.sub("", _after_thoughts(text)).strip()


def _escaped(tag: re.Match[str]) -> str:
    """A tag inside a JSON string, written so that it closes nothing."""
    return tag[0].replace("<", "\\u003c")


def _after_thoughts(text: str) -> str:
    """The text after the reasoning; a template may have opened it, so that the reply holds only its end."""
    thoughts, closed, rest = text.partition("</think>")
    opened = thoughts.lstrip().startswith("<think>")
    if closed and (opened or "<tool_call>" not in thoughts):
        return rest
    return "" if opened else text
