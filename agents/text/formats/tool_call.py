"""Actions as tool calls, and speech without one."""

import json
import re
from typing import Literal

from manyturn.agents.text.reply_format import FORMATS, Parsed, ReplyFormat
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.tools.calls import is_call

_THINKING = 512  # tokens of reasoning
_BLOCK = re.compile(r"<tool_call>((?:(?!<tool_call>).)*?)</tool_call>", re.DOTALL)
_TAG = re.compile(r"</?(?:tool_call|think)>")


class ToolCallConfig(Named):
    name: Literal["tool_call"] = "tool_call"
    think: bool = False
    """Ask for reasoning between <think> tags first."""


@FORMATS.register(ToolCallConfig)
class ToolCall(ReplyFormat):
    """Tool calls are between tags, ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``; the rest is speech.

    As in the Hermes and Qwen conventions: several blocks are several calls, and what is said next to a call is
    dropped. A block that is not closed is passed on from its tag, so that an
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
        calls = [block.strip() for block in _BLOCK.findall(text)]
        if len(calls) != text.count("<tool_call>") or len(calls) != text.count("</tool_call>"):
            return Parsed(text[max(0, text.find("<tool_call>")) :].strip(), format_valid=False)
        if calls:
            action = calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"
            return Parsed(action or text.strip(), bool(action))
        speech = text.strip()
        return Parsed(speech, bool(speech) and not is_call(speech))

    def render(self, action: str) -> str:
        if not is_call(action):
            return action
        try:
            parsed = json.loads(action)
        except (ValueError, RecursionError):
            return action
        calls = [json.dumps(call, ensure_ascii=False) for call in parsed] if isinstance(parsed, list) else [action]
        return "\n".join(f"<tool_call>\n{_TAG.sub(_escaped, call)}\n</tool_call>" for call in calls)


def _escaped(tag: re.Match[str]) -> str:
    """A tag inside a JSON string, written so that it closes nothing."""
    return tag[0].replace("<", "\\u003c")
