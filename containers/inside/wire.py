"""Frames between the host and the tool server: a JSON header and a binary body, with both lengths before them.

One request, one reply, in turn. A request has ``op`` and ``id``; its reply has the same id, the nonce that the host
chose at the start, and either the result, or ``refused`` with the reason, or ``failed`` with a traceback.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

VERSION = 1
MAX_HEADER = 1 << 20
MAX_BODY = 1 << 30
MAX_REPORT = 8 << 20
"""Of what a command says on descriptor 3, so much is kept."""

_MAGIC = b"mty%d" % VERSION
_PREFIX = struct.Struct(">4sII")


class Garbled(ValueError):
    """Input that is no frame."""


def opening(header: dict[str, Any], body_bytes: int) -> bytes:
    """All of a frame but its body."""
    text = json.dumps(header).encode()
    return _PREFIX.pack(_MAGIC, len(text), body_bytes) + text


def receive(read: Callable[[int], bytes], max_body: int = MAX_BODY) -> tuple[dict[str, Any], bytes]:
    """The next frame; ``read`` returns exactly so many bytes. Raises Garbled, and what ``read`` raises."""
    magic, header_bytes, body_bytes = _PREFIX.unpack(read(_PREFIX.size))
    if magic != _MAGIC or header_bytes > MAX_HEADER or body_bytes > max_body:
        raise Garbled(f"no frame: {magic!r}")
    try:
        header = json.loads(read(header_bytes))
    except ValueError as error:
        raise Garbled(f"no header: {error}") from None
    if not isinstance(header, dict):
        raise Garbled("no header")
    return header, read(body_bytes)
