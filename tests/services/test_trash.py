from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Now
from pytest_django.fixtures import Settings

from jobs import deleting, trash
from jobs.admin.overview import good_backups
from jobs.artifacts import good_copies, opened
from jobs.models import ActivityEvent, BackupCopy, BackupJob, Database, Storage
from jobs.models.storage import CopyState
from jobs.processors.stored import of_backup
from jobs.secrets import seal
from jobs.services import NotFound, ServiceError
from jobs.stores import default_storage, store_for
from tests import s3server
from tests.conftest import Enqueue

from .conftest import CONTENT, FinishedBackup, keys

pytestmark = pytest.mark.django_db


@pytest.fixture
def nas(user: User, tmp_path: Path) -> Storage:
    return Storage.objects.create(user=user, name="nas", kind="folder", folder=str(tmp_path / "nas"))


def days_later(days: float) -> None:
    """All that waits has waited for so long."""
    BackupJob.objects.update(trashed_at=F("trashed_at") - timedelta(days=days))
    BackupCopy.objects.update(next_attempt_at=F("next_attempt_at") - timedelta(days=days))


def actions() -> list[str]:
    return list(ActivityEvent.objects.order_by("at").values_list("action", flat=True))


# The wait ----------------------------------------------------------------------------------------


def test_what_is_deleted_waits_and_can_be_read_meanwhile(finished_backup: FinishedBackup) -> None:
    backup = finished_backup()
    trash.put(backup, by=backup.user, reason="by hand")
    days_later(6.9)
    assert trash.empty_due() == 0
    backup.refresh_from_db()
    assert (bool(backup.trashed_at), backup.trash_reason) == (True, "by hand")
    assert b"".join(of_backup(backup).read()) == CONTENT
    assert not good_backups(BackupJob.objects.all()).exists()
    assert actions() == ["trash"]


def test_after_its_days_it_is_gone(finished_backup: FinishedBackup) -> None:
    other, backup = finished_backup(), finished_backup()
    trash.put(backup, by=backup.user)
    days_later(7.1)
    assert trash.empty_due() == 1
    assert list(BackupJob.objects.all()) == [other]
    assert {key.partition(".")[0] for key in keys(default_storage())} == {f"shop/{other.id}"}


def test_a_failed_run_goes_the_same_way(database: Database) -> None:
    failed = BackupJob.objects.create(user=database.user, database_name="shop", status="failed")
    trash.put(failed, by=database.user)
    assert trash.empty_due() == 0
    days_later(8)
    assert trash.empty_due() == 1
    assert not BackupJob.objects.exists()


def test_what_is_taken_back_stays(finished_backup: FinishedBackup) -> None:
    manual, scheduled = finished_backup(), finished_backup(schedule_id=uuid.uuid4())
    for backup in (manual, scheduled):
        trash.put(backup, by=backup.user)
        assert trash.take_back(backup, by=backup.user) is (backup is scheduled)
    days_later(30)
    assert trash.empty_due() == 0
    rows = BackupJob.objects.in_bulk([manual.id, scheduled.id])
    assert [rows[each.id].pinned for each in (manual, scheduled)] == [False, True]
    assert {row.trashed_at for row in rows.values()} == {None}


def test_somebody_else_takes_nothing_back(finished_backup: FinishedBackup, other_user: User) -> None:
    backup = finished_backup()
    trash.put(backup, by=backup.user)
    with pytest.raises(NotFound):
        trash.take_back(backup, by=other_user)
    assert BackupJob.objects.get().trashed_at


def test_what_is_not_in_the_trash_cannot_be_taken_back(finished_backup: FinishedBackup) -> None:
    backup = finished_backup()
    with pytest.raises(ServiceError, match="is not in the trash"):
        trash.take_back(backup, by=backup.user)


def test_without_a_trash_it_is_gone_at_once(finished_backup: FinishedBackup, settings: Settings) -> None:
    settings.TRASH_DAYS = 0
    backup = finished_backup()
    trash.put(backup, by=backup.user)
    assert not BackupJob.objects.exists()
    assert keys(default_storage()) == []


def test_a_restore_that_waits_keeps_it_from_being_deleted(
    finished_backup: FinishedBackup, enqueue: Enqueue
) -> None:
    backup = finished_backup()
    trash.put(backup, by=backup.user)
    job = enqueue("restore", {"backup_id": str(backup.id)})
    days_later(8)
    assert trash.empty_due() == 0
    with pytest.raises(ServiceError, match="a restore from it waits or runs"):
        trash.for_good(backup, by=backup.user)
    type(job).objects.filter(id=job.id).update(status="completed")
    assert trash.empty_due() == 1


def test_what_was_pinned_in_the_trash_past_the_services_stays(finished_backup: FinishedBackup) -> None:
    backup = finished_backup()
    trash.put(backup, by=backup.user)
    BackupJob.objects.update(pinned=True)
    days_later(8)
    assert trash.empty_due() == 0
    assert len(keys(default_storage())) == 3


# Refused -----------------------------------------------------------------------------------------


def test_pinned_and_unfinished_backups_stay(finished_backup: FinishedBackup, enqueue: Enqueue) -> None:
    pinned = finished_backup(pinned=True)
    job = enqueue("backup")
    running = BackupJob.objects.create(id=job.id, user=job.user, database_name="shop", status="running")
    for delete in (trash.put, trash.for_good):
        with pytest.raises(ServiceError, match="is pinned: unpin it first"):
            delete(pinned, by=pinned.user)
        with pytest.raises(ServiceError, match="has not ended yet"):
            delete(running, by=running.user)
    assert BackupJob.objects.filter(trashed_at=None).count() == 2
    assert len(keys(default_storage())) == 3


