"""Refusals of an endpoint: the meaning of a status other than 200, and the fix."""

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any

from manyturn.envs.users.endpoint.protocols.protocol import EndpointProtocol
from manyturn.envs.users.endpoint.protocols.service import EndpointService

_TRY_AGAIN = frozenset({408, 409, 425, 429})  # and everything from 500
_NO_CREDIT = "insufficient_quota"
_RESERVED = re.compile(r"max(?:_completion)?_tokens\W.*?too large", re.DOTALL)
_TOO_LONG = (
    "context_length_exceeded",
    "maximum context length",
    "maximum model length",
    "context window",
    "available context size",
    "prompt is too long",
    "input is too long",
    "exceed context limit",
)
_OTHER_FIELD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_WAYS_OUT = {
    "temperature": "--sampling.temperature none leaves it out",
    "top_p": "leave out --sampling.top-p",
    "stop": "leave out --sampling.stop",
    "seed": "--sampling.seed false leaves it out",
    "tools": "--agent.format tool_call writes calls as text",
    "stop_sequences": "leave out --sampling.stop",
    "stream": "--endpoint.stream false leaves it out",
    "stream_options": "--endpoint.stream false leaves it out",
}
_ALSO_SAID = {"tools": r"tools?\b|tool[_ -]", "stop": r"['\"`]stop['\"`]"}
_STREAM_ONLY = re.compile(r"stream", re.IGNORECASE)
_SHORTER = "--sampling.max-tokens asks for shorter replies"


def may_pass(status: int, raw: bytes) -> bool:
    """True if the same request may succeed later."""
    if status == 429 and _NO_CREDIT.encode() in raw:
        return False
    return status in _TRY_AGAIN or status >= 500 or 200 <= status < 300


def is_too_long(status: int, raw: bytes) -> bool:
    """True if the conversation has outgrown the model's context."""
    text = raw.decode(errors="replace").lower()
    return status in (400, 413, 422) and any(sign in text for sign in _TOO_LONG)


def reserves_too_much(raw: bytes) -> bool:
    """True if the longest reply does not fit, rather than the conversation."""
    return _RESERVED.search(raw.decode(errors="replace")) is not None


def is_page(headers: Mapping[str, str], raw: bytes) -> bool:
    """True if a web page came instead of an answer."""
    return "html" in headers.get("content-type", "") or raw[:200].lstrip()[:1] == b"<"


def way_out(
    status: int, raw: bytes, body: Mapping[str, Any], where: str, *, service: EndpointService, has_key: bool
) -> str:
    """Advice about a refusal; empty where its own text says it best.

    Args:
        body: of the request, as it was sent.
        where: the endpoint's address.
        has_key: whether a key was sent.
    """
    versioned = re.search(r"/v\d", where) or "/v1" in service.path
    below_v1 = "" if versioned else f", and the address: most servers answer at {where}/v1"
    if status in (400, 422):
        return _about_an_entry(raw, body, service) if isinstance(service, EndpointProtocol) else ""
    if status == 401:
        return f"check {service.key}" if has_key else f"no key was sent: set {service.key}"
    if status == 403:
        return "check what the key is allowed to use"
    if status in (404, 405):
        return f"check the model's name{below_v1}"
    if status in (402, 429):
        return "the account has nothing left to spend"
    return "give the address that it redirects to" if 300 <= status < 400 else ""


def _about_an_entry(raw: bytes, body: Mapping[str, Any], protocol: EndpointProtocol) -> str:
    """Advice about an entry of the request that the server does not take."""
    text = raw.decode(errors="replace")[:20_000]
    if reserves_too_much(raw):
        return _SHORTER
    if protocol.on_reasoning.search(text):
        return f"--agent.reasoning {'strip leaves it out' if protocol.sends_reasoning(body) else 'keep sends it back'}"
    if "stream" not in body and _STREAM_ONLY.search(text):
        return "--endpoint.stream true asks for a stream"
    named = _parameter(text)
    places = {name: 0 if name == named else _place(name, text) for name in body}
    named_entries = [name for name in sorted(places, key=lambda name: places[name]) if places[name] < len(text)]
    for name in named_entries:
        if name == protocol.length:
            return _SHORTER
        if name in _OTHER_FIELD:
            other = _OTHER_FIELD[name]
            return f"--endpoint.length-field {other} names it so" if other in text or name == named else _SHORTER
        if name in _WAYS_OUT:
            return _WAYS_OUT[name]
        if name not in ("model", "messages", "input", "instructions", "system"):
            return f"leave {name} out of --sampling.extra-body"
    return ""


def _parameter(text: str) -> str | None:
    """The entry that an answer in OpenAI's form names."""
    try:
        error = json.loads(text)["error"]
        return str(error["param"]).partition("[")[0].partition(".")[0]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _place(name: str, text: str) -> int:
    """Position at which a text first names an entry; its length if nowhere."""
    mention = re.search(_ALSO_SAID.get(name, rf"\b{re.escape(name)}\b"), text)
    return mention.start() if mention else len(text)


def asked_wait(headers: Mapping[str, str]) -> float:
    """Seconds that a Retry-After header asks for, given as a number or a date; 0 if it says nothing sensible."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
