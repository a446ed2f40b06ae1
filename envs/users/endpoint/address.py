"""The address of an endpoint that speaks the chat completions protocol, as people write it."""

import re
from urllib.parse import urlsplit

PATH = "/chat/completions"
_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1\])(?::\d+)?(?:/\S*)?", re.IGNORECASE)
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*(?::\d+)?(?:/[\w./-]*)?", re.ASCII)


def endpoint_address(base: str, option: str) -> str:
    """The address with its scheme, up to and without ``/chat/completions``.

    A place on this machine may leave out the scheme. For any other host it decides whether the key travels in the
    open, so it is not guessed.

    Args:
        option: where else than in OPENAI_BASE_URL it may be given, for messages.

    Raises:
        ValueError: that is no address, or it holds secrets; the text names the fix.

    >>> endpoint_address("localhost:8000/v1/", "base_url")
    'http://localhost:8000/v1'
    """
    base = base.strip().rstrip("/").removesuffix(PATH)
    if _LOOPBACK.fullmatch(base):
        base = f"http://{base}"
    if not base:
        raise ValueError(
            f"no address of an endpoint: set OPENAI_BASE_URL, such as http://127.0.0.1:8000/v1, or give {option}"
        )
    if _HOST.fullmatch(base):
        raise ValueError(f"the endpoint's address has no scheme: write https://{base} (OPENAI_BASE_URL or {option})")
    try:
        parts = urlsplit(base)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound, parts = False, urlsplit("")
    if not sound:
        raise ValueError(
            "that is no address of an endpoint: set OPENAI_BASE_URL to one such as http://127.0.0.1:8000/v1, "
            f"or give {option}"
        )
    if parts.username or parts.password or parts.query:
        raise ValueError("the endpoint's address must hold no secrets: leave out user, password and query")
    return base
