"""/api/uploads: what is answered to whom, and what arrives through a real web server."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from dashboard.views import uploads as views
from jobs import uploads
from jobs.models import Upload
from jobs.stores import default_storage, store_for
from jobs.upload_limits import CutOff
from tests.admin.conftest import Belongings, browser
from tests.conftest import Enqueue
from tests.services.test_uploads import DUMP, PAST
from tests.waiting import until
from tests.website import Website, credentials

URL = "/api/uploads"


@pytest.fixture(autouse=True)
def own_folder(settings: Settings, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "website" not in request.fixturenames:
        settings.BACKUP_FOLDER = tmp_path / "backups"


def send(client: Client, body: bytes = DUMP, query: str = "?name=shop.sql", **options: Any) -> Any:
    options = {"content_type": "application/octet-stream"} | options
    return client.post(URL + query, body, **options)


def test_a_file_is_taken_in_listed_and_deleted(ada: Belongings) -> None:
    response = send(ada.client, query="?" + f"name={quote('größe 🐘.sql')}")
    assert response.status_code == 201
    answer = response.json()
    row = Upload.objects.get()
    assert answer == {
        "id": str(row.pk), "name": "größe 🐘.sql", "size": len(DUMP),
        "sha256": hashlib.sha256(DUMP).hexdigest(),
        "contents": "plain SQL, made by pg_dump 17.6 from PostgreSQL 16.4",
    }  # fmt: skip
    listed = ada.client.get(URL).json()["uploads"]
    assert [found["id"] for found in listed] == [answer["id"]]
    assert listed[0]["state"] == "good"
    assert ada.client.delete(f"{URL}/{row.pk}").status_code == 204
    assert ada.client.get(URL).json() == {"uploads": []}
    assert list(store_for(default_storage()).list()) == []


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('attachment; filename="a b/shop.dump"', "shop.dump"),
        ("attachment; filename*=UTF-8''%e2%82%ac.sql", "€.sql"),
        ('attachment; filename="é.sql"'.encode().decode("latin-1"), "é.sql"),
    ],
)
def test_the_name_may_come_in_a_header(ada: Belongings, header: str, name: str) -> None:
    assert send(ada.client, query="", headers={"content-disposition": header}).json()["name"] == name


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "no name": ({"query": ""}, 400, "needs the name of its file"),
    "a name in no encoding": (
        {"query": "", "headers": {"content-disposition": "a; filename*=klingon''x"}}, 400, "needs the name"
    ),
    "empty": ({"body": b"", "CONTENT_LENGTH": "0"}, 400, "is empty"),
    "too large": ({"body": DUMP * 2}, 413, "larger than 200 B"),
    "a form": ({"content_type": "multipart/form-data; boundary=x"}, 415, "the file itself"),
    "no dump": ({"body": b"<!doctype html>"}, 422, "a web page"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_is_said_and_leaves_nothing(ada: Belongings, settings: Settings, what: str) -> None:
    settings.UPLOAD_MAX_BYTES = 200
    request, status, words = REFUSED[what]
    response = send(ada.client, **request)
    assert response.status_code == status
    assert words in response.json()["error"]
    assert not Upload.objects.exists()


def test_a_storage_that_takes_nothing_is_503_with_the_reason(ada: Belongings, settings: Settings) -> None:
    settings.BACKUP_FOLDER.parent.joinpath("backups").touch()
    response = send(ada.client)
    assert response.status_code == 503
    assert "backups exists already" in response.json()["error"]
    assert not Upload.objects.exists()


def test_others_are_told_that_there_is_nothing(ada: Belongings, eve: Belongings, root: Client) -> None:
    url = f"{URL}/{send(ada.client).json()['id']}"
    assert eve.client.get(URL).json() == root.get(URL).json() == {"uploads": []}
    missing = eve.client.delete(f"{URL}/00000000-0000-4000-8000-000000000000")
    assert eve.client.delete(url).status_code == missing.status_code == 404
    assert Upload.objects.exists()
    assert root.delete(url).status_code == 204


def test_strangers_and_forged_requests_get_nowhere(ada: Belongings) -> None:
    strict = browser(ada.user, enforce_csrf_checks=True)
    forms = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    for kind in ("application/octet-stream", *forms):
        assert send(strict, content_type=kind).status_code == 403
    # As a field of the body, where Django would look for it, the token counts for nothing.
    strict.cookies["pgbr_csrf"] = token = "x" * 32
    field = f"csrfmiddlewaretoken={token}".encode()
    assert send(strict, field, content_type=forms[0]).status_code == 403
    assert send(strict, field, content_type=forms[0], headers={"x-csrftoken": token}).status_code == 422
    assert send(Client()).status_code == Client().get(URL).status_code == 401
    assert not Upload.objects.exists()


def test_an_upload_in_use_is_not_deleted(ada: Belongings, enqueue: Enqueue) -> None:
    upload_id = send(ada.client).json()["id"]
    enqueue("restore", {"upload_id": upload_id})
    response = ada.client.delete(f"{URL}/{upload_id}")
    assert response.status_code == 409
    assert "Cancel that first" in response.json()["error"]


def test_uploads_leave_threads_to_the_others_and_turns_to_other_accounts(
    ada: Belongings, eve: Belongings
) -> None:
    with ExitStack() as others:
        for _ in range(views.MOST_EACH):
            others.enter_context(views.turns.turn(eve.user))
        assert send(eve.client).status_code == 503
        assert send(ada.client).status_code == 201
        for _ in range(views.MOST_AT_ONCE - views.MOST_EACH):
            others.enter_context(views.turns.turn(ada.user))
        assert send(ada.client).status_code == 503
    assert send(ada.client, b"no dump").status_code == 422
    assert send(ada.client).status_code == 201


def test_a_client_that_falls_silent_gives_its_thread_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "IDLE_SECONDS", 0.05)
    client, server = socket.socketpair()
    with client, server, server.makefile("rb", buffering=0) as body:
        client.send(DUMP)
        given: dict[str, Any] = {"CONTENT_LENGTH": "1000", "wsgi.input": body, "gunicorn.socket": server}
        pieces = views._pieces(RequestFactory().generic("POST", URL, **given), 1000)
        assert next(pieces) == DUMP
        with pytest.raises(CutOff, match="did not arrive as a whole"):
            next(pieces)
        assert server.gettimeout() is None


# Through gunicorn ---------------------------------------------------------------------------------


@pytest.fixture
def website(transactional_db: None, tmp_path: Path) -> Iterator[Website]:
    running = Website(tmp_path / "web.log", UPLOAD_MAX_BYTES=10_000_000)
    yield running
    running.stop()


def half(user: User, website: Website, *lines: str, body: bytes) -> socket.socket:
    """A request whose body is never complete."""
    sock = socket.create_connection(("127.0.0.1", website.port), timeout=30)
    headers = [f"{name}: {value}" for name, value in credentials(user).items()]
    head = "\r\n".join([f"POST {URL}?name=half.sql HTTP/1.1", "Host: 127.0.0.1", *headers, *lines, "", ""])
    sock.sendall(head.encode() + body)
    return sock


def test_through_a_real_web_server(user: User, website: Website) -> None:
    """One server for all of it: starting one is what takes the time."""
    large = DUMP + b"-- x\n" * 1_000_000
    digest = hashlib.sha256(large).hexdigest()
    # In chunks, of a length that nobody says
    parts = [large[at : at + 99_999] for at in range(0, len(large), 99_999)]
    response = website.request(user, "POST", f"{URL}?name=chunked.sql", iter(parts))
    answer = json.loads(response.read())
    assert (response.status, answer["size"], answer["sha256"]) == (201, len(large), digest)
    # With a length, as a content type that Django would read as a form
    kind = "application/x-www-form-urlencoded"
    response = website.request(user, "POST", f"{URL}?name=whole.sql", large, content_type=kind)
    assert (response.status, json.loads(response.read())["sha256"]) == (201, digest)

    # Too large: said before a byte is sent, and in the middle of chunks
    with half(user, website, "Content-Length: 10000001", body=b"") as sock:
        assert b" 413 " in sock.recv(1000).split(b"\r\n")[0]
    response = website.request(user, "POST", f"{URL}?name=x.sql", iter(parts * 3))
    assert (response.status, "10.0 MB" in response.read().decode()) == (413, True)
    with half(user, website, body=b"") as sock:
        assert b" 411 " in sock.recv(1000).split(b"\r\n")[0]
    # Cut off
    for line, body in (
        ("Content-Length: 1000000", large[:500_000]),
        ("Transfer-Encoding: chunked", b"fffff\r\n--"),
    ):
        with half(user, website, line, body=body):
            until(lambda: Upload.objects.filter(state="writing"), "it is being written")
        until(lambda: not Upload.objects.filter(name="half.sql"), "nothing is left")
    folder = Path(default_storage().folder)
    assert not [path for path in folder.rglob("*half*") if path.is_file()]
    # And then the next one
    assert website.request(user, "POST", f"{URL}?name=small.sql", DUMP).status == 201
    assert "Traceback" not in website.log.read_text()
    Upload.objects.update(keep_until=PAST)
    assert uploads.sweep() == 3
