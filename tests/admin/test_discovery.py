"""Discovering and watching a server in the dashboard."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db.models.functions import Now

from jobs import databases
from jobs.models import Database
from jobs.secrets import seal
from jobs.targets import conninfo_for
from schedules import services
from tests import servers
from tests.abuse.fakepostgres import FakePostgres
from tests.admin.conftest import Belongings
from tests.admin.forms import Form

pytestmark = pytest.mark.django_db

MARK = f"a{uuid.uuid4().hex[:8]}_"
HOSTILE = f'{MARK}"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def server() -> Iterator[servers.TestServer]:
    made = servers.get(17)
    names = (f"{MARK}main", f"{MARK}crm", HOSTILE)
    for name in names:
        made.create_database(name)
    yield made
    for name in names:
        made.drop_database(name)


@pytest.fixture
def main(ada: Belongings, server: servers.TestServer) -> Database:
    ada.database.sealed_url = seal(server.url(f"{MARK}main"))
    ada.database.save()
    return ada.database


def discover(database: Database) -> str:
    return f"/admin/jobs/database/{database.pk}/discover/"


def change(database: Database) -> str:
    return f"/admin/jobs/database/{database.pk}/change/"


def names(ada: Belongings) -> set[str]:
    rows = Database.objects.filter(user=ada.user).select_related("user")
    return {conninfo_for(row).dbname for row in rows}


def test_page_lists_what_is_there_and_registers_what_is_chosen(ada: Belongings, main: Database) -> None:
    page = ada.client.get(discover(main)).content.decode()
    assert f"{MARK}crm" in page
    assert "registered as shop-ada" in page
    assert " MB" in page
    assert "<script>alert" not in page
    form = Form(page, "discover-form")
    assert "names" not in form.values, "nothing is chosen yet"

    answer = ada.client.post(discover(main), form.sent(names=[f"{MARK}crm", HOSTILE]))

    assert answer.status_code == 302
    assert "Without a schedule" in " ".join(str(said) for said in get_messages(answer.wsgi_request))
    assert names(ada) == {f"{MARK}main", f"{MARK}crm", HOSTILE}
    for url in ("/admin/jobs/database/", "/admin/", discover(main)):
        assert b"<script>alert" not in ada.client.get(url).content


def test_only_free_ones_can_be_chosen(ada: Belongings, main: Database) -> None:
    page = ada.client.get(discover(main)).content.decode()

    assert f'value="{MARK}crm"' in page
    assert f'value="{MARK}main"' not in page


def test_all_can_be_registered_at_once(ada: Belongings, main: Database) -> None:
    ada.client.post(discover(main), {"all": "1"})
    assert {f"{MARK}main", f"{MARK}crm", HOSTILE} <= names(ada)


@pytest.mark.parametrize(("sent", "said"), [([], "None was chosen"), (["a\nb"], "line break")])
def test_what_cannot_be_registered_is_told(
    ada: Belongings, main: Database, sent: list[str], said: str
) -> None:
    answer = ada.client.post(discover(main), {"names": sent})

    assert said in " ".join(str(message) for message in get_messages(answer.wsgi_request))
    assert Database.objects.filter(user=ada.user).count() == 1


def test_page_of_a_strangers_connection_is_not_there(
    eve: Belongings, ada: Belongings, main: Database
) -> None:
    assert eve.client.get(discover(main)).status_code == 404
    assert eve.client.post(discover(main), {"all": "1"}).status_code == 404


def test_hostile_server_holds_no_thread(ada: Belongings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "LONGEST_SECONDS", 1.0)
    with FakePostgres({}, "hangs") as hostile:
        url = f"postgresql://u:hunter2@127.0.0.1:{hostile.port}/x?sslmode=disable"
        Database.objects.filter(pk=ada.database.pk).update(sealed_url=seal(url))
        answer = ada.client.get(discover(ada.database))

    assert answer.status_code == 302
    assert "not done within 1 s" in " ".join(str(message) for message in get_messages(answer.wsgi_request))


# Watching


def filled(**changed: Any) -> dict[str, Any]:
    return {"name": "shop-ada", "url": "", "sslmode": "", "_save": "Save"} | changed


def test_form_keeps_patterns_and_schedule_and_asks_for_a_look(ada: Belongings, eve: Belongings) -> None:
    plan = services.Plan(name="nightly", cron_expression="@daily")
    nightly = services.create(ada.database, plan, by=ada.user)
    theirs = services.create(eve.database, plan, by=eve.user)
    Database.objects.filter(pk=ada.database.pk).update(watched_at=Now())
    page = ada.client.get(change(ada.database)).content.decode()
    assert str(nightly.pk) in page
    assert str(theirs.pk) not in page

    sent = filled(watch="on", include=" shop_*\r\n\r\ncrm\r\n", exclude="*_test", schedule=str(nightly.pk))
    assert ada.client.post(change(ada.database), sent).status_code == 302

    row = Database.objects.get(pk=ada.database.pk)
    assert (row.watch, row.watch_include, row.watch_exclude) == (True, ["shop_*", "crm"], ["*_test"])
    assert (row.watch_schedule_id, row.watched_at) == (nightly.pk, None)
    page = ada.client.get(change(ada.database)).content.decode()
    assert "shop_*\ncrm</textarea>" in page


def test_saving_without_a_change_of_the_watch_asks_for_no_look(ada: Belongings) -> None:
    Database.objects.filter(pk=ada.database.pk).update(watched_at=Now(), watched={"found": 3}, watch=True)

    ada.client.post(change(ada.database), filled(watch="on", protected="on"))
    row = Database.objects.get(pk=ada.database.pk)
    assert row.protected
    assert row.watched_at is not None
    ada.client.post(change(ada.database), filled(watch="on", url="postgresql://u@elsewhere.test/x"))
    assert Database.objects.filter(pk=row.pk, watched__isnull=True, watched_at=None).exists()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"include": "x" * 201}, "At most 100 patterns"),
        ({"exclude": "\n".join(f"p{number}" for number in range(101))}, "At most 100 patterns"),
        ({"schedule": str(uuid.uuid4())}, "Select a valid choice"),
    ],
)
def test_patterns_and_schedules_that_will_not_do(
    ada: Belongings, changed: dict[str, Any], reason: str
) -> None:
    answer = ada.client.post(change(ada.database), filled(watch="on", **changed))

    assert reason in answer.content.decode()
    assert not Database.objects.get(pk=ada.database.pk).watch


def test_what_the_last_look_found_is_shown(ada: Belongings) -> None:
    seen = {
        "found": 4, "new": ["shop-ada-new"], "vanished": [["crm here", "<crm>"]], "left": ["left alone"],
        "problems": ["odd could not be registered: <why>"], "known": [],
    }  # fmt: skip
    Database.objects.filter(pk=ada.database.pk).update(watch=True, watched=seen, watched_at=Now())

    page = ada.client.get(change(ada.database)).content.decode()
    for words in ("Vanished", "&lt;crm&gt;", "crm here", "shop-ada-new", "left alone", "&lt;why&gt;"):
        assert words in page
    assert "1 vanished from its server" in ada.client.get("/admin/").content.decode()
    Database.objects.filter(pk=ada.database.pk).update(watched=seen | {"vanished": []})
    assert "watching its server failed" in ada.client.get("/admin/").content.decode()
