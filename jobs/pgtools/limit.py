"""An end for sessions on a server that hangs, or that never stops talking.

libpq waits for an answer for as long as the server's machine says that it is alive, and statement_timeout is
the server's own to keep.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import Any, Self

import psycopg


def hang_up(session: psycopg.Connection[Any]) -> None:
    """End it, from another thread than the one that waits for its answer and gets psycopg's error."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(session.fileno())) as connected:
        connected.shutdown(socket.SHUT_RDWR)


class Limit:
    """Cuts the watched sessions off after `seconds`; whoever waits for them gets psycopg's error.

    Their sockets are shut down, which is safe while another thread reads from them.
    """

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def watch(self, session: psycopg.Connection[Any]) -> None:
        with self._lock:
            self._sockets.append(socket.socket(fileno=os.dup(session.fileno())))
            if self.over:
                self._shut()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for duplicate in self._sockets:
                duplicate.close()
            self._sockets.clear()

    def _cut(self) -> None:
        with self._lock:
            self.over = True
            self._shut()

    def _shut(self) -> None:
        for duplicate in self._sockets:
            with suppress(OSError):
                duplicate.shutdown(socket.SHUT_RDWR)
