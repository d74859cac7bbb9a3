from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs import services
from jobs.artifacts import delete_backup, first_good_copy
from jobs.models import ActivityEvent, BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.rerunning import rerun_job
from jobs.secrets import seal
from jobs.services import NotFound, ServiceError
from jobs.stores import default_storage, store_for
from tests import s3server

from .conftest import CONTENT, FinishedBackup, keys

pytestmark = pytest.mark.django_db
FLAGS = {"format": "directory", "jobs": 3, "exclude_tables": ["logs.*"]}


@pytest.fixture
def nas(user: User, tmp_path: Path) -> Storage:
    return Storage.objects.create(user=user, name="nas", kind="folder", folder=str(tmp_path / "nas"))


def ended(database: Database, storage: Storage | None = None, status: str = "failed") -> uuid.UUID:
    """A job that has run; its id."""
    job_id = services.enqueue_backup(database, FLAGS, by=database.user, storage=storage)
    QueuedJob.objects.filter(id=job_id).update(status=status)
    BackupJob.objects.create(
        id=job_id,
        user=database.user,
        database=database,
        database_name=database.name,
        flags=FLAGS,
        status=status,
    )
    return job_id


@pytest.mark.parametrize("with_storage", [True, False])
def test_a_rerun_is_a_new_job_with_the_same_flags_and_storage(
    database: Database, nas: Storage, with_storage: bool
) -> None:
    old = ended(database, nas if with_storage else None)
    new = rerun_job(old, by=database.user)
    assert new != old
    payloads: list[Any] = [QueuedJob.objects.get(id=job_id).payload for job_id in (old, new)]
    assert payloads[0] == payloads[1]
    assert payloads[1]["flags"] == FLAGS
    assert payloads[1].get("storage_id") == (str(nas.id) if with_storage else None)
    assert BackupJob.objects.get(id=old).status == "failed"


def test_a_rerun_finds_the_storage_also_when_the_queue_row_was_purged(
    nas: Storage, finished_backup: FinishedBackup
) -> None:
    old = finished_backup(nas, flags={})
    new = rerun_job(old.id, by=old.user)
    assert QueuedJob.objects.get(id=new).payload["storage_id"] == str(nas.id)


def test_a_rerun_into_a_storage_that_is_gone_says_so(database: Database, nas: Storage) -> None:
    old = ended(database, nas)
    nas.delete()
    with pytest.raises(ServiceError, match="does not exist any more: back up 'shop' anew"):
        rerun_job(old, by=database.user)


def test_what_cannot_run_again_is_refused(database: Database) -> None:
    running = ended(database, status="failed")
    BackupJob.objects.filter(id=running).update(status="running")
    with pytest.raises(ServiceError, match="has not ended yet: cancel it first"):
        rerun_job(running, by=database.user)
    waiting = services.enqueue_backup(database, {}, by=database.user)
    with pytest.raises(NotFound, match=str(waiting)):
        rerun_job(waiting, by=database.user)
    old = ended(database)
    database.delete()
    with pytest.raises(ServiceError, match=r"'shop' of job .* is not registered any more"):
        rerun_job(old, by=database.user)


def test_cancelling_what_has_ended_says_how_it_ended(database: Database) -> None:
    job_id = ended(database)
    with pytest.raises(ServiceError, match=f"Job {job_id} has ended already: failed"):
        services.cancel_job(job_id, by=database.user)


# Deletion ----------------------------------------------------------------------------------------


def test_a_deleted_backup_takes_its_three_objects_with_it(
    finished_backup: FinishedBackup,
) -> None:
    other = finished_backup()
    backup = finished_backup()
    gone = str(backup.id)
    delete_backup(backup, by=backup.user)
    assert list(BackupJob.objects.all()) == [other]
    assert list(BackupCopy.objects.values_list("backup_id", flat=True)) == [other.id]
    assert {key.partition(".")[0] for key in keys(default_storage())} == {f"shop/{other.id}"}
    event = ActivityEvent.objects.get()
    assert (event.action, event.object_id, event.detail["database"]) == ("delete", gone, "shop")


def test_what_is_gone_already_is_no_trouble(finished_backup: FinishedBackup) -> None:
    backup = finished_backup()
    store, copy = first_good_copy(backup)
    store.delete(copy.storage_key)
    delete_backup(backup, by=backup.user)
    assert keys(default_storage()) == []


def test_pinned_and_unfinished_backups_stay(finished_backup: FinishedBackup, database: Database) -> None:
    pinned = finished_backup(pinned=True)
    with pytest.raises(ServiceError, match="is pinned: unpin it first"):
        delete_backup(pinned, by=pinned.user)
    running = BackupJob.objects.get(id=ended(database))
    QueuedJob.objects.filter(id=running.id).update(status="pending")
    with pytest.raises(ServiceError, match="has not ended yet"):
        delete_backup(running, by=running.user)
    assert BackupJob.objects.count() == 2
    assert len(keys(default_storage())) == 3


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


def test_a_storage_that_may_not_delete_keeps_the_backup_good_and_says_why(
    finished_backup: FinishedBackup, no_delete: Storage
) -> None:
    backup = finished_backup(no_delete)
    with pytest.raises(ServiceError, match=r"'bucket' could not be deleted: .*s3:DeleteObject"):
        delete_backup(backup, by=backup.user)
    store, copy = first_good_copy(backup)
    assert b"".join(store.read(copy.storage_key)) == CONTENT
    assert "s3:DeleteObject" in (copy.error or "")
    assert len(keys(no_delete)) == 3
    assert not ActivityEvent.objects.exists()


def test_a_copy_without_its_artifact_is_not_good(finished_backup: FinishedBackup, nas: Storage) -> None:
    """Deletion stopped half-way: the artifact went, the rest could not."""
    backup = finished_backup(nas)
    copy = backup.copies.get()
    store_for(nas).delete(copy.storage_key)
    (Path(nas.folder) / f"{copy.storage_key}.globals.sql").unlink()
    (Path(nas.folder) / f"{copy.storage_key}.globals.sql").mkdir()
    with pytest.raises(ServiceError, match="'nas' could not be deleted"):
        delete_backup(backup, by=backup.user)
    copy.refresh_from_db()
    assert (copy.state, bool(copy.error)) == ("deleting", True)
    with pytest.raises(NotFound, match="has no stored copy"):
        first_good_copy(backup)
