"""The page that migrates. A URL goes in and never comes out."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.admin import migration_urls
from jobs.models import MigrationJob, QueuedJob
from jobs.secrets import unseal
from tests import servers
from tests.admin.conftest import Belongings
from tests.admin.forms import Form
from tests.admin.shop import MAJOR, Shop, make

ADD = "/admin/jobs/migrationjob/add/"


@pytest.fixture
def shop(ada: Belongings) -> Shop:
    return make(ada)


def page_of(client: Client, url: str, data: dict[str, Any] | None = None) -> str:
    response = client.get(url) if data is None else client.post(url, data)
    page = str(response.content.decode())
    assert servers.PASSWORDS[servers.SUPERUSER] not in page
    assert "super%20" not in page
    return page


def filled(shop: Shop, **changed: Any) -> dict[str, Any]:
    """From the registered database into a new one at a URL."""
    form = Form(page_of(shop.client, f"{ADD}?source={shop.database.pk}"))
    usual = {"target__url": shop.url, "target__mode": "new", "target__name": "moved"}
    return form.sent("check", **usual | changed)


def test_it_begins_with_the_database_one_came_from(shop: Shop) -> None:
    sent = Form(page_of(shop.client, f"{ADD}?source={shop.database.pk}")).sent()
    assert (sent["source-database"], sent["target-database"]) == ([str(shop.database.pk)], [""])
    assert f"{ADD}?source={shop.database.pk}" in page_of(
        shop.client, f"/admin/jobs/database/{shop.database.pk}/change/"
    )


def test_a_typed_url_is_kept_over_the_check_and_sealed_in_the_row(shop: Shop) -> None:
    page = page_of(shop.client, ADD, filled(shop))
    assert "badge-stop" not in page
    assert f"postgres:••••@127.0.0.1:{shop.server.port}" in page
    form = Form(page)
    assert form.values["target-url"] == [""]
    response = shop.client.post(ADD, form.sent("go"))
    (job,) = shop.jobs("migration")
    assert response.headers["Location"] == f"/admin/jobs/migrationjob/{job.pk}/change/"
    row = MigrationJob.objects.get(pk=job.pk)
    assert unseal(row.target_sealed_url, "it") == shop.url
    assert (row.mode, row.target_name, row.source_database) == ("new", "moved", shop.database)
    for url in (f"/admin/jobs/migrationjob/{job.pk}/change/", "/admin/jobs/migrationjob/",
                f"/admin/jobs/queuedjob/{job.pk}/change/", f"{ADD}?like={job.pk}", "/admin/"):  # fmt: skip
        page_of(shop.client, url)


def test_a_kept_url_is_nobody_elses(shop: Shop, eve: Belongings) -> None:
    sent = Form(page_of(shop.client, ADD, filled(shop))).sent("check", source__database=str(eve.database.pk))
    assert sent["target-kept"] != [""]
    response = eve.client.post(ADD, sent)
    assert response.status_code == 400
    assert "Choose a database, or give a URL." in response.content.decode()


def test_an_earlier_migration_is_run_with_changes(shop: Shop) -> None:
    shop.client.post(ADD, Form(page_of(shop.client, ADD, filled(shop, dump__exclude_tables="a"))).sent("go"))
    row = MigrationJob.objects.get()
    form = Form(page_of(shop.client, f"{ADD}?like={row.pk}"))
    assert form.values["dump-exclude_tables"] == ["a"]
    assert form.values["target-name"] == ["moved"]
    changed = Form(page_of(shop.client, ADD, form.sent("check", target__name="again")))
    shop.client.post(ADD, changed.sent("go"))
    again = MigrationJob.objects.exclude(pk=row.pk).get()
    assert unseal(again.target_sealed_url, "it") == shop.url
    assert again.flags == row.flags


def test_replacing_asks_for_the_targets_name(shop: Shop) -> None:
    other = servers.get(MAJOR).superuser_url("postgres")
    sent = filled(shop, source__database="", source__url=other, target__mode="", target__name="")
    page = page_of(shop.client, ADD, sent)
    form = Form(page)
    assert form.values["target-mode"] == ["replace"]
    assert shop.client.post(ADD, form.sent("go", word="x")).status_code == 400
    assert shop.jobs("migration") == []
    shop.client.post(ADD, form.sent("go", word=shop.name))
    assert [job.payload["target_name"] for job in shop.jobs("migration")] == [shop.name]


def test_source_and_target_that_are_the_same_are_refused(shop: Shop) -> None:
    page = page_of(shop.client, ADD, filled(shop, target__mode="replace", target__name=""))
    assert "are the same database" in page
    assert ("step", "go") not in Form(page).buttons


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"target__url": "mysql://a:hunter2@b/c"}, "postgresql://"),
    ({"target__url": ""}, "Choose a database, or give a URL."),
    ({"source__url": "postgresql://a:hunter2@c/d"}, "not both"),
    ({"dump__data_only": "on", "dump__schema_only": "on"}, "exclude each other"),
)


def test_what_does_not_go_together_is_refused_at_the_form(shop: Shop) -> None:
    sent = filled(shop)
    for changed, reason in REFUSED:
        fields = {name.replace("__", "-"): value for name, value in changed.items()}
        response = shop.client.post(ADD, sent | fields)
        page = response.content.decode()
        assert response.status_code == 400, changed
        assert reason in page, changed
        assert "hunter2" not in page
    assert QueuedJob.objects.filter(queue="migration").count() == 0


def test_only_the_latest_typed_urls_are_kept(shop: Shop, rf: Any) -> None:
    request = rf.get("/")
    request.session = {}
    names = [migration_urls.keep(request, f"postgresql://a:b@c/{number}") for number in range(9)]
    assert migration_urls.kept(request, names[-1]).endswith("/8")
    assert migration_urls.kept(request, names[0]) == ""
    assert len(request.session[migration_urls.KEY]) == migration_urls.MOST
    assert "postgresql" not in str(request.session)
    migration_urls.forget(request)
    assert migration_urls.kept(request, names[-1]) == ""
