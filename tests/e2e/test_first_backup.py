"""From an empty instance to a deleted backup, as its first user goes, on a desk and on a phone."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from jobs.models import BackupCopy, BackupJob
from tests.e2e.conftest import OpenPage, Site
from tests.waiting import until
from tests.workers import database_url

PASSWORD = "a-long-passphrase"


def claim(page: Page, site: Site) -> None:
    page.goto(site.manage("login_link"))
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set password and log in").click()
    expect(page.get_by_role("heading", name="Databases")).to_be_visible()


def add_database(page: Page) -> None:
    page.get_by_role("link", name="Add database").click()
    page.get_by_label("Name:").fill("shop")
    page.get_by_label("URL:").fill(database_url())
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("shop: connected. PostgreSQL")).to_be_visible()


def back_up(page: Page) -> None:
    page.get_by_role("link", name="Back up now").first.click()
    page.get_by_text("How it is written").click()
    page.get_by_label("Without privileges").check()
    page.get_by_role("button", name="Back up now").click()
    expect(page.get_by_text("A backup of shop is queued.")).to_be_visible()


def watch_until_completed(page: Page) -> None:
    def completed() -> bool:
        page.reload()
        failed = page.locator("#result_list .badge-failed")
        assert failed.count() == 0, BackupJob.objects.get().error
        return page.locator("#result_list .badge-completed").count() == 1

    until(completed, "the backup is completed", seconds=60)


def open_detail(page: Page) -> None:
    page.locator("#result_list").get_by_role("link", name="shop").click()
    expect(page.get_by_text("without privileges")).to_be_visible()
    expect(page.locator("pre.command")).to_contain_text("--no-privileges")
    assert settings.DATABASES["default"]["PASSWORD"] not in page.content()


def download(page: Page, into: Path) -> None:
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    started.value.save_as(into)
    assert re.fullmatch(r"shop_\d{8}T\d{6}Z\.dump", started.value.suggested_filename)
    content = into.read_bytes()
    assert content[:5] == b"PGDMP"
    assert hashlib.sha256(content).hexdigest() == BackupJob.objects.get().sha256


def delete(page: Page) -> None:
    stored = Path(settings.BACKUP_FOLDER) / BackupCopy.objects.get().storage_key
    assert stored.exists()
    page.get_by_role("link", name="Delete").click()
    expect(page.get_by_text("This is the last good backup of shop")).to_be_visible()
    page.get_by_label("Type shop to move it to the trash").fill("shop")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("1 backup moved to the trash for 7 days.")).to_be_visible()
    page.get_by_role("link", name="To the trash").click()
    page.locator("#result_list").get_by_role("link", name="shop").click()
    assert stored.exists()
    page.get_by_role("link", name="Delete for good").click()
    page.get_by_label("Type shop to delete for good").fill("shop")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("1 backup deleted for good.")).to_be_visible()
    assert not BackupJob.objects.exists()
    assert not stored.exists()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_first_backup(
    site: Site, open_page: OpenPage, start_worker: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    page = open_page(width, scheme)
    page.goto("/admin/login/")
    expect(page.get_by_text("Nobody has an account here yet")).to_be_visible()
    claim(page, site)
    expect(page.get_by_text("No worker is running")).to_be_visible()
    start_worker()
    add_database(page)
    back_up(page)
    watch_until_completed(page)
    open_detail(page)
    download(page, tmp_path / "shop.dump")
    delete(page)
    page.get_by_role("link", name="Overview", exact=True).first.click()
    expect(page.get_by_text("No worker is running")).to_have_count(0)
    page.get_by_role("button", name="Log out").click()
    page.goto("/admin/")
    expect(page.get_by_label("Password:")).to_be_visible()
