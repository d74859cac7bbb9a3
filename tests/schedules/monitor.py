"""A monitor as people have them: a web server that notes who called, and answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass
class Called:
    path: str
    method: str
    body: str
    agent: str


Answer = int | str | Callable[[], int]


@dataclass
class Monitor:
    """`answers[path]`: what comes next, in order: a status, a URL to redirect to, or a function that returns
    a status. Where nothing is left it is 200."""

    answers: dict[str, list[Answer]] = field(default_factory=dict)
    calls: list[Called] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def paths(self) -> list[str]:
        return [called.path for called in self.calls]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, called: Called) -> int | str:
        with self._lock:
            self.calls.append(called)
            waiting = self.answers.get(called.path)
            found = waiting.pop(0) if waiting else 200
        return found if isinstance(found, int | str) else found()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        monitor = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length).decode()
                called = Called(self.path, self.command, body, self.headers.get("User-Agent", ""))
                answer = monitor.answer(called)
                self.send_response(answer if isinstance(answer, int) else 302)
                if isinstance(answer, str):
                    self.send_header("Location", answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        return Handler
