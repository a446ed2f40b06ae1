"""The text of a tool call: one JSON object ``{"name": ..., "arguments": {...}}``, or a list of several.

What a model writes is hostile, so reading is strict and bounded: no repeated keys, no NaN or infinity, whole numbers of
64 bits, 32 levels of nesting, and limits on length and number.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

DEEPEST = 32
LONGEST = 100_000
_BIGGEST = 2**63
_SHAPE = '{"name": TOOL, "arguments": {...}}'
_KEYS = {"name", "arguments"}
_START = re.compile(r"\s*(?:<tool_call>|\{|\[\s*(?:\{|\]))")
# An unclosed string reaches to the end, so that no text takes more than one pass.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)


class BadCall(ValueError):
    """The text is no tool call; what it says names the fix."""


class CallRequest(NamedTuple):
    """A call as it was asked for, before anybody looked whether there is such a tool."""

    name: str
    arguments: dict[str, Any]


def is_call(action: str) -> bool:
    """True if an action is meant as a tool call, well or badly written; anything else is speech.

    A tag at its beginning is what a reply format leaves of a call that was never closed.

    >>> is_call('{"name": "look", "arguments": {}}'), is_call('[{"name": '), is_call("[sighs] Sorry!")
    (True, True, False)
    """
    return _START.match(action) is not None


def call_text(name: str, /, **arguments: Any) -> str:
    """The canonical text of one call.

    >>> call_text("cancel_order", order_id="W7")
    '{"name": "cancel_order", "arguments": {"order_id": "W7"}}'
    """
    return _ENCODER.encode({"name": name, "arguments": arguments})


def calls_text(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """The canonical text of calls in one turn: an object for one, a list for several."""
    texts = [call_text(name, **arguments) for name, arguments in calls]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def read_calls(action: str, most: int = 16, longest: int = LONGEST) -> list[CallRequest]:
    """The calls that an action asks for, in order. Raises BadCall.

    Args:
        most: calls in one action.
        longest: characters of the action.
    """
    if len(action) > longest:
        raise BadCall(f"the call has {len(action):,} characters: write at most {longest:,}")
    if not is_call(action):
        raise BadCall(f"this is not a tool call: write {_SHAPE}")
    plain = _read(action)
    calls = plain if isinstance(plain, list) else [plain]
    if not 1 <= len(calls) <= most:
        raise BadCall(f"{len(calls)} calls in one turn: write 1 to {most}")
    return [_request(call) for call in calls]


def _read(text: str) -> Any:
    if text.count("{") + text.count("[") > DEEPEST and _depth(text) > DEEPEST:
        raise BadCall(f"the call is nested too deeply: use at most {DEEPEST} levels")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadCall(
            f"the call is not valid JSON ({error.msg} at character {error.pos + 1}): write {_SHAPE}"
        ) from None


def _depth(text: str) -> int:
    depth = deepest = 0
    for sign in re.findall(r"[][{}]", _STRING.sub("", text)):
        depth += 1 if sign in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _request(call: Any) -> CallRequest:
    if not isinstance(call, dict):
        raise BadCall(f"a call is a JSON object: write {_SHAPE}")
    if call.keys() != _KEYS:
        wrong = [f"leave out {key!r:.80}" for key in sorted(call.keys() - _KEYS)[:3]]
        wrong += [f"add {key!r}" for key in sorted(_KEYS - call.keys())]
        raise BadCall(f"a call is {_SHAPE}: {', '.join(wrong)}")
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise BadCall(f"a call is {_SHAPE}: the name is a string, and the arguments are an object")
    return CallRequest(name, arguments)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise BadCall(f"the key {twice!r:.80} appears twice: write each key once")
    return fields


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -_BIGGEST <= (number := int(digits)) < _BIGGEST:
        raise BadCall("an integer is too large: use at most 64 bits")
    return number


def _real(digits: str) -> float:
    number = float(digits)
    if abs(number) == float("inf"):
        raise BadCall("a number is too large: stay below 1.8e308")
    return number


def _constant(name: str) -> Any:
    raise BadCall(f"{name} is not a JSON number: write a finite number")


_ENCODER = json.JSONEncoder(ensure_ascii=False)
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant)
