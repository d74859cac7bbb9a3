"""At three in the morning: from the home page to a restored database, and back again."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from jobs.databases import register
from jobs.models import BackupJob, MigrationJob, RestoreJob
from jobs.services import enqueue_backup
from tests import sample, servers
from tests.e2e.conftest import OpenPage, Site
from tests.waiting import until

PASSWORD = "a-long-passphrase"
STATEMENTS = "CREATE TABLE items (id int PRIMARY KEY); INSERT INTO items SELECT generate_series(1, 1000);"


@pytest.fixture
def url() -> Iterator[str]:
    """Of a database on a real server."""
    server, name = servers.get(17), f"night {uuid.uuid4().hex[:8]}"
    sample.make(server, name, STATEMENTS)
    yield server.superuser_url(name)
    with psycopg.connect(server.superuser_url()) as connection:
        like = "SELECT datname FROM pg_database WHERE datname LIKE %s"
        left = connection.execute(like, [f"{name}%"]).fetchall()
    for (database,) in left:
        server.drop_database(database)


def count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM items").fetchone()
    return int(row[0]) if row else -1


def log_in(page: Page) -> None:
    page.goto("/admin/login/")
    page.get_by_label("Username:").fill("root")
    page.get_by_label("Password:").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/")


def shot(page: Page, name: str, scheme: str, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, name
    if shots := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{shots}/night-{name}-{scheme}-{width}.png", full_page=True)


def completed(page: Page, row: RestoreJob | MigrationJob) -> bool:
    page.reload()
    row.refresh_from_db()
    assert row.status != "failed", row.error
    return row.status == "completed"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_damaged_database_is_restored_in_three_steps_and_the_restore_undone(
    site: Site, open_page: OpenPage, start_worker: Any, url: str, width: int, scheme: str
) -> None:
    root = User.objects.create_superuser("root", password=PASSWORD)
    database = register(root, "shop", url, by=root)
    start_worker()
    enqueue_backup(database, {}, by=root)
    until(lambda: BackupJob.objects.filter(status="completed").exists(), "the backup is made", seconds=60)
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM items WHERE id > 3")

    page = open_page(width, scheme)
    log_in(page)
    page.get_by_role("link", name="Restore …").click()
    shot(page, "checked", scheme, width)
    name = page.locator(".verdict .target").inner_text()
    page.keyboard.type(name)  # the field has the focus already
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"A restore into {name} is queued.")).to_be_visible()

    row = until(lambda: RestoreJob.objects.first(), "the restore begins", seconds=30)
    assert row is not None
    until(lambda: completed(page, row), "the restore is completed", seconds=60)
    assert count(url) == 1000
    page.goto(f"/admin/jobs/restorejob/{row.pk}/change/")
    shot(page, "completed", scheme, width)
    page.get_by_role("link", name="Undo").click()
    shot(page, "undo", scheme, width)
    page.get_by_label(f"Type {name} to swap the two").fill(name)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("is again what it was before")).to_be_visible()
    assert count(url) == 3
    page.goto("/admin/jobs/restorejob/")
    shot(page, "kept", scheme, width)
    expect(page.get_by_text("Replaced databases that are kept")).to_be_visible()


def test_a_table_is_picked_into_a_scratch_database_and_a_database_is_migrated(
    site: Site, open_page: OpenPage, start_worker: Any, url: str
) -> None:
    root = User.objects.create_superuser("root", password=PASSWORD)
    database = register(root, "shop", url, by=root)
    start_worker()
    enqueue_backup(database, {}, by=root)
    until(lambda: BackupJob.objects.filter(status="completed").exists(), "the backup is made", seconds=60)
    page = open_page(390, "light")
    log_in(page)
    page.goto(f"/admin/jobs/backupjob/{BackupJob.objects.get().pk}/change/")
    page.get_by_role("link", name="Contents").click()
    page.get_by_label("items", exact=True).check()
    page.get_by_role("button", name="Restore the chosen into a new database").click()
    scratch = f"{url.rpartition('/')[2].replace('%20', ' ')} picked"  # dropped with the rest
    page.get_by_label("Name of the database there").fill(scratch)
    go(page, "Restore")
    row = until(lambda: RestoreJob.objects.first(), "the restore begins", seconds=30)
    assert row is not None
    until(lambda: completed(page, row), "the table is restored", seconds=60)
    assert count(servers.get(17).superuser_url(scratch)) == 1000

    page.goto(f"/admin/jobs/migrationjob/add/?source={database.pk}")
    page.locator("#id_target-url").fill(servers.get(17).superuser_url())
    page.get_by_label("A new database").check()
    page.get_by_label("Name of the database there").fill(f"{scratch} moved")
    go(page, "Migrate")
    until(lambda: completed(page, MigrationJob.objects.get()), "the migration is done", seconds=60)
    assert count(servers.get(17).superuser_url(f"{scratch} moved")) == 1000
    expect(page.get_by_text("Replaced databases")).to_have_count(0)


def go(page: Page, button: str) -> None:
    page.locator(".submit-bar").get_by_role("button", name="Check").click()
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_text("is queued.")).to_be_visible()
