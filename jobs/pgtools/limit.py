"""An end for sessions on a server that hangs, or that never stops talking.

libpq waits for an answer for as long as the server's machine says that it is alive, and keeps all of it until
it is complete; statement_timeout is the server's own to keep.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Self

import psycopg

# Of one session while it is watched: what is asked has answers of kilobytes, or of some megabytes where there
# are hundreds of thousands of tables.
MOST_BYTES = 256 << 20
LOOK_SECONDS = 0.2
STUCK = "Is the server, or something before it, stuck?"
# tcpi_bytes_received in linux/tcp.h.
TCP_INFO, TCP_INFO_BYTES, RECEIVED_AT = 11, 192, 128


def hang_up(session: psycopg.Connection[Any]) -> None:
    """End it, from another thread than the one that waits for its answer and gets psycopg's error."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(session.fileno())) as connected:
        connected.shutdown(socket.SHUT_RDWR)


class Limit:
    """Cuts the watched sessions off after `seconds`, or when a server has said MOST_BYTES; whoever waits for
    them gets psycopg's error.

    Their sockets are shut down, which is safe while another thread reads from them.
    """

    def __init__(self, seconds: float) -> None:
        self.reason = ""  # of having cut them off
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._sockets: dict[socket.socket, int] = {}  # and what had come when it was first seen
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look, name="limit", daemon=True)

    def watch(self, session: psycopg.Connection[Any]) -> None:
        with self._lock:
            duplicate = socket.socket(fileno=os.dup(session.fileno()))
            self._sockets[duplicate] = received(duplicate)
            if self.reason:
                self._shut()

    @property
    def over(self) -> bool:
        return self.reason != ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()
        for duplicate in self._sockets:
            duplicate.close()
        self._sockets.clear()

    def _look(self) -> None:
        while not self._left.wait(min(LOOK_SECONDS, max(self._until - time.monotonic(), 0))):
            with self._lock:
                if any(received(one) - before > MOST_BYTES for one, before in self._sockets.items()):
                    self.reason = f"the answers are larger than {MOST_BYTES >> 20} MB. Is this PostgreSQL?"
                elif time.monotonic() >= self._until:
                    self.reason = f"it was not done within {self._seconds:.0f} s. {STUCK}"
                if self.reason:
                    self._shut()
                    return

    def _shut(self) -> None:
        for duplicate in self._sockets:
            with suppress(OSError):
                duplicate.shutdown(socket.SHUT_RDWR)


def received(connected: socket.socket) -> int:
    """Bytes that came through it so far; 0 where nobody counts them."""
    if sys.platform != "linux":
        return 0
    try:
        info = connected.getsockopt(socket.IPPROTO_TCP, TCP_INFO, TCP_INFO_BYTES)
        return int(struct.unpack_from("=Q", info, RECEIVED_AT)[0])
    except (OSError, struct.error):  # a unix socket, or an older kernel
        return 0
