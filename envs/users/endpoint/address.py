"""The address of an endpoint, as people write it."""

import re
from urllib.parse import urlsplit

from manyturn.envs.users.endpoint.protocols.registry import OPENAI, PROTOCOLS
from manyturn.envs.users.endpoint.protocols.service import EndpointService

_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1\])(?::\d+)?(?:/\S*)?", re.IGNORECASE)
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*(?::\d+)?(?:/[\w./-]*)?", re.ASCII)


def endpoint_address(base: str, option: str, service: EndpointService = PROTOCOLS[OPENAI]) -> str:
    """The address with its scheme, up to and without the path of its service.

    A place on this machine may leave out the scheme. For any other host it decides whether the key travels in the
    open, so it is not guessed.

    Args:
        option: where else than in the service's environment variable it may be given, for messages.

    Raises:
        ValueError: that is no address, or it holds secrets; the text names the fix.

    >>> endpoint_address("localhost:8000/v1/", "base_url")
    'http://localhost:8000/v1'
    """
    base = service.base(base.strip())
    if _LOOPBACK.fullmatch(base):
        base = f"http://{base}"
    if not base:
        raise ValueError(
            f"no address of an endpoint: set {service.address}, such as {service.example}, or give {option}"
        )
    if _HOST.fullmatch(base):
        raise ValueError(f"the endpoint's address has no scheme: write https://{base} ({service.address} or {option})")
    try:
        parts = urlsplit(base)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound, parts = False, urlsplit("")
    if not sound:
        raise ValueError(
            f"that is no address of an endpoint: set {service.address} to one such as {service.example}, "
            f"or give {option}"
        )
    if parts.username or parts.password or parts.query:
        raise ValueError("the endpoint's address must hold no secrets: leave out user, password and query")
    return base
