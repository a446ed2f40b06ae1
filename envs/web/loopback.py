"""A port of this machine that nobody else can reach."""

import socket


def listening(port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1. Raises ValueError if the port cannot be had.

    Args:
        port: 0 takes any that is free.
    """
    if not 0 <= port <= 65_535:
        raise ValueError(f"a port is between 0 and 65535, 0 for any that is free: {port} does not")
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
        found.listen()
    except OSError as error:
        found.close()
        raise ValueError(f"port {port} cannot be had ({error.strerror}): name another, or 0 for any") from None
    return found
