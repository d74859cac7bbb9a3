"""A TCP proxy that misbehaves on demand: cuts, refuses, stalls, loses answers, says 503."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

_METHODS = (b"PUT ", b"POST ", b"GET ", b"HEAD ", b"DELETE ")
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s"
)
_BUSY_BODY = b"<Error><Code>ServiceUnavailable</Code><Message>busy</Message></Error>"


class _Pair:
    """One client and its connection to the real server."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.lose_answer = False

    def close(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Listens on 127.0.0.1:`port` and forwards to `target`; `heal` ends whatever was ordered."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._flow = threading.Event()
        self._flow.set()
        self._pairs: set[_Pair] = set()
        self._busy_answers = 0
        self._losing = b""
        self._cut_after: int | None = None
        self._answers: int | None = None
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]
        self.lost = threading.Event()  # an answer was lost
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()

    def cut(self) -> None:
        """Break every open connection; new ones are welcome."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        self._flow.set()
        for pair in pairs:
            pair.close()

    def refuse(self) -> None:
        """Break every connection and refuse new ones."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def stall(self) -> None:
        """Keep connections open but move no byte."""
        self._flow.clear()

    def stall_after(self, answers: int) -> None:
        """Stall once so many packets have come from the server."""
        self._answers = answers

    @property
    def stalled(self) -> bool:
        return not self._flow.is_set()

    def heal(self) -> None:
        self._answers = None
        self._busy_answers, self._losing, self._cut_after = 0, b"", None
        self._flow.set()
        if self._listener.fileno() < 0:
            self._listener = self._listen(self.port)

    def answer_503(self, times: int = 1) -> None:
        """Answer the next HTTP requests with 503 instead of forwarding them."""
        self._busy_answers = times

    def lose_answer(self, pattern: bytes) -> None:
        """Forward the next request that holds `pattern`, then break its connection instead of answering."""
        self.lost.clear()
        self._losing = pattern

    def cut_after(self, size: int) -> None:
        """Break the connection once, after so many bytes came from the server."""
        self._cut_after = size

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port), backlog=64)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            pair = _Pair(client, server)
            with self._lock:
                self._pairs.add(pair)
                self.connections += 1
            threading.Thread(target=self._pump, args=(pair, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(pair, False), daemon=True).start()

    def _pump(self, pair: _Pair, upwards: bool) -> None:
        source, sink = (pair.client, pair.server) if upwards else (pair.server, pair.client)
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._count(upwards=upwards)
                self._flow.wait()
                passed = self._upwards(pair, data) if upwards else self._downwards(pair, data)
                if not passed:
                    break
                sink.sendall(data)
        pair.close()
        with self._lock:
            self._pairs.discard(pair)

    def _count(self, *, upwards: bool) -> None:
        with self._lock:
            if self._answers is None or upwards:
                return
            self._answers -= 1
            if self._answers < 0:
                self._flow.clear()

    def _upwards(self, pair: _Pair, data: bytes) -> bool:
        with self._lock:
            if self._busy_answers and data.startswith(_METHODS):
                self._busy_answers -= 1
                pair.client.sendall(_BUSY % (len(_BUSY_BODY), _BUSY_BODY))
                return False
            if self._losing and self._losing in data:
                self._losing = b""
                pair.lose_answer = True
        return True

    def _downwards(self, pair: _Pair, data: bytes) -> bool:
        if pair.lose_answer and not data.startswith(b"HTTP/1.1 100"):
            self.lost.set()
            return False
        with self._lock:
            if self._cut_after is None:
                return True
            self._cut_after -= len(data)
            if self._cut_after > 0:
                return True
            self._cut_after = None
            return False
