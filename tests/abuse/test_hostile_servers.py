"""A user's own PostgreSQL may be written to hurt pgbr: nothing of it ends in a crash or a held thread."""

from __future__ import annotations

import time

import pytest
from django.contrib.messages import get_messages

from jobs import databases
from jobs.secrets import seal
from tests.abuse.fakepostgres import FakePostgres
from tests.admin.conftest import Belongings

LIES = {
    "NUL": {"version": (25, b"17\0.2")},
    "no UTF-8": {"version": (25, b"\xff\xfe")},
    "no JSON": {"extensions": (114, b"{oops")},
    "NUL in JSON": {"extensions": (114, b'{"a": "\\u0000"}')},
    "half a character": {"extensions": (114, b'{"a": "\\ud800"}')},
    "no list": {"extensions": (114, b"3"), "settings": (1009, b"{noequals}")},
    "no number": {"version_num": (23, b"abc")},
    "not a number": {"version_num": (701, b"NaN")},
    "a text for a number": {"version_num": (25, b"abc")},
    "three million characters": {"owner": (25, b"9" * 3_000_000)},
}


def said_of(eve: Belongings, server: FakePostgres) -> str:
    """What the connection test says, on a page that is not an error page."""
    eve.database.sealed_url = seal(f"postgresql://u:hunter2@127.0.0.1:{server.port}/x?sslmode=disable")
    eve.database.save()
    answer = eve.client.post(f"/admin/jobs/database/{eve.database.pk}/test/")
    assert answer.status_code == 302
    eve.database.refresh_from_db()
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


@pytest.mark.parametrize("lie", LIES)
def test_lies_about_itself(eve: Belongings, lie: str) -> None:
    with FakePostgres(LIES[lie]) as server:
        said = said_of(eve, server)
    assert "shop-eve: " in said
    assert "connected" not in said
    assert eve.database.facts is None
    assert len(said) < 2000


def test_markup_is_shown_as_it_is(eve: Belongings) -> None:
    with FakePostgres({"version": (25, b"<script>alert(1)</script>")}) as server:
        assert "connected" in said_of(eve, server)
    for page in ("/admin/jobs/database/", f"/admin/jobs/database/{eve.database.pk}/change/", "/admin/"):
        assert b"<script>alert" not in eve.client.get(page).content


@pytest.mark.parametrize("how", ["hangs", "chatters"])
def test_one_that_hangs_or_never_stops_talking_is_cut_off(
    eve: Belongings, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "LONGEST_SECONDS", 1.0)
    started = time.monotonic()
    with FakePostgres({}, how) as server:
        assert "not done within 1 s" in said_of(eve, server)
    assert time.monotonic() - started < 10
