"""One request to an endpoint: what comes back, within bounds of time and size, or why nothing did."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx

from manyturn.agents.play.endpoint.options import Endpoint
from manyturn.envs.contract.credential_mask import MASK, add_secrets, masked
from manyturn.envs.users.endpoint.address import PATH, endpoint_address
from manyturn.envs.users.endpoint.http_post import NoAnswer, Post, Response

_LONGEST_ANSWER = 4 * 2**20  # bytes
_SECRET = 6  # characters; a shorter value of a header is no secret, and hiding it would garble messages


class Service(NamedTuple):
    """A service of an endpoint.

    Attributes:
        path: below the endpoint's address.
        name: for messages.
        section: the options that set it, as the command line has them.
    """

    path: str
    name: str
    section: str


CHAT = Service(PATH, "chat completions", "--endpoint")


class Client:
    """Sends requests, not too many at once.

    Args:
        options: where the endpoint is, and its limits.
        base: its address.
        key: sent as a bearer token unless empty.
        service: what it is asked for.

    Attributes:
        secrets: the key and the values of headers, only those too long to be a word by chance.

    Raises:
        ValueError: address or key cannot be right.
    """

    def __init__(self, options: Endpoint, base: str, key: str, service: Service = CHAT):
        self.url, self.service = service_url(base, service), service
        if not (key.isascii() and key.isprintable()):
            raise ValueError("OPENAI_API_KEY holds characters that no key has")
        self._options = options
        own = {name: value.get_secret_value() for name, value in options.headers.items()}
        # A server that quotes a header may leave out its scheme, such as Bearer.
        typed = (key, *own.values(), *(value.partition(" ")[2].strip() for value in own.values()))
        self.secrets = tuple(secret for secret in typed if len(secret) >= _SECRET)
        add_secrets(self.secrets)
        self._hidden = (*self.secrets, *([key] if key else []))
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        for name, value in own.items():
            self._headers = {n: v for n, v in self._headers.items() if n.lower() != name.lower()} | {name: value}
        self.has_key = any(name.lower() in ("authorization", "api-key", "x-api-key") for name in self._headers)
        self._places: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    @property
    def where(self) -> str:
        """The endpoint's address, which holds no secrets."""
        return shown(self.url, self.service)

    async def post(self, body: Mapping[str, Any]) -> Response:
        """Send a request. Raises NoAnswer, and Unreachable if it was not taken."""
        post = Post(str(self.url), body, self._headers, self._options.timeout, _LONGEST_ANSWER)
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


def service_url(base: str, service: Service = CHAT) -> httpx.URL:
    """Address of a service. Raises ValueError, which names the fix; see ``endpoint_address``.

    >>> str(service_url("localhost:8000/v1"))
    'http://localhost:8000/v1/chat/completions'
    """
    option = f"{service.section}.base-url"
    address = endpoint_address(base.strip().rstrip("/").removesuffix(service.path), option)
    try:
        return httpx.URL(address + service.path)
    except httpx.InvalidURL:
        raise ValueError(f"the endpoint's address is no URL: check OPENAI_BASE_URL or {option}") from None


def shown(url: httpx.URL, service: Service = CHAT) -> str:
    """The address for messages; it holds no secrets.

    >>> shown(service_url("https://example.org/v1"))
    'https://example.org/v1'
    """
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}{port}{url.path.removesuffix(service.path)}"
