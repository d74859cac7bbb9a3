"""A small pooler: clients log in to it, and their statements go to a few sessions at the real server.

Speaks as much of the protocol as a client without TLS needs. The sessions are logged in by libpq, whose
sockets the pooler then uses itself.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections import deque
from types import TracebackType
from typing import Literal, Self

import psycopg

Mode = Literal["session", "transaction"]
Order = Literal["last", "oldest"]


class FakePooler:
    """Listens on 127.0.0.1:`port`. Between transactions a client loses its session in transaction mode; the
    next one is that which was returned last, or the oldest.
    """

    def __init__(self, url: str, size: int, mode: Mode, order: Order = "last") -> None:
        self._mode, self._order = mode, order
        self._servers = [psycopg.connect(url, sslmode="disable", gssencmode="disable") for _ in range(size)]
        self._sockets = [socket.socket(fileno=os.dup(conn.fileno())) for conn in self._servers]
        self._idle = deque(self._sockets)
        self._returned = threading.Condition()
        for each in self._sockets:
            each.setblocking(True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for conn in self._servers:
            conn.close()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server: socket.socket | None = None
        with contextlib.suppress(OSError, EOFError), client:
            _welcome(client)
            while (batch := _batch(client)) is not None:
                server = server or self._take()
                server.sendall(batch)
                in_transaction = _relay(server, client)
                if self._mode == "transaction" and not in_transaction:
                    self._give(server)
                    server = None
        if server is not None:
            self._give(server)

    def _take(self) -> socket.socket:
        with self._returned:
            self._returned.wait_for(lambda: self._idle)
            return self._idle.pop() if self._order == "last" else self._idle.popleft()

    def _give(self, server: socket.socket) -> None:
        with self._returned:
            self._idle.append(server)
            self._returned.notify()


def _welcome(client: socket.socket) -> None:
    while True:
        (size,) = struct.unpack("!i", _exactly(client, 4))
        (code,) = struct.unpack("!i", _exactly(client, size - 4)[:4])
        if code == 3 << 16:
            break
        client.sendall(b"N")
    client.sendall(_message(b"R", struct.pack("!i", 0)))
    for name, value in (("server_version", "17.0"), ("client_encoding", "UTF8"), ("DateStyle", "ISO")):
        client.sendall(_message(b"S", f"{name}\0{value}\0".encode()))
    client.sendall(_message(b"K", struct.pack("!ii", 4711, 0)) + _message(b"Z", b"I"))


def _batch(client: socket.socket) -> bytes | None:
    """What a client says until it waits for an answer; None when it leaves."""
    batch = b""
    while True:
        kind, message = _read(client)
        batch += message
        if kind == b"X":
            return None
        if kind in b"QS":
            return batch


def _relay(server: socket.socket, client: socket.socket) -> bool:
    """Pass on the answer; true while the session is in a transaction."""
    while True:
        kind, message = _read(server)
        client.sendall(message)
        if kind == b"Z":
            return message[-1:] != b"I"


def _read(sock: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(sock, 5)
    (size,) = struct.unpack("!i", head[1:])
    return head[:1], head + _exactly(sock, size - 4)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body
