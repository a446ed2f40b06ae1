"""One request to an endpoint: what comes back, within bounds of time and size, or why nothing did."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import httpx

from manyturn.agents.play.endpoint.options import Endpoint
from manyturn.envs.contract.credential_mask import MASK, add_secrets, masked
from manyturn.envs.users.endpoint.address import endpoint_address
from manyturn.envs.users.endpoint.http_post import NoAnswer, Post, Response
from manyturn.envs.users.endpoint.protocols.service import EndpointService

_LONGEST_ANSWER = 4 * 2**20  # bytes
_SECRET = 6  # characters; a shorter value of a header is no secret, and hiding it would garble messages


class Client:
    """Sends requests, not too many at once.

    Args:
        options: where the endpoint is, and its limits.
        service: what it is asked for; its environment variables hold the key, and the address unless the options do.

    Attributes:
        where: the endpoint's address, which holds no secrets.
        secrets: the key and the values of headers, only those too long to be a word by chance.

    Raises:
        ValueError: address or key cannot be right.
    """

    def __init__(self, options: Endpoint, service: EndpointService):
        self.service, key = service, os.environ.get(service.key, "").strip()
        base = base_url(options.base_url or os.environ.get(service.address, ""), service)
        self.url, self.where = httpx.URL(service.url(str(base))), shown(base)
        if not (key.isascii() and key.isprintable()):
            raise ValueError(f"{service.key} holds characters that no key has")
        self._options = options
        own = {name: value.get_secret_value() for name, value in options.headers.items()}
        # A server that quotes a header may leave out its scheme, such as Bearer.
        typed = (key, *own.values(), *(value.partition(" ")[2].strip() for value in own.values()))
        self.secrets = tuple(secret for secret in typed if len(secret) >= _SECRET)
        add_secrets(self.secrets)
        self._hidden = (*self.secrets, *([key] if key else []))
        self._headers = service.headers(key)
        for name, value in own.items():
            self._headers = {n: v for n, v in self._headers.items() if n.lower() != name.lower()} | {name: value}
        self.has_key = any(name.lower() in ("authorization", "api-key", "x-api-key") for name in self._headers)
        self._places: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    async def post(self, body: Mapping[str, Any]) -> Response:
        """Send a request. Raises NoAnswer, and Unreachable if it was not taken."""
        options, assembly = self._options, self.service.assembly
        post = Post(str(self.url), body, self._headers, options.timeout, _LONGEST_ANSWER, assembly)
        try:
            async with self._place():
                return await post.send()
        except NoAnswer as fault:
            raise type(fault)(self.short(str(fault))) from fault

    def short(self, text: str | bytes) -> str:
        """The beginning of a text on one line, without secrets and without what a terminal would obey."""
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        # Secrets are hidden first: cut in two they would not be found.
        for secret in self._hidden:
            text = text.replace(secret, MASK)
        text = masked(text)
        text = " ".join(text[:2000].split())
        text = "".join(char if char.isprintable() else "\ufffd" for char in text)
        return text[:300] + ("…" if len(text) > 300 else "")

    def _place(self) -> asyncio.Semaphore:
        # A semaphore belongs to an event loop, while a client may be used in several, one after the other.
        loop = asyncio.get_running_loop()
        if self._places is None or self._places[0] is not loop:
            self._places = (loop, asyncio.Semaphore(self._options.concurrency))
        return self._places[1]


def base_url(base: str, service: EndpointService) -> httpx.URL:
    """The address without the service's path. Raises ValueError, which names the fix; see ``endpoint_address``."""
    option = f"{service.section}.base-url"
    address = endpoint_address(base, option, service)
    try:
        return httpx.URL(address)
    except httpx.InvalidURL:
        raise ValueError(f"the endpoint's address is no URL: check {service.address} or {option}") from None


def shown(url: httpx.URL) -> str:
    """The address for messages; it holds no secrets.

    >>> shown(httpx.URL("https://Example.org:443/v1"))
    'https://example.org/v1'
    """
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}{port}{url.path.rstrip('/')}"
