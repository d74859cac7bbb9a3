from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import ActivityEvent, BackupJob, Database, QueuedJob
from jobs.secrets import unseal
from jobs.targets import remember_facts
from tests.admin.conftest import PASSWORD, Belongings
from tests.workers import database_url

ADD = "/admin/jobs/database/add/"
URL = f"postgresql://app:{PASSWORD}@db.test:5433/shop"
HOSTILE = "<script>alert(1)</script>"


def filled(**changed: Any) -> dict[str, Any]:
    return {"name": "orders", "url": URL, "sslmode": "", "_save": "Save"} | changed


def page_of(database: Database) -> str:
    return f"/admin/jobs/database/{database.pk}/change/"


def test_a_database_is_added_sealed_and_owned(ada: Belongings) -> None:
    response = ada.client.post(ADD, filled(max_minutes="90", max_rate="2.5"))
    database = Database.objects.get(name="orders")
    assert response.status_code == 302
    assert database.user == ada.user
    assert unseal(database.sealed_url, "it") == URL
    assert (database.max_duration, database.bandwidth_limit) == (5400, 2_500_000)
    assert ActivityEvent.objects.filter(action="add", object_id=str(database.pk)).exists()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"url": f"mysql://app:{PASSWORD}@db.test/shop"}, "postgresql://"),
        ({"url": ""}, "A URL is needed"),
        ({"url": f"postgresql://app:{PASSWORD}@/shop?host=/run/postgresql"}, "socket"),
        ({"sslmode": "verify-full"}, "CA"),
        ({"ca_certificate": "no PEM"}, "PEM"),
        ({"name": "shop-ada"}, "registered already"),
        ({"name": " "}, "required"),
        ({"name": "a\x07b"}, "printable"),
        ({"max_minutes": "0"}, "greater than or equal"),
    ],
)
def test_a_form_that_cannot_be_used_is_refused_with_the_reason_and_without_the_url(
    ada: Belongings, changed: dict[str, Any], reason: str
) -> None:
    response = ada.client.post(ADD, filled(**changed))
    page = response.content.decode()
    assert response.status_code == 200
    assert reason in page
    assert PASSWORD not in page
    assert Database.objects.filter(user=ada.user).count() == 1


def test_two_accounts_may_use_the_same_name(ada: Belongings, eve: Belongings) -> None:
    assert eve.client.post(ADD, filled(name=ada.database.name)).status_code == 302
    assert Database.objects.filter(name=ada.database.name).count() == 2


def test_the_url_is_masked_and_stays_when_left_empty(ada: Belongings) -> None:
    before = ada.database.sealed_url
    page = ada.client.get(page_of(ada.database)).content.decode()
    assert "postgresql://app:••••@db.ada.test:5432/shop" in page
    ada.client.post(page_of(ada.database), filled(name="renamed", url=""))
    ada.database.refresh_from_db()
    assert ada.database.name == "renamed"
    assert unseal(ada.database.sealed_url, "it") == unseal(before, "it")


def test_a_new_url_forgets_what_the_old_server_said_and_an_empty_one_does_not(ada: Belongings) -> None:
    remember_facts(ada.database, {"version": "16.4"})
    ada.client.post(page_of(ada.database), filled(url=""))
    ada.database.refresh_from_db()
    assert ada.database.facts == {"version": "16.4"}
    ada.client.post(page_of(ada.database), filled())
    ada.database.refresh_from_db()
    assert ada.database.facts is None


def test_a_superuser_edits_by_the_owners_rights(ada: Belongings, root: Client) -> None:
    """The files of the worker's machine are for superusers' own databases only."""
    socket = {"url": "postgresql://app@/shop?host=/run/postgresql", "name": "shop-ada"}
    assert root.post(page_of(ada.database), filled(**socket)).status_code == 200
    assert root.post(page_of(ada.database), filled(name="by root")).status_code == 302
    ada.database.refresh_from_db()
    assert (ada.database.name, ada.database.user) == ("by root", ada.user)
    assert root.post(ADD, filled(url=socket["url"])).status_code == 302


