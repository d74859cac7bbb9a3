from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.admin.views.main import ChangeList
from django.db.models.functions import Now
from pytest_django.fixtures import Settings

from jobs.models import BackupCopy, BackupJob, QueuedJob, Storage
from jobs.storage.local import LocalStore
from tests.admin.conftest import Belongings, stored_backup
from tests.conftest import Enqueue

HOSTILE = "<script>alert(1)</script>"
LIST = "/admin/jobs/backupjob/"


def step(backup: BackupJob, name: str) -> str:
    return f"{LIST}{backup.pk}/{name}/"


def ended(ada: Belongings, status: str, **columns: Any) -> BackupJob:
    return BackupJob.objects.create(
        user=ada.user, database=ada.database, database_name=ada.database.name, status=status, **columns
    )


def test_the_page_of_a_backup_has_all_that_is_known(ada: Belongings) -> None:
    BackupJob.objects.filter(pk=ada.backup.pk).update(
        flags={"schemas": ["a b; rm"], "no_owner": True}, log="pg_dump: said this", warnings=["beware"],
        manifest={"client_version": "16.15", "server_version": "16.4"},
    )  # fmt: skip
    page = ada.client.get(step(ada.backup, "change")).content.decode()
    command = shlex.join(["--schema=a b; rm"]).replace("'", "&#x27;")
    texts = (
        "pg_dump --no-password",
        "--compress=zstd:3",
        "without owners",
        "pg_dump: said this",
        "10000 bytes",
    )
    for shown in (*texts, command, "beware", ada.copy.storage_key, str(ada.backup.sha256), "store-ada"):
        assert shown in page, shown


def test_texts_of_servers_and_tools_are_escaped(ada: Belongings) -> None:
    columns: dict[str, Any] = {
        "error": HOSTILE, "log": HOSTILE, "warnings": [HOSTILE], "flags": {HOSTILE: HOSTILE},
        "manifest": {"server_version": HOSTILE, "client_version": HOSTILE}, "progress": {"table": HOSTILE},
    }  # fmt: skip
    for status in ("failed", "running"):
        backup = ended(ada, status, started_at=Now(), **columns)
        for url in (step(backup, "change"), LIST, "/admin/"):
            assert HOSTILE not in ada.client.get(url).content.decode(), (status, url)


@pytest.mark.parametrize("shape", [{"progress": {}}, {"flags": {"format": "nonsense"}}, {"manifest": {}}])
def test_a_row_of_unexpected_shape_still_has_a_page(ada: Belongings, shape: dict[str, Any]) -> None:
    backup = ended(ada, "failed", **shape)
    assert ada.client.get(step(backup, "change")).status_code == 200


def test_filters_and_search_find(ada: Belongings) -> None:
    failed = ended(ada, "failed", error="disk full", created_at=Now())
    for query, found in (
        ("status__exact=failed", [failed]),
        ("q=disk+full", [failed]),
        (f"q={ada.backup.pk}", [ada.backup]),
        (f"database={ada.database.name}&status__exact=completed", [ada.backup]),
        ("database=other", []),
    ):
        rows = ada.client.get(f"{LIST}?{query}").context["cl"].result_list
        assert list(rows) == found, query


def test_cancelling_a_waiting_job_ends_it(ada: Belongings) -> None:
    ada.client.post(f"/admin/jobs/queuedjob/{ada.waiting.pk}/cancel/")
    ada.waiting.refresh_from_db()
    assert ada.waiting.status == "cancelled"
    assert BackupJob.objects.get(pk=ada.waiting.pk).status == "cancelled"


def test_cancelling_what_has_ended_says_so(ada: Belongings) -> None:
    page = ada.client.post(step(ada.backup, "cancel"), follow=True).content.decode()
    assert "is waiting or running" in page


