"""The history of restores and migrations, undo, and the databases that are kept."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import MigrationJob, QueuedJob, RestoreJob
from tests import servers
from tests.admin.conftest import PASSWORD, Belongings
from tests.admin.shop import MAJOR, Shop, make
from tests.dashboard.test_pages import INLINE

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def shop(ada: Belongings) -> Shop:
    return make(ada)


def oid(name: str) -> int | None:
    with psycopg.connect(servers.get(MAJOR).superuser_url()) as connection:
        row = connection.execute("SELECT oid FROM pg_database WHERE datname = %s", [name]).fetchone()
    return row[0] if row else None


@pytest.fixture
def replaced(shop: Shop) -> Iterator[RestoreJob]:
    """As a restore leaves it that has replaced a database."""
    name = f"undo {uuid.uuid4().hex[:8]}"
    old = f"{name}_before"
    for made in (name, old):
        shop.server.create_database(made, servers.SUPERUSER)
    yield shop.restored(
        target_name=name, kept_name=old, kept_oid=oid(old), landed_oid=oid(name),
        kept_until=timezone.now() + timedelta(days=3),
    )  # fmt: skip
    for row in RestoreJob.objects.filter(target_name=name):
        for left in {name, old, row.kept_name or name}:
            shop.server.drop_database(left)


def page_of(client: Client, url: str) -> str:
    return str(client.get(url, follow=True).content.decode())


def step(row: RestoreJob | MigrationJob, name: str) -> str:
    return f"/admin/jobs/{row._meta.model_name}/{row.pk}/{name}/"


def test_the_page_of_a_restore_has_all_that_is_known(shop: Shop) -> None:
    row = shop.restored(
        status="failed", mode="existing", flags={"clean": True, "no_owner": True, "tables": ["a.b"]},
        error="2 errors\nTABLE public.x: no", log="pg_restore: said this", warnings=["beware"],
    )  # fmt: skip
    page = page_of(shop.client, step(row, "change"))
    assert "pg_restore --no-password --verbose --format=custom" in page
    assert "--single-transaction --exit-on-error --clean --no-owner --use-list=chosen.list" in page
    for shown in ("drop before creating, without owners", "pg_restore: said this", "beware", "2 errors",
                  "into a database with data", shop.name, f"{shop.restore}?like={row.pk}"):  # fmt: skip
        assert shown in page, shown


def test_texts_of_servers_and_tools_are_escaped(shop: Shop) -> None:
    columns: dict[str, Any] = {
        "error": HOSTILE, "log": HOSTILE, "warnings": [HOSTILE], "flags": {HOSTILE: HOSTILE},
        "progress": {"table": HOSTILE, "phase": HOSTILE}, "kept_name": HOSTILE, "target_name": HOSTILE,
        "mode": HOSTILE[:20],
    }  # fmt: skip
    named = {"source_database_name": HOSTILE, "target_database_name": HOSTILE}
    for status in ("failed", "running", "completed"):
        columns |= {"status": status, "started_at": timezone.now()}
        columns |= {"completed_at": None if status == "running" else timezone.now()}
        row = shop.restored(source_name=HOSTILE, **columns)
        moved = MigrationJob.objects.create(user=shop.user, **named, **columns)
        urls = [step(one, name) for one in (row, moved) for name in ("change", "undo", "drop")]
        for url in [*urls, "/admin/jobs/restorejob/", "/admin/jobs/migrationjob/", "/admin/"]:
            assert "<script>alert" not in page_of(shop.client, url), (status, url)


def test_a_row_of_unexpected_shape_still_has_a_page(shop: Shop) -> None:
    for flags in ({}, {"dump": [], "restore": 7}, {"dump": {"format": "x"}, "staged": "y"}):
        moved = MigrationJob.objects.create(user=shop.user, flags=flags, status="failed")
        assert shop.client.get(step(moved, "change")).status_code == 200
        assert shop.client.get(f"/admin/jobs/migrationjob/add/?like={moved.pk}").status_code == 200
        assert shop.client.get(step(shop.restored(flags=flags), "change")).status_code == 200


def test_why_a_job_waits_is_said(shop: Shop) -> None:
    reason = 'Waits: job 7 is writing into "shop" at db:5432.'
    common: dict[str, Any] = {"user": shop.user, "queue": "restore", "last_error": reason}
    queued = QueuedJob.objects.create(payload={"database_name": "real shop"}, **common)
    for url in ("/admin/jobs/restorejob/", "/admin/", f"/admin/jobs/restorejob/{queued.pk}/change/"):
        assert "Waits: job 7 is writing" in page_of(shop.client, url), url
    again = shop.restored(status="pending")
    QueuedJob.objects.create(id=again.pk, **common)
    page = page_of(shop.client, step(again, "change"))
    assert "Waits: job 7 is writing" in page
    assert "Cancel" in page
    assert "Undo" not in page


def test_what_is_kept_is_listed_until_it_is_dropped(
    replaced: RestoreJob, shop: Shop, eve: Belongings
) -> None:
    kept, listed = str(replaced.kept_name), "/admin/jobs/restorejob/"
    assert kept in page_of(shop.client, listed)
    assert "in 3 days" in page_of(shop.client, listed)
    assert kept not in page_of(eve.client, listed)
    response = shop.client.post(step(replaced, "drop"), {"word": "yes"})
    assert response.status_code == 400
    assert oid(kept) is not None
    shop.client.post(step(replaced, "drop"), {"word": kept}, follow=True)
    assert oid(kept) is None
    assert kept not in page_of(shop.client, listed)


def test_undo_says_what_happens_asks_and_swaps(replaced: RestoreJob, shop: Shop) -> None:
    page = page_of(shop.client, step(replaced, "undo"))
    assert f"{replaced.kept_name} takes that name back" in page
    assert shop.client.post(step(replaced, "undo"), {"word": "x"}).status_code == 400
    assert oid(replaced.target_name) == replaced.landed_oid
    shop.client.post(step(replaced, "undo"), {"word": replaced.target_name})
    assert oid(replaced.target_name) == replaced.kept_oid
    page = page_of(shop.client, step(replaced, "change"))
    assert "Undone" in page
    assert "what was restored into" in page
    assert "Undo …" not in page


def test_an_undo_that_is_refused_says_why(replaced: RestoreJob, shop: Shop) -> None:
    RestoreJob.objects.filter(pk=replaced.pk).update(landed_oid=1)
    typed = {"word": replaced.target_name}
    response = shop.client.post(step(replaced, "undo"), typed, follow=True)
    assert "Nothing was done" in response.content.decode()
    assert "cannot be undone" in page_of(shop.client, step(shop.restored(), "undo"))


def test_a_rerun_queues_the_same_again(shop: Shop) -> None:
    row = shop.restored(mode="new", target_name="fresh", flags={"no_owner": True})
    page = shop.client.post(step(row, "rerun"), follow=True).content.decode()
    assert "is queued with the same options" in page
    (job,) = shop.jobs()
    assert (job.payload["target_name"], job.payload["flags"]) == ("fresh", {"no_owner": True})
    shop.client.post(f"/admin/jobs/queuedjob/{job.pk}/cancel/")
    assert RestoreJob.objects.get(pk=job.pk).status == "cancelled"
    assert "The restore" in page_of(shop.client, f"/admin/jobs/queuedjob/{job.pk}/change/")


def test_the_list_is_searched_and_filtered(shop: Shop) -> None:
    failed = shop.restored(status="failed", error="disk full")
    shop.restored()
    for query in ("q=disk+full", "status__exact=failed", f"q={failed.pk}"):
        rows = shop.client.get(f"/admin/jobs/restorejob/?{query}").context["cl"].result_list
        assert list(rows) == [failed], query


def test_nothing_of_somebody_elses_is_there(shop: Shop, eve: Belongings, root: Client) -> None:
    row = shop.restored(kept_name="shop_before")
    moved = MigrationJob.objects.create(
        user=shop.user, source_database_name="a", target_database_name="b", kept_name="b_before",
        source_sealed_url=shop.database.sealed_url, status="completed",
    )  # fmt: skip
    gets = [step(one, name) for one in (row, moved) for name in ("change", "undo", "drop")]
    gets += [shop.restore, shop.contents, f"/admin/jobs/database/{shop.database.pk}/restore/"]
    posts = [step(one, name) for one in (row, moved) for name in ("cancel", "rerun", "undo", "drop")]
    for url in gets:
        response = eve.client.get(url)
        assert response.status_code == 404 or response.headers.get("Location") == "/admin/", url
        assert root.get(url).status_code in (200, 302), url
        assert "/admin/login/" in Client().get(url).headers["Location"], url
    for url in [*posts, shop.restore]:
        data = {"word": "b_before", "step": "go", "tables": "x"}
        assert eve.client.post(url, data).status_code == 404, url
    assert shop.jobs() == shop.jobs("migration") == []
    for name in ("restorejob", "migrationjob"):
        assert "_before" not in page_of(eve.client, f"/admin/jobs/{name}/")
    for like in (f"{eve_wizard(eve)}?like={row.pk}", f"/admin/jobs/migrationjob/add/?like={moved.pk}"):
        assert shop.name not in page_of(eve.client, like)


def eve_wizard(eve: Belongings) -> str:
    return f"/admin/jobs/backupjob/{eve.backup.pk}/restore/"


def test_no_page_has_inline_code(shop: Shop) -> None:
    row = shop.restored(kept_name="shop_before", status="failed", error="x", warnings=["y"])
    moved = MigrationJob.objects.create(user=shop.user, status="completed", target_name="x")
    for url in (
        shop.restore, shop.contents, step(row, "change"), step(row, "undo"), step(row, "drop"),
        step(moved, "change"), "/admin/jobs/restorejob/", "/admin/jobs/migrationjob/",
        "/admin/jobs/migrationjob/add/",
    ):  # fmt: skip
        response = shop.client.get(url)
        assert response.status_code == 200, url
        assert not INLINE.search(response.content.decode()), url


def test_steps_are_taken_by_pressing_a_button_only(shop: Shop) -> None:
    row = shop.restored()
    for name in ("cancel", "rerun"):
        assert shop.client.get(step(row, name)).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(shop.user, backend="django.contrib.auth.backends.ModelBackend")
    for url in [*(step(row, name) for name in ("rerun", "undo", "drop")), shop.restore]:
        assert strict.post(url, {"word": row.target_name}).status_code == 403
    assert PASSWORD not in page_of(shop.client, step(row, "change"))


def test_what_changes_data_runs_again_only_when_its_name_is_typed(shop: Shop) -> None:
    row = shop.restored(mode="replace")
    asked = shop.client.post(step(row, "rerun"), follow=True).content.decode()
    assert f"Type <strong>{row.target_name}</strong>" in asked
    assert shop.jobs() == []
    shop.client.post(step(row, "again"), {"word": row.target_name})
    assert [job.payload["mode"] for job in shop.jobs()] == ["replace"]


def test_history_is_deleted_but_not_while_a_database_is_kept(shop: Shop, replaced: RestoreJob) -> None:
    ended = shop.restored()
    shop.client.post(step(ended, "forget"), {"word": ended.target_name})
    assert not RestoreJob.objects.filter(pk=ended.pk).exists()
    shop.client.post(step(replaced, "forget"), {"word": replaced.target_name})
    assert "still kept" in page_of(shop.client, step(replaced, "forget"))
    assert RestoreJob.objects.filter(pk=replaced.pk).exists()
