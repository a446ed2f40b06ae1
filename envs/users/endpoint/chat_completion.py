"""One request to an endpoint, as a chat completion, and the ways in which it can fail.

It blocks, as an environment's turn does, and works inside a running event loop too. Time and size of an answer are
bounded however slowly or endlessly the endpoint sends.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from manyturn.envs.users.endpoint.http_post import NoAnswer, Post
from manyturn.envs.users.endpoint.protocols.protocol import EndpointProtocol
from manyturn.envs.users.endpoint.protocols.service import Manner

_LONGEST_ANSWER = 2**20  # bytes
_MAY_PASS = frozenset({408, 409, 425, 429})  # and everything from 500
_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)  # the protocol's own rule for a tool's name


class Passing(Exception):
    """A fault that may pass when the request is made again."""


class EndpointRefused(Exception):
    """The endpoint will not answer this request, however often it is made."""


class CompletionCall(NamedTuple):
    """A tool call of a completion; the arguments are the text that the model wrote."""

    name: str
    arguments: str


class Choice(NamedTuple):
    """The message of a completion: words, or calls of the tools that the request offers, perhaps with words."""

    text: str
    finish: str
    calls: tuple[CompletionCall, ...] = ()


class Access(NamedTuple):
    """Way to an endpoint.

    Attributes:
        url: its address, up to and without the path of its protocol.
        key: sent unless empty; it appears in no message.
        stream: ask for answers as streams of events.
    """

    protocol: EndpointProtocol
    url: str
    key: str
    stream: bool = False


def complete(access: Access, body: Mapping[str, Any], seconds: float) -> Choice:
    """Ask once.

    Args:
        body: of the request as a chat completion; only if it has ``tools`` may the answer call any.
        seconds: for the whole exchange.

    Raises:
        Passing: no or a broken answer: it may pass.
        EndpointRefused: another status than 200 that will not pass.
    """
    # A thread of its own, because an environment may run inside somebody's event loop.
    protocol, url, key, stream = access
    request, headers = protocol.request(body, Manner(stream=stream)), protocol.headers(key)
    post = Post(protocol.url(url), request, headers, seconds, _LONGEST_ANSWER, protocol.assembly)
    try:
        with ThreadPoolExecutor(1) as thread:
            status, _, raw = thread.submit(asyncio.run, post.send()).result()
    except NoAnswer as fault:
        raise Passing(str(fault).replace(key or "\0", "***")) from fault
    excerpt = _short(raw, key)
    if status in _MAY_PASS or status >= 500:
        raise Passing(f"status {status}: {excerpt}")
    if status != 200:
        raise EndpointRefused(f"status {status}: {excerpt}")
    return _choice(protocol.read(raw), excerpt, bool(body.get("tools")))


def _choice(raw: bytes, excerpt: str, tools: bool) -> Choice:
    try:
        choice = json.loads(raw)["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason") or "stop"
        text, tool_calls = message.get("content"), message.get("tool_calls")
        if tool_calls and not tools:
            raise Passing(f"a tool call instead of words: {excerpt}")
        calls = tuple(_tool_call(call["function"]) for call in tool_calls or ())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Passing(f"not a chat completion: {excerpt}") from error
    if not calls and (not isinstance(text, str) or not text.strip()):
        raise Passing(f"a completion without words: {excerpt}")
    return Choice(clean(text) if isinstance(text, str) else "", str(finish), calls)


def _tool_call(function: Mapping[str, Any]) -> CompletionCall:
    name, arguments = function["name"], function.get("arguments") or "{}"
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is no name of a tool")
    if not isinstance(arguments, str):  # some servers send the object itself
        arguments = json.dumps(arguments)
    return CompletionCall(name, clean(arguments))


def clean(text: str) -> str:
    """A text that can be sent as UTF-8: lone surrogates become question marks."""
    return text.encode(errors="replace").decode()


def _short(raw: bytes, key: str) -> str:
    """The beginning of an answer on one line, without the key and without what a terminal would obey."""
    text = raw[:4000].decode(errors="replace")
    text = " ".join((text.replace(key, "***") if key else text).split())[:200]
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
