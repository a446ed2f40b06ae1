"""Tool calls of the protocol, ``tools`` and ``tool_calls``, next to the text of a call that environments read.

One reply is one action and one turn, however many calls it makes; the environment runs them in order. Its answer is one
text. Where that has a line for each call, each result is its line; else it is the result of the last call, and the
others' say so.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from manyturn.agents.play.endpoint.completion import NativeCall
from manyturn.agents.text.reply_format import Parsed
from manyturn.envs.tools.calls import BadCall, CallRequest, calls_text, read_calls

_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_TOGETHER = "(the result of the last call answers this one too)"


def action_of(calls: Sequence[NativeCall]) -> Parsed:
    """The action that calls mean: the text of a call, or a list of several.

    A call that cannot be read is the only action, so that the environment answers its fault and runs none.

    >>> action_of([NativeCall("1", "look", '{"at": "door"}')])
    Parsed(action='{"name": "look", "arguments": {"at": "door"}}', format_valid=True)
    """
    read: list[CallRequest] = []
    for call in calls:
        text = _text(call)
        try:
            read += read_calls(text, 1)
        except BadCall:
            return Parsed(text, format_valid=False)
    return Parsed(calls_text(read), format_valid=True)


def reply_text(text: str, calls: Sequence[NativeCall]) -> str:
    """A reply as those read it who look at an episode."""
    blocks = [f"<tool_call>\n{_text(call)}\n</tool_call>" for call in calls]
    return "\n".join(part for part in (text.strip() if blocks else text, *blocks) if part)


def with_ids(calls: Sequence[NativeCall], first: int) -> tuple[NativeCall, ...]:
    """The calls, each with an id that no other call of the conversation has.

    Args:
        first: number of the conversation's calls before these.
    """
    ids = [call.id for call in calls]
    sound = len(set(ids)) == len(ids) and all(_ID.fullmatch(identity) for identity in ids)
    # nine letters and digits, which the strictest servers ask for
    return tuple(calls) if sound else tuple(call._replace(id=f"call{first + n:05}") for n, call in enumerate(calls))


def said_again(calls: Sequence[NativeCall]) -> list[dict[str, Any]]:
    """Calls in the next request; servers refuse names and arguments that are none, so those are made harmless."""
    plain = []
    for call in calls:
        try:
            arguments = call.arguments if read_calls(_text(call), 1) else ""
        except BadCall:
            arguments = "{}"
        function = {"name": _NAME.sub("_", call.name)[:64] or "unknown", "arguments": arguments}
        plain.append({"id": call.id, "type": "function", "function": function})
    return plain


def results(calls: Sequence[NativeCall], observation: str) -> list[dict[str, Any]]:
    """The environment's answer as messages, one for each call."""
    lines = observation.split("\n")
    if len(calls) == 1:
        lines = [observation]
    elif len(lines) != len(calls):
        lines = [*[_TOGETHER] * (len(calls) - 1), observation]
    return [{"role": "tool", "tool_call_id": call.id, "content": line} for call, line in zip(calls, lines, strict=True)]


def _text(call: NativeCall) -> str:
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {call.arguments}}}'