def test_a_rerun_queues_the_same_flags_again(ada: Belongings) -> None:
    backup = ended(ada, "failed", flags={"format": "plain"})
    ada.client.post(step(backup, "rerun"))
    job = QueuedJob.objects.exclude(pk=ada.waiting.pk).get()
    assert job.payload["flags"] == {"format": "plain"}


def test_pinning_protects_from_deletion_until_unpinned(ada: Belongings) -> None:
    ada.client.post(step(ada.backup, "pin"), {"pinned": "yes"})
    page = ada.client.post(step(ada.backup, "delete"), {"word": ada.database.name}).content.decode()
    assert "is pinned: unpin it first" in page
    ada.client.post(step(ada.backup, "pin"), {"pinned": "no"})
    ada.client.post(step(ada.backup, "delete"), {"word": ada.database.name})
    assert BackupJob.objects.get(pk=ada.backup.pk).trashed_at


def test_deleting_names_what_is_lost_and_asks(ada: Belongings) -> None:
    page = ada.client.get(step(ada.backup, "delete")).content.decode()
    assert "10.0 kB in store-ada" in page
    assert f"This is the last good backup of {ada.database.name}" in page
    response = ada.client.post(step(ada.backup, "delete"), {"word": "yes"})
    assert response.status_code == 400
    assert "Nothing was deleted" in response.content.decode()
    assert len(ada.stored()) == 3


def test_deleting_takes_the_artifact_its_manifest_and_globals_and_nothing_else(ada: Belongings) -> None:
    other = stored_backup(ada.database, ada.storage)
    ada.client.post(step(ada.backup, "delete-for-good"), {"word": ada.database.name})
    assert list(BackupJob.objects.filter(user=ada.user)) == [other]
    assert all(other.id.hex[:8] in key for key in ada.stored())
    assert len(ada.stored()) == 3


def test_several_are_deleted_after_one_question(ada: Belongings) -> None:
    other = stored_backup(ada.database, ada.storage)
    chosen = [ada.backup.pk, other.pk]
    response = ada.client.post(LIST, {"action": "delete_with_artifact", "_selected_action": chosen})
    url = response.headers["Location"]
    assert "Delete 2 backups" in ada.client.get(url).content.decode()
    ada.client.post(url, {"word": ada.database.name})
    assert BackupJob.objects.filter(trashed_at__isnull=False).count() == 2
    action = {"action": "delete_for_good", "_selected_action": chosen}
    response = ada.client.post(f"{LIST}?trash=yes", action)
    ada.client.post(response.headers["Location"], {"word": ada.database.name})
    assert ada.stored() == []


def test_what_is_deleted_waits_in_the_trash_and_can_be_taken_back(ada: Belongings) -> None:
    page = ada.client.get(step(ada.backup, "delete")).content.decode()
    assert "It waits in the trash for 7 days" in page
    assert "to move it to the trash" in page
    ada.client.post(step(ada.backup, "delete"), {"word": ada.database.name})
    assert len(ada.stored()) == 3
    assert list(ada.client.get(LIST).context["cl"].result_list) == []
    assert list(ada.client.get(f"{LIST}?trash=yes").context["cl"].result_list) == [ada.backup]
    page = ada.client.get(step(ada.backup, "change")).content.decode()
    assert "in the trash" in page
    assert "Delete for good" in page
    assert ada.client.get(f"/api/backups/{ada.backup.pk}/download").status_code == 200
    ada.client.post(step(ada.backup, "take-back"))
    assert list(ada.client.get(LIST).context["cl"].result_list) == [ada.backup]


def test_several_are_taken_back_from_the_list(ada: Belongings) -> None:
    ada.client.post(step(ada.backup, "delete"), {"word": ada.database.name})
    ada.client.post(f"{LIST}?trash=yes", {"action": "take_back", "_selected_action": [ada.backup.pk]})
    assert not BackupJob.objects.get(pk=ada.backup.pk).trashed_at


