"""What belongs to somebody else does not exist: no page shows it and no request changes it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import models
from django.test import Client

from jobs.models import ActivityEvent, BackupJob, Database, QueuedJob, Storage
from tests.admin.conftest import PASSWORD, Belongings, MakeBelongings, browser

LISTS = ["database", "backupjob", "storage", "queuedjob", "workerprocess", "activityevent"]


def urls_of(owned: Belongings) -> dict[str, list[str]]:
    """Every page and every step of each of their objects."""
    jobs = "/admin/jobs"
    database, backup = f"{jobs}/database/{owned.database.pk}", f"{jobs}/backupjob/{owned.backup.pk}"
    storage, waiting = f"{jobs}/storage/{owned.storage.pk}", f"{jobs}/queuedjob/{owned.waiting.pk}"
    return {
        "get": [
            *(f"{database}/{step}/" for step in ("change", "backup", "delete", "history")),
            *(f"{backup}/{step}/" for step in ("change", "delete", "history")),
            *(f"{storage}/{step}/" for step in ("change", "delete", "history")),
            *(f"{waiting}/{step}/" for step in ("change", "history")),
            f"{jobs}/backupjob/{owned.waiting.pk}/change/",
            f"{jobs}/database/backup/?ids={owned.database.pk}",
            f"{jobs}/backupjob/delete/?ids={owned.backup.pk}",
            f"/api/backups/{owned.backup.pk}/download",
        ],
        "post": [
            *(f"{database}/{step}/" for step in ("change", "backup", "test", "delete")),
            *(f"{backup}/{step}/" for step in ("change", "cancel", "rerun", "pin", "delete")),
            *(f"{storage}/{step}/" for step in ("change", "test", "delete")),
            *(f"{waiting}/{step}/" for step in ("change", "cancel")),
            f"{jobs}/database/backup/?ids={owned.database.pk}",
            f"{jobs}/backupjob/delete/?ids={owned.backup.pk}",
        ],
    }


def snapshot() -> list[dict[str, Any]]:
    kinds: list[type[models.Model]] = [Database, BackupJob, QueuedJob, Storage, ActivityEvent]
    return [row for kind in kinds for row in kind._default_manager.order_by("pk").values()]


def names(owned: Belongings) -> list[str]:
    return [owned.database.name, owned.storage.name, str(owned.backup.pk), str(owned.waiting.pk)]


def test_pages_of_somebody_else_are_missing(ada: Belongings, eve: Belongings) -> None:
    for url in urls_of(ada)["get"]:
        response = eve.client.get(url)
        missing = response.status_code == 404 or response.headers.get("Location") == "/admin/"
        assert missing, f"{url}: {response.status_code}"


def test_a_missing_object_answers_just_like_somebody_elses(ada: Belongings, eve: Belongings) -> None:
    for url in urls_of(ada)["get"]:
        nobodys = url
        for key in (ada.database.pk, ada.backup.pk, ada.storage.pk, ada.waiting.pk):
            nobodys = nobodys.replace(str(key), "00000000-0000-4000-8000-000000000000")
        theirs, missing = eve.client.get(url), eve.client.get(nobodys)
        assert (theirs.status_code, theirs.headers.get("Location")) == (
            missing.status_code,
            missing.headers.get("Location"),
        ), url


def test_no_request_changes_what_is_somebody_elses(ada: Belongings, eve: Belongings) -> None:
    before, stored = snapshot(), ada.stored()
    form = {"name": "mine now", "word": ada.database.name, "pinned": "yes", "url": "postgresql://a:b@c/d"}
    for url in urls_of(ada)["post"]:
        for data in (form, form | {"word": ada.storage.name}):
            response = eve.client.post(url, data)
            missing = response.status_code == 404 or response.headers.get("Location") == "/admin/"
            assert missing or response.status_code == 403, f"{url}: {response.status_code}"
    assert snapshot() == before
    assert ada.stored() == stored


@pytest.mark.parametrize(
    ("model", "action"),
    [
        ("database", "test_connections"),
        ("backupjob", "cancel"),
        ("backupjob", "rerun"),
        ("backupjob", "pin"),
        ("backupjob", "unpin"),
        ("storage", "test"),
        ("queuedjob", "cancel"),
    ],
)
def test_list_actions_pass_over_what_is_somebody_elses(
    ada: Belongings, eve: Belongings, model: str, action: str
) -> None:
    before = snapshot()
    chosen = [ada.database.pk, ada.backup.pk, ada.storage.pk, ada.waiting.pk]
    eve.client.post(f"/admin/jobs/{model}/", {"action": action, "_selected_action": chosen})
    assert snapshot() == before


@pytest.mark.parametrize("model", LISTS)
def test_lists_hold_only_ones_own(ada: Belongings, eve: Belongings, model: str) -> None:
    page = eve.client.get(f"/admin/jobs/{model}/").content.decode()
    assert not [name for name in names(ada) if name in page]


def test_the_home_page_holds_only_ones_own(ada: Belongings, eve: Belongings) -> None:
    page = eve.client.get("/admin/").content.decode()
    assert eve.database.name in page
    assert not [name for name in names(ada) if name in page]


def test_a_superuser_sees_everything_of_everyone(ada: Belongings, eve: Belongings, root: Client) -> None:
    for owned in (ada, eve):
        for url in urls_of(owned)["get"]:
            if "history" not in url:
                assert root.get(url).status_code in (200, 302), url
        assert owned.database.name in root.get("/admin/jobs/database/").content.decode()


def test_only_the_storages_one_may_use_are_offered(ada: Belongings, eve: Belongings) -> None:
    for url in ("/admin/jobs/database/add/", f"/admin/jobs/database/{eve.database.pk}/backup/"):
        page = eve.client.get(url).content.decode()
        assert "store-eve" in page, url
        assert "store-ada" not in page, url


def test_a_storage_of_somebody_else_cannot_be_chosen(ada: Belongings, eve: Belongings) -> None:
    url = f"/admin/jobs/database/{eve.database.pk}/backup/"
    response = eve.client.post(url, {"format": "custom", "storage": str(ada.storage.pk)})
    assert response.status_code == 400
    assert QueuedJob.objects.filter(user=eve.user).count() == 1


@pytest.mark.parametrize("model", LISTS)
def test_every_page_asks_for_a_login(model: str, ada: Belongings) -> None:
    for url in [f"/admin/jobs/{model}/", "/admin/", *urls_of(ada)["get"]]:
        response = Client().get(url)
        assert response.status_code == 302, url
        assert "/admin/login/" in response.headers["Location"], url


def test_an_account_that_is_disabled_or_not_staff_is_kept_out(user: User, ada: Belongings) -> None:
    for column in ("is_active", "is_staff"):
        User.objects.filter(pk=user.pk).update(is_active=True, is_staff=True)
        client = browser(user)
        User.objects.filter(pk=user.pk).update(**{column: False})
        for url in ("/admin/", "/admin/jobs/database/", f"/api/backups/{ada.backup.pk}/download"):
            assert "/admin/login/" in client.get(url).headers["Location"], (column, url)


def test_a_post_without_the_csrf_token_does_nothing(ada: Belongings) -> None:
    strict = browser(ada.user, enforce_csrf_checks=True)
    before = snapshot()
    for url in [*urls_of(ada)["post"], "/admin/jobs/database/add/"]:
        response = strict.post(url, {"word": ada.database.name, "name": "x"})
        assert response.status_code == 403, url
        assert "was not accepted" in response.content.decode()
    assert snapshot() == before


def test_steps_are_not_taken_by_following_a_link(ada: Belongings) -> None:
    before = snapshot()
    for url in (
        f"/admin/jobs/database/{ada.database.pk}/test/",
        f"/admin/jobs/backupjob/{ada.backup.pk}/rerun/",
        f"/admin/jobs/backupjob/{ada.backup.pk}/pin/",
        f"/admin/jobs/queuedjob/{ada.waiting.pk}/cancel/",
    ):
        assert ada.client.get(url).status_code == 405, url
    assert snapshot() == before


def test_sealed_values_cannot_be_searched_for(ada: Belongings, root: Client) -> None:
    for client in (ada.client, root):
        for url in (
            "/admin/jobs/database/?sealed_url__startswith=g",
            "/admin/jobs/storage/?sealed_secret__startswith=g",
            "/admin/jobs/backupjob/?database__sealed_url__startswith=g",
            "/admin/jobs/backupjob/?user__password__startswith=p",
        ):
            assert client.get(url).status_code == 400, url


def test_no_page_shows_a_password_or_a_sealed_value(ada: Belongings, root: Client) -> None:
    lists = [f"/admin/jobs/{model}/" for model in LISTS]
    for client in (ada.client, root):
        for url in [*urls_of(ada)["get"], *lists, "/admin/"]:
            response = client.get(url)
            body = b"" if response.streaming else response.content
            assert PASSWORD.encode() not in body, url
            assert ada.database.sealed_url.encode() not in body, url


def test_new_accounts_need_no_permissions_by_hand(belongings_of: MakeBelongings, db: None) -> None:
    fresh = belongings_of(User.objects.create_user("new", password="x", is_staff=True))
    for model in LISTS:
        assert fresh.client.get(f"/admin/jobs/{model}/").status_code == 200
    assert fresh.client.get("/admin/auth/user/").status_code == 403
