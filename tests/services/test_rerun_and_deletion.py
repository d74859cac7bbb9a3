from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs import services
from jobs.models import BackupJob, Database, QueuedJob, Storage
from jobs.rerunning import rerun_job
from jobs.services import NotFound, ServiceError

from .conftest import FinishedBackup

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
