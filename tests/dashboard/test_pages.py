from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpRequest
from django.test import Client
from django.views.defaults import permission_denied, server_error

from dashboard.middleware import POLICY
from jobs.models import BackupJob, Database, QueuedJob, WorkerProcess
from tests.admin.conftest import Belongings

INLINE = re.compile(r"<style|\sstyle=|<script(?![^>]*\ssrc=)[^>]*>|\son\w+=|javascript:", re.IGNORECASE)


def test_the_root_leads_to_the_dashboard() -> None:
    assert Client().get("/").headers["Location"] == "/admin/"


def test_home_warns_when_no_worker_runs(ada: Belongings) -> None:
    assert "No worker is running" in ada.client.get("/admin/").content.decode()
    for queue in settings.PROCESSORS:
        WorkerProcess.objects.create(name=queue, host="h", pid=1, role=queue, concurrency=5)
    page = ada.client.get("/admin/").content.decode()
    assert "No worker is running" not in page
    assert "1 worker, 5 at once" in page


def test_home_shows_the_newest_good_backup_and_how_the_last_run_ended(ada: Belongings) -> None:
    failed = BackupJob.objects.create(
        user=ada.user, database=ada.database, database_name="x", status="failed", error="disk full",
        completed_at="2100-01-01T00:00Z",
    )  # fmt: skip
    page = ada.client.get("/admin/").content.decode()
    assert f"/admin/jobs/backupjob/{ada.backup.pk}/change/" in page
    assert "10.0 kB" in page
    assert f"/admin/jobs/backupjob/{failed.pk}/change/" in page
    assert "disk full" in page


def test_a_backup_without_a_good_copy_is_no_good_backup(ada: Belongings) -> None:
    ada.backup.copies.update(state="failed")
    assert "none yet" in ada.client.get("/admin/").content.decode()


def test_home_counts_what_waits(ada: Belongings) -> None:
    assert "0 running, 1 waiting" in ada.client.get("/admin/").content.decode()


def test_home_of_a_new_account_says_what_to_do(ada: Belongings) -> None:
    BackupJob.objects.all().delete()
    QueuedJob.objects.all().delete()
    Database.objects.all().delete()
    page = ada.client.get("/admin/").content.decode()
    assert "No database is registered yet" in page
    assert "No backup has been made yet" in page


def test_every_answer_carries_the_policy_and_no_page_has_inline_code(ada: Belongings, root: Client) -> None:
    urls = [
        "/admin/", "/admin/password_change/", "/admin/jobs/", "/admin/auth/user/", "/admin/auth/user/add/",
        *(f"/admin/jobs/{model}/" for model in ("database", "backupjob", "storage", "queuedjob")),
        "/admin/jobs/workerprocess/", "/admin/jobs/activityevent/", "/admin/jobs/database/add/",
        f"/admin/jobs/database/{ada.database.pk}/change/", f"/admin/jobs/database/{ada.database.pk}/backup/",
        f"/admin/jobs/database/{ada.database.pk}/history/", f"/admin/jobs/storage/{ada.storage.pk}/change/",
        f"/admin/jobs/backupjob/{ada.backup.pk}/change/", f"/admin/jobs/backupjob/{ada.backup.pk}/delete/",
        f"/admin/jobs/queuedjob/{ada.waiting.pk}/change/", f"/admin/auth/user/{ada.user.pk}/delete/",
        f"/admin/auth/user/{ada.user.pk}/password/", "/nowhere/",
    ]  # fmt: skip
    for url in urls:
        response = root.get(url)
        assert response.headers["Content-Security-Policy"] == POLICY, url
        assert not INLINE.search(response.content.decode()), url
    login = Client().get("/admin/login/").content.decode()
    assert not INLINE.search(login)


@pytest.mark.parametrize(("status", "heading"), [(404, "nothing here"), (403, "not yours to do")])
def test_error_pages_are_calm(ada: Belongings, status: int, heading: str) -> None:
    url = {404: "/nowhere/", 403: "/admin/auth/user/"}[status]
    response = ada.client.get(url)
    assert response.status_code == status
    assert heading in response.content.decode()


def test_error_pages_need_nothing_that_may_be_broken() -> None:
    request = HttpRequest()
    for view, arguments in ((server_error, ()), (permission_denied, (Exception("secret reason"),))):
        page: Any = view(request, *arguments)
        assert "pgbr" in page.content.decode()
        assert "secret reason" not in page.content.decode()
