"""One call to a web address that a user named: short whatever the server does, and never to where nothing is
ever sent. The worker calls directly, through no proxy."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from jobs.addresses import is_metadata

LONGEST_SECONDS = 10.0
MOST_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
QUOTED = "%/:;=&?~#+!$,'@()*[]"
NOT_ALLOWED = "leads to this machine's own cloud services: not allowed"


class CallFailed(Exception):
    """What became of it, for people. Says the host alone: the rest of such an address is often a secret."""


class NoAnswer(CallFailed):
    """None within the time."""


def call(url: str, body: str, *, seconds: float | None = None) -> None:
    """POST a text; done when the answer is a 2xx, whose body is not read. `seconds`: in all; LONGEST_SECONDS
    if left out. Raises `CallFailed`."""
    method = "POST"
    with _Deadline(seconds or LONGEST_SECONDS) as deadline:
        for _ in range(MOST_REDIRECTS + 1):
            parts = split(url)
            status, reason, location = _ask(parts, method, body, deadline)
            if status // 100 == 2:
                return
            if status not in REDIRECTS or not location:
                raise CallFailed(f"{parts.hostname} answered {status} {reason}".strip() + ".")
            url = _onward(url, location)
            method = "GET" if status == 303 else method
    raise CallFailed(f"{parts.hostname} redirected more than {MOST_REDIRECTS} times.")


def split(url: str) -> SplitResult:
    """The parts of an address that can be called. Raises `CallFailed`."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise CallFailed("The address must look like https://monitor.example.com/path.")
    if "@" in parts.netloc:
        raise CallFailed("The address must hold no user and no password.")
    return parts


def _onward(url: str, location: str) -> str:
    parts = split(url)
    try:
        target = urljoin(url, location)
        scheme = urlsplit(target).scheme
    except ValueError:
        raise CallFailed(f"{parts.hostname} redirected to what is no address.") from None
    if scheme != parts.scheme:
        raise CallFailed(
            f"{parts.hostname} redirected from {parts.scheme} to another scheme, which is not followed: "
            "enter the address that it leads to."
        )
    return target


def _ask(parts: SplitResult, method: str, body: str, deadline: _Deadline) -> tuple[int, str, str]:
    """Status, its words, and where the answer redirects to."""
    host = parts.hostname or ""
    target = quote(parts.path or "/", QUOTED) + (f"?{quote(parts.query, QUOTED)}" if parts.query else "")
    headers = {"User-Agent": "pgbr", "Connection": "close", "Content-Type": "text/plain; charset=utf-8"}
    content = body.encode() if method == "POST" else None
    connection = _connection(parts, deadline)
    try:
        connection.request(method, target, content, headers)
        answer = connection.getresponse()
        if deadline.over:  # headers that are cut off look like the end of them
            raise TimeoutError
        reason = "".join(letter for letter in answer.reason[:80] if letter.isprintable())
        return answer.status, reason, answer.headers.get("Location", "")[:4000]
    except (OSError, HTTPException, ValueError) as error:
        if deadline.over or isinstance(error, TimeoutError):
            raise NoAnswer(f"{host} did not answer within {deadline.seconds:.0f} s.") from error
        raise CallFailed(f"{host} could not be asked: {str(error)[:200] or type(error).__name__}") from error
    finally:
        connection.close()


def _connection(parts: SplitResult, deadline: _Deadline) -> HTTPConnection:
    host = parts.hostname or ""
    made = (
        _Secure(host, parts.port, context=_context()) if parts.scheme == "https" else _Plain(host, parts.port)
    )
    made.deadline = deadline
    return made


class _Plain(HTTPConnection):
    deadline: _Deadline

    def connect(self) -> None:
        self.sock = self.deadline.connect(self.host, self.port)


class _Secure(HTTPSConnection, _Plain):
    """Its own connect wraps the socket that `_Plain` made."""


@lru_cache(maxsize=1)
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Deadline:
    """Shuts every socket made through it when the time is over, also under a server that drips."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.over = False
        self._until = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()

    def connect(self, host: str, port: int) -> socket.socket:
        """Raises `OSError`, and `CallFailed` for what must not be called."""
        addresses = self._look_up(host, port)
        if any(is_metadata(str(entry[4][0])) for entry in addresses):
            raise CallFailed(f"{host} {NOT_ALLOWED}.")
        error = OSError("it has no address")
        for family, kind, protocol, _, address in addresses:
            made = socket.socket(family, kind, protocol)
            try:
                made.settimeout(self._left())
                made.connect(address)
            except OSError as failure:
                error = failure
                made.close()
            else:
                self._watch(made)
                return made
        raise error

    def _look_up(self, host: str, port: int) -> list[Any]:
        """In a thread, which is left behind when nobody answers: a look-up cannot be cut off."""
        answer: Future[list[Any]] = Future()

        def look() -> None:
            try:
                answer.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except Exception as error:  # noqa: BLE001  it is raised where the answer is awaited
                answer.set_exception(error)

        threading.Thread(target=look, daemon=True).start()
        return answer.result(self._left())

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no time is left")
        return left

    def _watch(self, made: socket.socket) -> None:
        made.settimeout(self._left())
        with self._lock:
            self._sockets.append(made.dup())
        if self.over:
            self._cut()

    def _cut(self) -> None:
        self.over = True
        with self._lock:
            for one in self._sockets:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
