"""Where completions are asked for."""

import httpx

from manyturn.envs.users.address import PATH, endpoint_address


def completions_url(base: str) -> httpx.URL:
    """Where completions are asked for. Raises ValueError, which names the fix; see ``endpoint_address``.

    >>> str(completions_url("localhost:8000/v1"))
    'http://localhost:8000/v1/chat/completions'
    """
    address = endpoint_address(base, "--endpoint.base-url")
    try:
        return httpx.URL(address + PATH)
    except httpx.InvalidURL:
        raise ValueError("the endpoint's address is no URL: check OPENAI_BASE_URL or --endpoint.base-url") from None


def shown(url: httpx.URL) -> str:
    """The address for messages; it holds no secrets.

    >>> shown(completions_url("https://example.org/v1"))
    'https://example.org/v1'
    """
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}{port}{url.path.removesuffix(PATH)}"
