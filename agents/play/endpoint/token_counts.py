"""Tokens of a request, as an endpoint counts them."""

from typing import Any, NamedTuple, Self, TypeGuard


class TokenCount(NamedTuple):
    """Tokens of one request.

    Attributes:
        prompt: tokens of the prompt, ``cached`` among them.
        reply: tokens of the reply, reasoning included.
        cached: tokens of the prompt that the server had in its cache.
    """

    prompt: int
    reply: int
    cached: int = 0

    @classmethod
    def read(cls, reported: Any) -> Self | None:
        """Read the usage that an answer reports; None if it makes no sense."""
        try:
            counts = (reported["prompt_tokens"], reported["completion_tokens"])
            cached = (reported.get("prompt_tokens_details") or {}).get("cached_tokens")
        except (LookupError, TypeError, AttributeError):
            return None
        if not all(_is_count(count) for count in counts):
            return None
        return cls(*counts, cached if _is_count(cached) and cached <= counts[0] else 0)


def total(*counts: TokenCount | None) -> TokenCount | None:
    """Sum over requests, as far as it is known.

    >>> total(TokenCount(10, 3), None, TokenCount(20, 5, 8))
    TokenCount(prompt=30, reply=8, cached=8)
    """
    counted = [count for count in counts if count is not None]
    return TokenCount(*map(sum, zip(*counted, strict=True))) if counted else None


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**53
