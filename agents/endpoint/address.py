"""The address of an endpoint, as people write it."""

import re

import httpx

_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1\])(?::\d+)?(?:/\S*)?", re.IGNORECASE)
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*(?::\d+)?(?:/[\w./-]*)?", re.ASCII)
_PATH = "/chat/completions"


def completions_url(base: str) -> httpx.URL:
    """Where completions are asked for.

    A place on this machine may leave out the scheme. For any other host it decides whether the key travels in the
    open, so it is not guessed.

    Raises:
        ValueError: that is no address, or it holds secrets; the text names the fix.

    >>> str(completions_url("localhost:8000/v1"))
    'http://localhost:8000/v1/chat/completions'
    """
    base = base.strip().rstrip("/").removesuffix(_PATH)
    if _LOOPBACK.fullmatch(base):
        base = f"http://{base}"
    if not base:
        raise ValueError(
            "no address of an endpoint: set OPENAI_BASE_URL, such as http://127.0.0.1:8000/v1, or add "
            "--endpoint.base-url"
        )
    if _HOST.fullmatch(base):
        raise ValueError(
            f"the address of the endpoint has no scheme: write https://{base} (OPENAI_BASE_URL or --endpoint.base-url)"
        )
    try:
        url = httpx.URL(base + _PATH)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(
            "that is no address of an endpoint: set OPENAI_BASE_URL or --endpoint.base-url to one such as "
            "http://127.0.0.1:8000/v1"
        )
    if url.userinfo or url.query:  # httpx writes addresses to its log
        raise ValueError(
            "the endpoint's address must hold no secrets: leave out user, password and query, and give what the "
            "server wants to know with --endpoint.headers"
        )
    return url


def shown(url: httpx.URL) -> str:
    """The address for messages; it holds no secrets.

    >>> shown(completions_url("https://example.org/v1"))
    'https://example.org/v1'
    """
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}{port}{url.path.removesuffix(_PATH)}"