def test_a_database_can_be_wiped_into_the_trash(ada: Belongings, eve: Belongings) -> None:
    pinned = stored_backup(ada.database, ada.storage, pinned=True)
    others = stored_backup(eve.database, eve.storage)
    url = f"/admin/jobs/database/{ada.database.pk}/wipe/"
    assert url in ada.client.get(f"/admin/jobs/database/{ada.database.pk}/change/").content.decode()
    assert "Delete 1 backup of" in ada.client.get(url).content.decode()
    ada.client.post(url, {"word": ada.database.name})
    trashed = BackupJob.objects.filter(trashed_at__isnull=False)
    assert list(trashed) == [ada.backup]
    page = ada.client.get(step(ada.backup, "change")).content.decode()
    assert f"ada deleted all backups of {ada.database.name}." in page
    assert not {pinned.pk, others.pk} & set(trashed.values_list("pk", flat=True))
    assert "There is none to delete" in ada.client.get(url).content.decode()


def test_without_a_trash_the_page_deletes_for_good(ada: Belongings, settings: Settings) -> None:
    settings.TRASH_DAYS = 0
    assert "deleted at once" in ada.client.get(step(ada.backup, "delete")).content.decode()
    page = ada.client.post(step(ada.backup, "delete"), {"word": ada.database.name}, follow=True)
    assert "1 backup deleted for good" in page.content.decode()
    assert ada.stored() == []


def test_what_a_restore_needs_is_not_deleted_for_good(ada: Belongings, enqueue: Enqueue) -> None:
    enqueue("restore", {"backup_id": str(ada.backup.pk)})
    page = ada.client.get(step(ada.backup, "delete-for-good")).content.decode()
    assert "a restore from it waits or runs" in page


def test_a_locked_copy_says_until_when(ada: Belongings) -> None:
    BackupCopy.objects.update(locked_until=datetime(2126, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert (
        "locked until 2126-01-02 03:04:05 UTC" in ada.client.get(step(ada.backup, "change")).content.decode()
    )
    page = ada.client.post(
        step(ada.backup, "delete-for-good"), {"word": ada.database.name}, follow=True
    ).content.decode()
    assert "is locked until 2126-01-02" in page
    assert len(ada.stored()) == 3


def test_a_storage_that_does_not_delete_keeps_the_row_and_says_so(ada: Belongings) -> None:
    Storage.objects.filter(pk=ada.storage.pk).update(kind="s3", sealed_secret="not sealed with our key")
    page = ada.client.post(
        step(ada.backup, "delete-for-good"), {"word": ada.database.name}, follow=True
    ).content.decode()
    assert "could not be deleted, which is tried again" in page
    assert BackupJob.objects.filter(pk=ada.backup.pk).exists()
    assert len(list(LocalStore(ada.storage.folder).list())) == 3


def test_a_backup_in_progress_cannot_be_deleted(ada: Belongings) -> None:
    running = BackupJob.objects.create(
        id=ada.waiting.pk, user=ada.user, database_name=ada.database.name, status="pending"
    )
    page = ada.client.post(step(running, "delete"), {"word": ada.database.name}).content.decode()
    assert "has not ended yet: cancel it first" in page
    assert BackupJob.objects.filter(pk=running.pk).exists()


def test_the_list_needs_no_more_queries_for_more_rows(
    ada: Belongings, django_assert_max_num_queries: Any
) -> None:
    for _ in range(12):
        stored_backup(ada.database, ada.storage)
    with django_assert_max_num_queries(20):
        assert ada.client.get(LIST).status_code == 200


def test_a_row_added_while_the_list_is_made_comes_with_the_actions(
    ada: Belongings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the page's script finds a row to choose and no bar to act with."""
    BackupJob.objects.filter(user=ada.user).delete()
    counted = ChangeList.get_results

    def count_then_insert(self: ChangeList, request: Any) -> None:
        counted(self, request)
        ended(ada, "running")

    monkeypatch.setattr(ChangeList, "get_results", count_then_insert)
    page = ada.client.get(LIST).content.decode()
    assert 'class="action-select"' in page
    assert 'name="index"' in page
