"""What a restore is made from, as its pages show it: a backup or an uploaded file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from jobs.admin import formats
from jobs.models import BackupJob, Database, RestoreJob, Upload

Held = BackupJob | Upload


@dataclass(frozen=True)
class Source:
    row: Held

    @property
    def is_backup(self) -> bool:
        return isinstance(self.row, BackupJob)

    @property
    def name(self) -> str:
        return self.row.database_name if isinstance(self.row, BackupJob) else self.row.name

    @property
    def in_words(self) -> str:
        """ "backup of shop, 2026-01-02 03:04:05 UTC" or "uploaded file shop.dump"."""
        if isinstance(self.row, BackupJob):
            return f"backup of {self.row.database_name}, {formats.exact(self.moment)}"
        return f"uploaded file {self.row.name}"

    @property
    def moment(self) -> Any:
        started = self.row.started_at if isinstance(self.row, BackupJob) else self.row.completed_at
        return started or self.row.created_at

    @property
    def about(self) -> str:
        """What it holds as far as that is known without reading it."""
        if isinstance(self.row, BackupJob):
            version = (self.row.manifest or {}).get("server_version")
            return f"{self.format} format" + (f", from PostgreSQL {version}" if version else "")
        return str((self.row.facts or {}).get("in_words", ""))

    @property
    def format(self) -> str:
        """ "custom", "tar", "directory", "plain", or "" before anybody has looked."""
        if isinstance(self.row, BackupJob):
            flags = self.row.flags if isinstance(self.row.flags, dict) else {}
            return str(flags.get("format", "custom"))
        return str((self.row.facts or {}).get("format", ""))

    @property
    def database(self) -> Database | None:
        return self.row.database if isinstance(self.row, BackupJob) else None

    @property
    def usable(self) -> bool:
        """Is there something to read?"""
        if isinstance(self.row, BackupJob):
            stored = any(copy.state == "good" for copy in self.row.copies.all())
            return self.row.status == "completed" and stored
        return self.row.state == "good"

    @property
    def has_contents(self) -> bool:
        """Can it be looked into, as far as that is known?"""
        return self.format != "plain"

    @property
    def list(self) -> str:
        return reverse(f"admin:jobs_{self._model}_changelist")

    @property
    def page(self) -> str:
        return self._url("change")

    @property
    def restore(self) -> str:
        return self._url("restore")

    @property
    def contents(self) -> str:
        return self._url("contents")

    @property
    def _model(self) -> str:
        return "backupjob" if self.is_backup else "upload"

    def _url(self, step: str) -> str:
        return reverse(f"admin:jobs_{self._model}_{step}", args=[self.row.pk])


def source_of(restore: RestoreJob) -> Source | None:
    """What a restore was made from, while it is there; a file given to the command never is."""
    row = restore.backup or restore.upload
    return Source(row) if row is not None else None
