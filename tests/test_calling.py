"""A call ends in time whatever the server does, and goes nowhere but where it was meant to go."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from jobs import calling
from jobs.calling import CallFailed, NoAnswer, call
from pgbr.ports import free_port
from tests.schedules.monitor import Monitor


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor() as started:
        yield started


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """One that does as `talk` says with each connection; its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    def serve(client: socket.socket) -> None:
        with suppress(OSError), client:
            talk(client)

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/secret-token"
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def silence(client: socket.socket) -> None:
    client.settimeout(60)
    while client.recv(1 << 16):
        pass


def drip(client: socket.socket, line: bytes = b"HTTP/1.1 200 OK\r\n") -> None:
    client.sendall(line[:8])
    while True:
        client.sendall(b"0")
        time.sleep(0.05)


def drip_headers(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        client.sendall(b"a")
        time.sleep(0.05)


@pytest.mark.parametrize("talk", [silence, drip, drip_headers])
def test_silent_and_dripping_servers_are_cut_off(talk: Callable[[socket.socket], None]) -> None:
    with server(talk) as url, pytest.raises(NoAnswer, match="did not answer within 0 s"):
        call(url, "text", seconds=0.4)


def test_look_up_without_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ends.wait(60))

    with pytest.raises(NoAnswer):
        call("http://monitor.example.com/", "text", seconds=0.2)
    ends.set()


def test_answer_without_end_is_not_read() -> None:
    def chatter(client: socket.socket) -> None:
        client.recv(1 << 16)
        client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            client.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")

    with server(chatter) as url:
        call(url, "text")


def test_text_is_posted(monitor: Monitor) -> None:
    call(f"{monitor.url}/a b?q=ä#x".replace(" ", "%20"), "Größe: 3")

    (called,) = monitor.calls
    assert (called.method, called.path, called.body) == ("POST", "/a%20b?q=%C3%A4", "Größe: 3")
    assert called.agent == "pgbr"


def test_redirect_within_the_scheme_is_followed(monitor: Monitor) -> None:
    monitor.answers["/old"] = ["/new"]

    call(f"{monitor.url}/old", "text")
    assert monitor.paths == ["/old", "/new"]


@pytest.mark.parametrize("target", ["https://127.0.0.1/x", "file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_redirect_to_another_scheme_is_not(monitor: Monitor, target: str) -> None:
    monitor.answers["/old"] = [target]

    with pytest.raises(CallFailed, match="another scheme"):
        call(f"{monitor.url}/old", "text")
    assert monitor.paths == ["/old"]


def test_redirects_in_circles_have_an_end(monitor: Monitor) -> None:
    monitor.answers["/old"] = ["/old"] * 20

    with pytest.raises(CallFailed, match="more than 3 times"):
        call(f"{monitor.url}/old", "text")
    assert len(monitor.calls) == 4


def test_metadata_is_not_connected_to_also_by_a_redirect(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a harmless address in the place of those."""
    monkeypatch.setattr(calling, "is_metadata", lambda address: address == "127.0.0.2")
    monitor.answers["/old"] = [monitor.url.replace("127.0.0.1", "127.0.0.2") + "/new"]

    for url in (f"{monitor.url}/old", monitor.url.replace("127.0.0.1", "127.0.0.2")):
        with pytest.raises(CallFailed, match="not allowed"):
            call(url, "text")
    assert monitor.paths == ["/old"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ftp://example.com/x", "must look like"),
        ("file:///etc/passwd", "must look like"),
        ("http://[::1", "must look like"),
        ("http://exa mple.com/", "must look like"),
        ("http://example.com/\r\nX: y", "must look like"),
        ("http://u:p@example.com/", "no user and no password"),
        ("http://" + "a" * 70 + ".invalid/", "could not be asked"),
    ],
)
def test_what_cannot_be_called_is_refused(url: str, expected: str) -> None:
    with pytest.raises(CallFailed, match=expected):
        call(url, "text")


def test_nobody_there_is_told_without_the_address() -> None:
    with pytest.raises(CallFailed, match=r"could not be asked: .*refused") as refused:
        call(f"http://127.0.0.1:{free_port()}/secret-token", "text")
    assert "secret-token" not in str(refused.value)


def test_status_is_told(monitor: Monitor) -> None:
    monitor.answers["/x"] = [500]

    with pytest.raises(CallFailed, match="answered 500 Internal Server Error"):
        call(f"{monitor.url}/x", "text")
