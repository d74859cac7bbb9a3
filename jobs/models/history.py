"""The history of backups, restores and migrations: one row a job, with the id of its queue row.

Rows are written by the worker before the work starts and stay until their owner deletes them. They keep
names and flags of their own, so they outlive the database they speak of (its foreign key becomes NULL).
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q

from jobs.models.base import Owned, Queue, one_of
from jobs.models.database import Database


class Status(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


def database_link(**options: Any) -> models.ForeignKey[Database | None]:
    """Set to NULL by the database itself (see migration 0003), also when a row is deleted in plain SQL."""
    return models.ForeignKey(Database, null=True, on_delete=models.DO_NOTHING, related_name="+", **options)


def kept(name: str) -> models.Index:
    """Over the few rows whose replaced database is still there."""
    return models.Index(fields=["kept_until"], condition=Q(kept_name__isnull=False), name=name)


def unsettled(name: str) -> models.Index:
    """Over the few rows whose temporary database may still be there."""
    return models.Index(fields=["completed_at"], condition=Q(temporary_name__isnull=False), name=name)


class HistoryRow(Owned):
    """What the three history tables share."""

    queue: Queue

    status = models.CharField(max_length=20, choices=Status.choices, default=Status.PENDING)
    flags = models.JSONField(default=dict, help_text="Exactly as given, defaults left out.")
    progress = models.JSONField(
        null=True, help_text="share 0..1, bytes, rate (bytes/s), eta (s), current table, phase."
    )
    log = models.TextField(default="", help_text="The tools' stderr, head and tail.")
    warnings = models.JSONField(default=list)
    error = models.TextField(null=True)
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.id)


class WritingRow(HistoryRow):
    """What restores and migrations share: both write into a target database."""

    mode = models.CharField(max_length=20, default="", help_text="new, empty, replace or existing.")
    target_name = models.TextField(default="", help_text="The database as PostgreSQL knows it.")
    temporary_name = models.TextField(
        null=True, help_text="Of the database it restores into, until that is known to be gone."
    )
    # Names change in the swap, oids never do: they say which database is which, whatever happened since.
    landed_oid = models.BigIntegerField(
        null=True, help_text="Of the restored database, before it gets its name."
    )
    kept_name = models.TextField(null=True, help_text="What the replaced database is called now.")
    kept_oid = models.BigIntegerField(null=True)
    kept_until = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)
    touched_at = models.DateTimeField(
        null=True, help_text="When it began to write into a target where a rollback does not undo it."
    )

    class Meta:
        abstract = True


class BackupJob(HistoryRow):
    queue = Queue.BACKUP

    database = database_link()
    database_name = models.CharField(max_length=100)
    schedule_id = models.UUIDField(null=True)
    slot = models.DateTimeField(null=True)
    # Of the first copy; the others have rows of their own in backup_copies.
    storage_key = models.TextField(null=True)
    size = models.BigIntegerField(null=True, help_text="Bytes as stored.")
    sha256 = models.CharField(max_length=64, null=True)
    manifest = models.JSONField(null=True)
    late = models.BooleanField(default=False, help_text="Caught up after its slot was missed.")
    pinned = models.BooleanField(default=False)
    trashed_at = models.DateTimeField(null=True, help_text="Waits in the trash since then.")
    trash_reason = models.TextField(default="", blank=True)

    class Meta:
        db_table = "backup_jobs"
        verbose_name = "backup"
        constraints = [
            one_of("status", Status, "backup_jobs_status"),
            models.UniqueConstraint(fields=["schedule_id", "slot"], name="backup_jobs_schedule_slot"),
            models.CheckConstraint(
                condition=~Q(status="completed")
                | Q(storage_key__isnull=False, size__gt=0, sha256__isnull=False),
                name="backup_jobs_completed_is_stored",
            ),
        ]
        indexes = [
            models.Index(fields=["user", "-created_at"], name="backup_jobs_user"),
            models.Index(F("database"), F("completed_at").desc(), name="backup_jobs_database"),
            models.Index(
                F("schedule_id"),
                F("created_at").desc(),
                condition=Q(schedule_id__isnull=False),
                name="backup_jobs_schedule",
            ),
            models.Index(
                fields=["trashed_at"], condition=Q(trashed_at__isnull=False), name="backup_jobs_trash"
            ),
        ]


class RestoreJob(WritingRow):
    queue = Queue.RESTORE

    database = database_link()
    database_name = models.CharField(max_length=100)
    # The source: a tracked backup, an upload, or a file of the machine the command ran on.
    backup = models.ForeignKey(BackupJob, null=True, on_delete=models.SET_NULL)
    upload = models.ForeignKey("jobs.Upload", null=True, on_delete=models.SET_NULL)
    source_name = models.TextField(default="")

    class Meta:
        db_table = "restore_jobs"
        verbose_name = "restore"
        constraints = [one_of("status", Status, "restore_jobs_status")]
        indexes = [
            models.Index(fields=["user", "-created_at"], name="restore_jobs_user"),
            kept("restore_jobs_kept"),
            unsettled("restore_jobs_unsettled"),
        ]


class MigrationJob(WritingRow):
    queue = Queue.MIGRATION

    source_database = database_link()
    source_database_name = models.CharField(max_length=100)
    source_sealed_url = models.TextField(default="")
    target_database = database_link()
    target_database_name = models.CharField(max_length=100)
    target_sealed_url = models.TextField(default="")
    size = models.BigIntegerField(null=True, help_text="Bytes that went from source to target.")

    class Meta:
        db_table = "migration_jobs"
        verbose_name = "migration"
        constraints = [one_of("status", Status, "migration_jobs_status")]
        indexes = [
            models.Index(fields=["user", "-created_at"], name="migration_jobs_user"),
            kept("migration_jobs_kept"),
            unsettled("migration_jobs_unsettled"),
        ]


HISTORY: dict[str, type[BackupJob] | type[RestoreJob] | type[MigrationJob]] = {
    Queue.BACKUP.value: BackupJob,
    Queue.RESTORE.value: RestoreJob,
    Queue.MIGRATION.value: MigrationJob,
}
