"""WebSockets that follow no redirect: it would begin a connection to an address that nobody has named."""

from collections.abc import Callable
from typing import Any

from websockets.exceptions import InvalidHandshake


class SingleConnection:
    """Begins one connection; give ``websockets`` one of them as ``create_connection``.

    Args:
        make: the class of the connection.

    Raises:
        InvalidHandshake: a second one is asked for.
    """

    def __init__(self, make: Callable[..., Any]):
        self._make, self._begun = make, False

    def __call__(self, *words: Any, **options: Any) -> Any:
        if self._begun:
            raise InvalidHandshake("it sends us on to another address, which is not followed")
        self._begun = True
        return self._make(*words, **options)
