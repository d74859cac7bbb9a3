"""An S3 endpoint may be written to hurt pgbr: what it answers ends in one short reason."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from jobs import artifacts
from jobs.models import Storage
from jobs.secrets import seal
from jobs.storage.base import StoreError
from jobs.storage.s3 import S3Store
from jobs.storage.s3_client import READ_SECONDS
from tests.admin.conftest import Belongings

Answer = tuple[int, dict[str, str], bytes]
LISTING = b"<ListBucketResult><Contents><Key>../x</Key><Size>1</Size>%s</Contents></ListBucketResult>"
ANSWERS: dict[str, Answer] = {
    "a web page": (200, {"Content-Type": "text/html"}, b"<html>"),
    "nothing": (200, {}, b""),
    "a redirect to itself": (307, {"Location": "/", "x-amz-bucket-region": "eu-west-1"}, b""),
    "a redirect": (301, {"Location": "http://127.0.0.1:1/"}, b""),
    "a date that is none": (
        200,
        {"Last-Modified": "never", "ETag": "x"},
        LISTING % b"<LastModified>never</LastModified>",
    ),
    "missing fields": (200, {}, LISTING % b""),
    "megabytes of error": (
        403,
        {},
        b"<Error><Code>No</Code><Message>" + b"A" * 3_000_000 + b"</Message></Error>",
    ),
    "entities": (
        403,
        {},
        b'<!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]><Error><Code>&y;</Code></Error>',
    ),
}


@pytest.fixture
def store_that_says() -> Iterator[Callable[[Answer], S3Store]]:
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> S3Store:
        status, headers, body = answer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_PUT = do_POST = do_HEAD = do_DELETE = do_GET

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return store(f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def store(endpoint: str) -> S3Store:
    return S3Store(
        endpoint=endpoint, region="us-east-1", bucket="bucket", access_key="AK", secret="very-secret",
        force_path_style=True, retry_seconds=0, name="evil",
    )  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
def test_strange_answers(store_that_says: Callable[[Answer], S3Store], answer: str) -> None:
    said = store_that_says(ANSWERS[answer])
    steps = (
        said.prepare,
        lambda: said.put_bytes("key", b"x"),
        lambda: list(said.read("key")),
        lambda: list(said.list()),
        lambda: said.stat("key"),
        lambda: said.delete("key"),
    )
    for reason in map(reason_of, steps):
        assert len(reason) < 2000
        assert "very-secret" not in reason
        assert "root:" not in reason


def reason_of(step: Callable[[], object]) -> str:
    """Nothing where it works: an endpoint may pretend."""
    try:
        step()
    except StoreError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "endpoint", ["http://169.254.169.254", "http://[fe80::1]", "http://[fd00:ec2::254]/x"]
)
def test_the_clouds_metadata_is_no_storage(endpoint: str) -> None:
    with pytest.raises(StoreError, match="not allowed"):
        store(endpoint).stat("key")


def test_an_endpoint_that_is_no_url() -> None:
    with pytest.raises(StoreError, match="must look like"):
        store("http://[::1")


def test_a_store_that_never_answers_is_given_up_soon_where_somebody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jobs.storage.s3.IMPATIENT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        started = time.monotonic()
        with pytest.raises(StoreError, match="Gave up"):
            store(f"http://127.0.0.1:{port}").stat("key")
        assert time.monotonic() - started < READ_SECONDS / 2


def test_a_store_that_is_always_busy_holds_no_thread_of_the_site(
    store_that_says: Callable[[Answer], S3Store], eve: Belongings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "PATIENCE_SECONDS", 0.2)
    endpoint = store_that_says((503, {}, b""))._bucket._parameters.endpoint
    storage = Storage.objects.create(
        user=eve.user,
        name="busy",
        endpoint=endpoint,
        bucket="bucket",
        access_key_id="AK",
        sealed_secret=seal("s"),
    )
    started = time.monotonic()
    assert eve.client.post(f"/admin/jobs/storage/{storage.pk}/test/").status_code == 302
    assert time.monotonic() - started < 10
