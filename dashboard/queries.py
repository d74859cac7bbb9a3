"""What the home page and /api/status ask the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.urls import reverse

from jobs.admin.overview import with_backups
from jobs.admin.workers import fresh
from jobs.models import (
    BackupJob,
    Database,
    HistoryRow,
    MigrationJob,
    QueuedJob,
    RestoreJob,
    Storage,
    WorkerProcess,
)
from jobs.services import visible_to
from jobs.stores import default_storage, usable_by
from schedules.admin import overview as schedules


def workers_per_queue() -> dict[str, dict[str, int]]:
    """Queue -> {"workers": processes alive, "concurrency": jobs they run at once}, for each queue in use."""
    alive = WorkerProcess.objects.filter(fresh(), stopping=False).order_by().values("role")
    found = {row["role"]: row for row in alive.annotate(workers=Count("id"), slots=Sum("concurrency"))}
    return {
        queue: {
            "workers": found[queue]["workers"] if queue in found else 0,
            "concurrency": found[queue]["slots"] if queue in found else 0,
        }
        for queue in settings.PROCESSORS
    }


def idle_queues(workers: dict[str, dict[str, int]]) -> list[str]:
    return [queue for queue, found in workers.items() if not found["workers"]]


def storages_of(user: User | None) -> QuerySet[Storage]:
    """What this person may use; every one for a superuser or a monitoring token (None)."""
    return Storage.objects.all() if user is None or user.is_superuser else usable_by(user)


def storage_state(storage: Storage, default: Storage) -> dict[str, Any]:
    """As the last test found it; `usable` is None before the first."""
    result = storage.test_result
    tested = isinstance(result, dict)
    usable = not (result.get("put") or result.get("get")) if isinstance(result, dict) else None
    return {
        "name": storage.name,
        "kind": storage.kind,
        "default": storage.pk == default.pk,
        "usable": usable,
        "tested_at": storage.tested_at if tested else None,
    }


def status(user: User | None) -> dict[str, Any]:
    """Workers, storages, and what is wrong in sentences (`problems`; empty when all is well)."""
    workers, default = workers_per_queue(), default_storage()
    storages = [storage_state(row, default) for row in storages_of(user).order_by("name")]
    problems = [
        f"No worker takes {queue} jobs: start one with `manage.py runworker`."
        for queue in idle_queues(workers)
    ]
    problems += [
        f"The default storage {state['name']!r} failed its last test: see /admin/jobs/storage/."
        for state in storages
        if state["default"] and state["usable"] is False
    ]
    verdict = "down" if problems else "ok"
    return {"status": verdict, "problems": problems, "queues": workers, "storages": storages}


@dataclass(frozen=True)
class Line:
    """A restore or migration, or a backup that runs, as the home page names it."""

    row: HistoryRow

    @property
    def name(self) -> str:
        row = self.row
        if isinstance(row, MigrationJob):
            return f"{row.source_database_name or 'a URL'} → {row.target_database_name or 'a URL'}"
        return str(getattr(row, "database_name", ""))

    @property
    def kind(self) -> str:
        return str(self.row._meta.verbose_name)

    @property
    def url(self) -> str:
        return reverse(f"admin:jobs_{self.row._meta.model_name}_change", args=[self.row.pk])


def running(user: User) -> list[Line]:
    """Of all three queues, the longest first."""
    rows: list[HistoryRow] = []
    for model in (BackupJob, RestoreJob, MigrationJob):
        rows += visible_to(user, model._default_manager.filter(status="running")).defer("log")
    return [Line(row) for row in sorted(rows, key=lambda row: row.started_at or row.created_at)]


def recent_writes(user: User) -> list[Line]:
    """Restores and migrations that ended within a week, the latest first."""
    rows: list[HistoryRow] = []
    since = Now() - timedelta(days=7)
    for model in (RestoreJob, MigrationJob):
        ended = visible_to(user, model._default_manager.filter(completed_at__gte=since)).defer("log")
        rows += ended.order_by("-completed_at")[:5]
    rows.sort(key=lambda row: row.completed_at or row.created_at, reverse=True)
    return [Line(row) for row in rows[:5]]


def home(user: User) -> dict[str, Any]:
    """What the first page shows."""
    databases = with_backups(visible_to(user, Database.objects.all())).select_related("user").order_by("name")
    jobs = visible_to(user, QueuedJob.objects.filter(status__in=["pending", "active"]))
    ended = visible_to(user, BackupJob.objects.filter(trashed_at=None)).defer("log", "manifest")
    workers = workers_per_queue()
    counts = jobs.aggregate(waiting=Count("id", Q(status="pending")), running=Count("id", Q(status="active")))
    return {
        **counts,
        **schedules.home(user),
        "databases": databases[:200],
        "running_jobs": running(user)[:20],
        "waiting_jobs": jobs.filter(status="pending").order_by("run_at", "created_at")[:10],
        "recent_backups": ended.exclude(completed_at=None).order_by("-completed_at")[:8],
        "recent_writes": recent_writes(user),
        "workers": workers,
        "idle_queues": idle_queues(workers),
    }