def test_a_connection_test_shows_what_the_server_is(ada: Belongings) -> None:
    ada.client.post(ADD, filled(url=database_url()))
    database = Database.objects.get(name="orders")
    page = ada.client.post(f"/admin/jobs/database/{database.pk}/test/", follow=True).content.decode()
    assert "orders: connected. PostgreSQL" in page
    assert "the primary" in page
    database.refresh_from_db()
    assert database.checked_at is not None


def test_a_failed_connection_test_says_why(ada: Belongings) -> None:
    ada.client.post(ADD, filled(url=f"postgresql://app:{PASSWORD}@127.0.0.1:1/shop"))
    database = Database.objects.get(name="orders")
    page = ada.client.post(f"/admin/jobs/database/{database.pk}/test/", follow=True).content.decode()
    assert "Cannot log in to 127.0.0.1:1" in page
    assert PASSWORD not in page


@pytest.mark.django_db(transaction=True)
def test_a_connection_is_tried_when_it_is_saved_and_only_then(ada: Belongings) -> None:
    """A wrong password is no news of the first night."""
    url = f"postgresql://app:{PASSWORD}@127.0.0.1:1/shop"
    page = ada.client.post(ADD, filled(url=url), follow=True).content.decode()
    database = Database.objects.get(name="orders")
    assert "added successfully" in page
    assert "Cannot log in to 127.0.0.1:1" in page
    assert f"/database/{database.pk}/backup/" in page

    page = ada.client.post(page_of(database), filled(url="", max_rate="2"), follow=True).content.decode()
    assert "Cannot log in" not in page


def test_what_a_server_says_is_escaped(ada: Belongings) -> None:
    facts = {"version": HOSTILE, "owner": HOSTILE, "missing_privileges": [HOSTILE]}
    remember_facts(ada.database, facts)
    Database.objects.filter(pk=ada.database.pk).update(name=HOSTILE)
    BackupJob.objects.filter(pk=ada.backup.pk).update(database_name=HOSTILE)
    QueuedJob.objects.filter(pk=ada.waiting.pk).update(payload={"database_name": HOSTILE, "flags": HOSTILE})
    steps = ("change", "backup", "delete")
    urls = [f"/admin/jobs/database/{ada.database.pk}/{step}/" for step in steps]
    for url in [
        *urls,
        "/admin/",
        "/admin/jobs/database/",
        "/admin/jobs/backupjob/",
        "/admin/jobs/queuedjob/",
    ]:
        page = ada.client.get(url).content.decode()
        assert HOSTILE not in page, url
        assert "&lt;script&gt;" in page, url


def test_a_url_that_cannot_be_opened_any_more_is_said_in_the_list_and_the_form(
    ada: Belongings, settings: Any
) -> None:
    settings.ENCRYPTION_KEYS = ["QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="]
    for url in ("/admin/jobs/database/", page_of(ada.database)):
        assert "cannot be decrypted" in ada.client.get(url).content.decode()
    assert ada.client.post(page_of(ada.database), filled()).status_code == 302


def test_deleting_asks_for_the_name_and_keeps_the_backups(ada: Belongings) -> None:
    url = f"/admin/jobs/database/{ada.database.pk}/delete/"
    assert "Its backups stay: 1 good ones" in ada.client.get(url).content.decode()
    assert ada.client.post(url, {"word": "shop"}).status_code == 400
    assert Database.objects.filter(pk=ada.database.pk).exists()
    ada.client.post(url, {"word": ada.database.name})
    assert not Database.objects.filter(pk=ada.database.pk).exists()
    ada.backup.refresh_from_db()
    assert ada.backup.database_id is None
    assert ada.client.get(f"/admin/jobs/backupjob/{ada.backup.pk}/change/").status_code == 200
    assert len(ada.stored()) == 3
