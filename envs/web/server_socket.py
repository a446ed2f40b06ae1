"""A port of this machine, which nobody else can reach unless another address is named."""

import socket


def listening(port: int, host: str = "127.0.0.1") -> socket.socket:
    """A socket that listens. Raises ValueError if host or port cannot be had.

    Args:
        port: 0 takes any that is free.
        host: an address of this machine.
    """
    if not 0 <= port <= 65_535:
        raise ValueError(f"a port is between 0 and 65535, 0 for any that is free: {port} does not")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
    except OSError:
        raise ValueError(f"--host {host} is no address of this machine: 127.0.0.1 and 0.0.0.0 are") from None
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Else the body of an answer waits, for 40 ms, until the client acknowledges the header.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise ValueError(f"port {port} cannot be had ({error.strerror}): name another, or 0 for any") from None
    return listener
