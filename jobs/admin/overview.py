"""Databases with what matters most about each: its newest good backup, and how the last run ended."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from jobs.models import BackupCopy, BackupJob, Database
from jobs.models.history import Status
from jobs.models.storage import CopyState


def good_backups(rows: QuerySet[BackupJob]) -> QuerySet[BackupJob]:
    """Completed, and still stored somewhere."""
    stored = BackupCopy.objects.filter(backup=OuterRef("pk"), state=CopyState.GOOD)
    return rows.filter(Exists(stored), status=Status.COMPLETED, trashed_at=None)


def with_backups(databases: QuerySet[Database]) -> QuerySet[Database]:
    """Adds good_id, good_at, good_size (newest good backup) and run_id, run_status (last run that ended)."""
    of_this = BackupJob.objects.filter(database=OuterRef("pk"))
    good = good_backups(of_this).order_by("-completed_at")[:1]
    run = of_this.filter(completed_at__isnull=False).order_by("-completed_at")[:1]
    return databases.annotate(
        good_id=Subquery(good.values("id")),
        good_at=Subquery(good.values("completed_at")),
        good_size=Subquery(good.values("size")),
        run_id=Subquery(run.values("id")),
        run_status=Subquery(run.values("status")),
    )
