"""The tables. Django owns them; `jobs.queue.sql` holds the statements that claim and fence."""

from jobs.models.activity import ActivityEvent, TimelineLine
from jobs.models.database import Database
from jobs.models.history import BackupJob, HistoryRow, MigrationJob, RestoreJob, WritingRow
from jobs.models.instance import Instance
from jobs.models.queue import QueuedJob
from jobs.models.storage import BackupCopy, Storage, Upload
from jobs.models.worker import WorkerProcess

__all__ = [
    "ActivityEvent",
    "BackupCopy",
    "BackupJob",
    "Database",
    "HistoryRow",
    "Instance",
    "MigrationJob",
    "QueuedJob",
    "RestoreJob",
    "Storage",
    "TimelineLine",
    "Upload",
    "WorkerProcess",
    "WritingRow",
]
