"""The token by which a server of vLLM's knows who may give it orders, and where it can be done without."""

import ipaddress
import os
from urllib.parse import urlsplit

from manyturn.envs.contract.options import ConfigError

VARIABLE = "MANYTURN_VLLM_TOKEN"
_SHORTEST = 16
_MAKE = f'{VARIABLE}=$(python -c "import secrets; print(secrets.token_urlsafe())")'


def token() -> str:
    """The token of this environment; empty without one. Raises ConfigError for one that is easily guessed."""
    found = os.environ.get(VARIABLE, "")
    if found and (len(found) < _SHORTEST or not (found.isascii() and found.isprintable()) or " " in found):
        raise ConfigError(f"{VARIABLE} is no token: take {_SHORTEST} letters and digits or more, such as {_MAKE}")
    return found


def check_reach(host: str, what: str) -> None:
    """Raises ConfigError for a place that others can reach, unless there is a token."""
    if not token() and not is_loopback(host):
        raise ConfigError(
            f"{what} can be reached from other machines, whose users could give it other weights: set the same "
            f"{VARIABLE} for it and for the learner, such as {_MAKE}"
        )


def is_loopback(host: str) -> bool:
    """Whether nobody else can reach a host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def endpoint_of(address: str) -> str:
    """A server's address without a slash at its end. Raises ValueError if it is none.

    >>> endpoint_of(" http://127.0.0.1:8000/")
    'http://127.0.0.1:8000'
    """
    address = address.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound, parts = False, urlsplit("")
    if not sound or parts.path or parts.query or parts.fragment:
        raise ValueError(f"{address!r} is no address of a server: write http://HOST:PORT")
    if parts.username or parts.password:
        raise ValueError(f"an address holds no user and no password: leave them out, and set {VARIABLE}")
    return address


def host_of(address: str) -> str:
    """The host of an address.

    >>> host_of("http://[::1]:8000")
    '::1'
    """
    return urlsplit(address).hostname or ""