def test_what_is_in_the_trash_or_on_its_way_out_is_not_pinned(finished_backup: FinishedBackup) -> None:
    backup = finished_backup()
    trash.put(backup, by=backup.user)
    with pytest.raises(ServiceError, match="take it back instead"):
        trash.pin(backup, True, by=backup.user)
    BackupJob.objects.update(trashed_at=None)
    BackupCopy.objects.update(state=CopyState.DELETING)
    with pytest.raises(ServiceError, match="is being deleted already"):
        trash.pin(backup, True, by=backup.user)


# For good ----------------------------------------------------------------------------------------


def test_a_deleted_backup_takes_its_three_objects_with_it(finished_backup: FinishedBackup) -> None:
    other, backup = finished_backup(), finished_backup()
    assert trash.for_good(backup, by=backup.user)
    assert list(BackupCopy.objects.values_list("backup_id", flat=True)) == [other.id]
    assert {key.partition(".")[0] for key in keys(default_storage())} == {f"shop/{other.id}"}
    event = ActivityEvent.objects.get()
    assert (event.action, event.object_id, event.detail["database"]) == ("delete", str(backup.id), "shop")


def test_what_is_gone_already_is_no_trouble(finished_backup: FinishedBackup) -> None:
    backup = finished_backup()
    (copy,) = good_copies(backup)
    opened(copy).delete(copy.storage_key)
    assert trash.for_good(backup, by=backup.user)
    assert keys(default_storage()) == []


@pytest.fixture
def no_delete(s3_storage: Storage) -> Iterator[Storage]:
    who = s3server.NO_DELETE
    Storage.objects.filter(id=s3_storage.id).update(
        access_key_id=who.access_key, sealed_secret=seal(who.secret_key)
    )
    s3_storage.refresh_from_db()
    yield s3_storage
    s3server.shared().client().delete_objects(
        Bucket=s3_storage.bucket, Delete={"Objects": [{"Key": key} for key in keys(s3_storage)]}
    )


def test_a_storage_that_may_not_delete_keeps_the_backup_good_and_is_asked_again(
    finished_backup: FinishedBackup, no_delete: Storage
) -> None:
    backup = finished_backup(no_delete)
    assert not trash.for_good(backup, by=backup.user)
    (copy,) = good_copies(backup)
    assert b"".join(opened(copy).read(copy.storage_key)) == CONTENT
    assert "s3:DeleteObject" in (copy.error or "")
    assert trash.empty_due() == 0
    who = s3server.FULL
    Storage.objects.update(access_key_id=who.access_key, sealed_secret=seal(who.secret_key))
    days_later(8)
    assert trash.empty_due() == 1
    assert keys(no_delete) == []


def test_a_copy_without_its_artifact_is_not_good_and_its_rest_is_removed_later(
    finished_backup: FinishedBackup, nas: Storage
) -> None:
    """Deletion stopped half-way: the artifact went, the rest could not."""
    backup = finished_backup(nas)
    copy = backup.copies.get()
    store_for(nas).delete(copy.storage_key)
    roles = Path(nas.folder) / f"{copy.storage_key}.globals.sql"
    roles.unlink()
    roles.mkdir()
    assert not trash.for_good(backup, by=backup.user)
    copy.refresh_from_db()
    assert (copy.state, bool(copy.error), copy.attempts) == ("deleting", True, 1)
    with pytest.raises(NotFound, match="has no stored copy"):
        good_copies(backup)
    roles.rmdir()
    assert deleting.retry() == 0, "it is not due yet"
    days_later(1)
    assert deleting.retry() == 1
    assert not BackupJob.objects.exists()


def test_a_copy_in_the_making_is_removed_once_its_writer_must_have_noticed(
    finished_backup: FinishedBackup, nas: Storage
) -> None:
    Path(nas.folder).mkdir()
    backup = finished_backup()
    BackupCopy.objects.create(
        backup=backup, storage=nas, storage_key="k", state=CopyState.WRITING, is_first=False,
        claim_id=uuid.uuid4(), next_attempt_at=Now() + timedelta(minutes=2),
    )  # fmt: skip
    assert not trash.for_good(backup, by=backup.user)
    assert keys(default_storage()) == []
    days_later(1)
    assert deleting.retry() == 1
    assert not BackupJob.objects.exists()


def test_a_storage_that_is_away_costs_one_attempt_a_round(
    finished_backup: FinishedBackup, s3_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    backups = [finished_backup(s3_storage) for _ in range(3)]
    Storage.objects.filter(id=s3_storage.id).update(endpoint="http://127.0.0.1:1")
    monkeypatch.setattr(deleting, "PATIENCE_SECONDS", 0)
    BackupCopy.objects.update(state=CopyState.DELETING)
    assert deleting.retry() == 0
    assert sorted(BackupCopy.objects.values_list("attempts", flat=True)) == [0, 0, 1]
    Storage.objects.filter(id=s3_storage.id).update(endpoint=s3_storage.endpoint)
    BackupCopy.objects.update(next_attempt_at=Now())
    assert deleting.retry() == len(backups)
