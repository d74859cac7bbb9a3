"""TCP ports of 127.0.0.1 for servers of our own."""

from __future__ import annotations

import random
import socket

# Below what systems hand out to outgoing connections, so that a stopped server finds its port free again.
RANGE = range(20000, 32000)


def free_port() -> int:
    """A port nobody listens on at this moment."""
    for port in random.sample(RANGE, 50):
        if port_is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    """Could a server listen on that port?"""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True
