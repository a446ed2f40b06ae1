"""Address of a server, as the name of an environment states it, and the token that is sent along."""

import os
import re
from typing import NamedTuple
from urllib.parse import urlsplit

TOKEN = "MANYTURN_OPENENV_TOKEN"
_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?(?:/\S*)?", re.IGNORECASE)


class Address(NamedTuple):
    """A server's address, without a slash at its end.

    Attributes:
        http, socket: for requests, and for the session of an episode.
        is_here: whether it is on this machine, so that no proxy is asked.
        headers: what every request carries.
        token: environment variable of the token in them.
    """

    http: str
    socket: str
    is_here: bool
    headers: dict[str, str]
    token: str = TOKEN


def address_of(url: str, scheme: str = "openenv", token: str = TOKEN) -> Address:
    """The address that a URL means.

    Args:
        scheme: what the name of the environment begins with.
        token: environment variable of the token.

    Raises:
        ValueError: it is none, or it holds secrets; the text names the fix.

    >>> address_of("localhost:8000/").socket
    'ws://localhost:8000/ws'
    """
    url = url.strip().rstrip("/")
    if _LOOPBACK.fullmatch(url):
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound, parts = False, urlsplit("")
    if not sound:
        raise ValueError(
            f"that is no address of a server: write {scheme}:http://127.0.0.1:8000, or https:// and its host"
        )
    if re.search(r"\s", url):
        raise ValueError("an address has no spaces: leave them out")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "the name of an environment is kept with results, so it must hold no secrets: leave out user, password and "
            f"query, and set {token}"
        )
    secret = os.environ.get(token, "")
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    is_here = _LOOPBACK.fullmatch(parts.netloc) is not None
    rest = f"{parts.netloc}{parts.path}"
    socket = f"ws{parts.scheme.removeprefix('http')}://{rest}/ws"
    return Address(f"{parts.scheme}://{rest}", socket, is_here, headers, token)
