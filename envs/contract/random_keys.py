"""Randomness and identity from keys, never from a shared generator.

A key is any tuple of plain values, such as ``(run_seed, task_id, member, turn)``. The same key gives the same
numbers in every process and in any order episodes finish.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np


def _encode(value: Any) -> bytes:
    """Canonical bytes of a plain value: equal values give equal bytes, unequal ones differ."""
    kind = type(value)
    # These kinds make up nearly every key, each turn has one, and the content of every drawn task is hashed.
    if kind is str:
        return _encode_text(value)
    if kind is int:
        return b"%d" % value
    if kind is dict:
        pairs = sorted([(_encode(name), _encode(part)) for name, part in value.items()])
        return b"{" + b",".join([b"%s=%s" % pair for pair in pairs]) + b"}"
    if kind is tuple or kind is list:
        return b"[" + b",".join([_encode(part) for part in value]) + b"]"
    return _encode_rare(value)


def _encode_rare(value: Any) -> bytes:
    match value:
        case np.generic() if not isinstance(value.item(), np.generic):
            return _encode(value.item())  # before floats, because a NumPy float is a float that is written differently
        case None | bool():
            return repr(value).encode()
        case int():
            return int.__repr__(value).encode()
        case float():
            return float.__repr__(value).encode()
        case str():
            return _encode_text(value)
        case bytes():
            return b"b%d:%s" % (len(value), value)
        case Mapping():
            pairs = sorted((_encode(k), _encode(v)) for k, v in value.items())
            return b"{" + b",".join(k + b"=" + v for k, v in pairs) + b"}"
        case set() | frozenset():
            return b"<" + b",".join(sorted(map(_encode, value))) + b">"
        case tuple() | list():
            return b"[" + b",".join(map(_encode, value)) + b"]"
        case np.ndarray():
            return b"a" + _encode((value.shape, value.dtype.str, value.tobytes()))
    raise TypeError(
        f"cannot build a key from {type(value).__name__}: use numbers, strings, bytes, tuples, sets or dicts"
    )


def _encode_text(value: str) -> bytes:
    body = value.encode("utf-8", "surrogatepass")
    return b"s%d:%s" % (len(body), body)


def digest(*parts: Any) -> str:
    """Hash of the parts' content, 32 hexadecimal digits, the same in every process."""
    return hashlib.blake2b(_encode(parts), digest_size=16).hexdigest()


def seed_of(*parts: Any) -> int:
    """A seed in [0, 2**63) that depends on the parts alone."""
    return int.from_bytes(hashlib.blake2b(_encode(parts), digest_size=8).digest(), "big") >> 1


def generator(*parts: Any) -> np.random.Generator:
    """A random generator that depends on the parts alone."""
    return np.random.Generator(np.random.PCG64(seed_of(*parts)))
