"""Queue, workers, activity and accounts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from jobs.models import QueuedJob, WorkerProcess
from tests.admin.conftest import Belongings


def test_a_job_shows_its_payload_and_timeline(ada: Belongings) -> None:
    page = ada.client.get(f"/admin/jobs/queuedjob/{ada.waiting.pk}/change/").content.decode()
    assert ada.database.name in page
    assert "enqueued" in page.lower()


@pytest.mark.parametrize("payload", [[], "text", {"database_name": 7}, {"flags": "x"}])
def test_a_payload_of_any_shape_has_a_page(ada: Belongings, payload: Any) -> None:
    QueuedJob.objects.filter(pk=ada.waiting.pk).update(payload=payload)
    for url in (
        f"/admin/jobs/queuedjob/{ada.waiting.pk}/change/",
        "/admin/jobs/queuedjob/",
        "/admin/jobs/backupjob/",
        "/admin/",
    ):
        assert ada.client.get(url).status_code == 200, url


def test_a_list_of_jobs_is_cancelled_and_the_ended_ones_said(ada: Belongings) -> None:
    ended = QueuedJob.objects.create(queue="backup", user=ada.user, status="completed")
    chosen = [ada.waiting.pk, ended.pk]
    page = ada.client.post(
        "/admin/jobs/queuedjob/", {"action": "cancel", "_selected_action": chosen}, follow=True
    ).content.decode()
    assert "1 job cancelled." in page
    assert "has ended already" in page
    ada.waiting.refresh_from_db()
    assert ada.waiting.status == "cancelled"


def test_queue_workers_and_activity_cannot_be_edited(ada: Belongings, root: Client) -> None:
    for client in (ada.client, root):
        for model in ("queuedjob", "workerprocess", "activityevent", "backupjob"):
            assert client.get(f"/admin/jobs/{model}/add/").status_code == 403
        assert client.post(f"/admin/jobs/queuedjob/{ada.waiting.pk}/change/").status_code == 403
        assert client.post(f"/admin/jobs/queuedjob/{ada.waiting.pk}/delete/").status_code == 403


def test_a_silent_worker_is_told_from_a_living_one(ada: Belongings) -> None:
    silent = Now() - timedelta(days=1)
    WorkerProcess.objects.create(name="w1", host="h", pid=1, role="backup")
    WorkerProcess.objects.create(name="w2", host="h", pid=2, role="restore", heartbeat_at=silent)
    page = ada.client.get("/admin/jobs/workerprocess/").content.decode()
    assert page.count("badge-good") == 1
    assert page.count("not heard of") == 1


def test_whoever_is_added_becomes_staff_and_can_log_in(root: Client) -> None:
    password = "a-long-passphrase"
    form = {"username": "new", "password1": password, "password2": password, "usable_password": "true"}
    assert root.post("/admin/auth/user/add/", form).status_code == 302
    assert User.objects.get(username="new").is_staff
    login = Client().post("/admin/login/?next=/admin/", {"username": "new", "password": password})
    assert login.headers["Location"] == "/admin/"


def test_accounts_are_a_superusers_business(ada: Belongings, superuser: User) -> None:
    for url in ("/admin/auth/user/", "/admin/auth/user/add/", f"/admin/auth/user/{superuser.pk}/change/"):
        assert ada.client.get(url).status_code == 403
    form = {"username": "ada", "is_active": "on", "is_superuser": "on"}
    assert ada.client.post(f"/admin/auth/user/{ada.user.pk}/change/", form).status_code == 403
    ada.user.refresh_from_db()
    assert not ada.user.is_superuser
    assert "/admin/auth/user/" not in ada.client.get("/admin/").content.decode()


def test_an_account_that_owns_something_stays(ada: Belongings, root: Client) -> None:
    url = f"/admin/auth/user/{ada.user.pk}/delete/"
    page = root.post(url, {"word": "ada"}).content.decode()
    assert "It owns 1 databases. Delete them first" in page
    assert User.objects.filter(pk=ada.user.pk).exists()


def test_an_account_without_belongings_is_deleted_after_its_name_was_typed(user: User, root: Client) -> None:
    url = f"/admin/auth/user/{user.pk}/delete/"
    assert root.post(url, {"word": "eve"}).status_code == 400
    root.post(url, {"word": "ada"})
    assert not User.objects.filter(pk=user.pk).exists()


def test_nobody_deletes_their_own_account(superuser: User, root: Client) -> None:
    page = root.post(f"/admin/auth/user/{superuser.pk}/delete/", {"word": "root"}).content.decode()
    assert "your own account" in page
    assert User.objects.filter(pk=superuser.pk).exists()


def test_what_people_did_is_listed(ada: Belongings) -> None:
    page = ada.client.get("/admin/jobs/activityevent/").content.decode()
    assert ada.database.name in page
