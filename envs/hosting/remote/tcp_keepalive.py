"""Connections whose other side is gone without a word, as when a machine loses its power or its network."""

import socket

_DEAD_SECONDS = 20  # without a sign from the other machine's kernel, while nothing is on its way
_UNREAD_SECONDS = 120  # until what was sent has been taken


def keep_alive(tcp: socket.socket) -> None:
    """End connections of a socket whose other side has gone without a word; those that it accepts are alike."""
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _DEAD_SECONDS // 2)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _DEAD_SECONDS // 4)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_SECONDS * 1000)
