"""Uploading a file in a real browser: chosen, dropped, refused, cancelled."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import FilePayload, Page

from jobs.models import Upload
from tests.e2e.conftest import OpenPage
from tests.services.test_uploads import DUMP
from tests.waiting import until

PASSWORD = "a-long-passphrase"
DROP = """(text) => {
  const files = new DataTransfer();
  files.items.add(new File([text], "dropped.sql"));
  const dropped = new DragEvent("drop", { dataTransfer: files, bubbles: true });
  document.querySelector(".drop").dispatchEvent(dropped);
}"""


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """The upload page, as ada sees it."""
    User.objects.create_user("ada", password=PASSWORD, is_staff=True)
    opened = open_page(390, "light")
    opened.goto("/admin/jobs/upload/add/")
    opened.get_by_label("Username:").fill("ada")
    opened.get_by_label("Password:").fill(PASSWORD)
    opened.get_by_role("button", name="Log in").click()
    opened.wait_for_url("**/upload/add/")
    return opened


def test_a_file_is_chosen_sent_and_found_again(page: Page) -> None:
    file = FilePayload(name="größe 1.sql", mimeType="", buffer=DUMP)
    page.get_by_label("File", exact=True).set_input_files(file)
    status = page.get_by_role("status")
    status.get_by_text("größe 1.sql is here: plain SQL, made by pg_dump 17.6").wait_for()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "status"
    page.evaluate(DROP, DUMP.decode())
    status.get_by_text("dropped.sql is here").wait_for()
    status.get_by_role("link", name="Details").click()
    page.get_by_text("it is deleted in 2").wait_for()
    assert set(Upload.objects.values_list("name", "state")) == {
        ("größe 1.sql", "good"),
        ("dropped.sql", "good"),
    }


def test_what_cannot_be_used_is_said_before_anything_is_sent(page: Page, tmp_path: Path) -> None:
    (tmp_path / "empty.sql").touch()
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "empty.sql")
    page.get_by_role("status").get_by_text("empty.sql is empty").wait_for()
    assert not Upload.objects.exists()


def test_an_upload_under_way_is_cancelled(page: Page, tmp_path: Path) -> None:
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 500_000}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
    file = tmp_path / "large.sql"
    file.write_bytes(DUMP + b"-- x\n" * 4_000_000)
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_text("of 20.0 MB").wait_for()
    until(lambda: Upload.objects.filter(state="writing"), "it is being written")
    page.get_by_role("button", name="Cancel").press("Enter")
    page.get_by_role("status").get_by_text("large.sql: cancelled").wait_for()
    until(lambda: not Upload.objects.exists(), "nothing is left of it")
    assert page.get_by_label("File", exact=True).is_visible()
