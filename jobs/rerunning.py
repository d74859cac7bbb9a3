"""Running an old job once more, as a new one."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from jobs.models import (
    BackupCopy,
    BackupJob,
    Database,
    HistoryRow,
    MigrationJob,
    QueuedJob,
    RestoreJob,
    Storage,
    WritingRow,
)
from jobs.models.history import HISTORY
from jobs.restoring import rerun_migration, rerun_restore
from jobs.services import NotFound, ServiceError, enqueue_backup
from jobs.stores import usable_by


class Unconfirmed(ServiceError):
    """It changes a database that holds data, which somebody has to want; `name` is that database's."""

    def __init__(self, row: WritingRow) -> None:
        self.name = row.target_name
        self.what = f'This {row._meta.verbose_name} changes the database "{self.name}" ({row.mode})'
        super().__init__(f"{self.what}: confirm it by that name, on the job's page or with rerun_job --yes.")


@transaction.atomic
def rerun_job(job_id: UUID, *, by: User, confirmed: bool = False) -> UUID:
    """A new job with the payload of an old one; its id.

    `confirmed`: somebody has said that the target may be replaced or changed once more. Raises `NotFound`,
    `Unconfirmed`, `ServiceError`.
    """
    row = _history(job_id, by)
    if row.status in {"pending", "running"}:
        raise ServiceError(f"Job {job_id} has not ended yet: cancel it first, or wait.")
    if isinstance(row, WritingRow) and row.mode in ("replace", "existing") and not confirmed:
        raise Unconfirmed(row)
    if isinstance(row, RestoreJob):
        return rerun_restore(row, by=by)
    if isinstance(row, MigrationJob):
        return rerun_migration(row, by=by)
    assert isinstance(row, BackupJob)  # noqa: S101  there are three histories
    database = row.database
    if database is None:
        raise ServiceError(f"The database {row.database_name!r} of job {job_id} is not registered any more.")
    return enqueue_backup(database, row.flags, by=by, storage=_storage_of(row, database))


def _storage_of(row: BackupJob, database: Database) -> Storage | None:
    """The storage an old job was told to use; None: as the database has it now."""
    wanted = _chosen_storage(row.id)
    if wanted is None:
        return None
    found = usable_by(database.user).filter(id=wanted).first()
    if found is None:
        raise ServiceError(
            f"The storage that job {row.id} was told to use does not exist any more: back up "
            f"{database.name!r} anew and choose another one."
        )
    return found


def _chosen_storage(job_id: UUID) -> UUID | None:
    queued = QueuedJob.objects.filter(id=job_id).values_list("payload", flat=True)
    if not queued:  # purged by now: the artifact still lies where it was put
        return BackupCopy.objects.filter(backup_id=job_id).values_list("storage_id", flat=True).first()
    try:
        return UUID(str(queued[0]["storage_id"]))
    except (KeyError, TypeError, ValueError):
        return None


def _history(job_id: UUID, by: User) -> HistoryRow:
    for model in HISTORY.values():
        row = model.objects.filter(id=job_id).first()
        if row is not None and (by.is_superuser or row.user_id == by.pk):
            return row
    raise NotFound(f"No job {job_id} is in the history.")
