"""What the home page and /api/status ask the database."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet, Sum

from jobs.admin.overview import with_backups
from jobs.admin.workers import fresh
from jobs.models import BackupJob, Database, QueuedJob, Storage, WorkerProcess
from jobs.services import visible_to
from jobs.stores import default_storage, usable_by


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


def home(user: User) -> dict[str, Any]:
    """What the first page shows."""
    databases = with_backups(visible_to(user, Database.objects.all())).select_related("user").order_by("name")
    jobs = visible_to(user, QueuedJob.objects.filter(status__in=["pending", "active"]))
    running = visible_to(user, BackupJob.objects.filter(status="running")).defer("log", "manifest")
    ended = visible_to(user, BackupJob.objects.exclude(completed_at=None)).defer("log", "manifest")
    workers = workers_per_queue()
    counts = jobs.aggregate(waiting=Count("id", Q(status="pending")), running=Count("id", Q(status="active")))
    return counts | {
        "databases": databases[:200],
        "running_backups": running.order_by("started_at")[:20],
        "waiting_jobs": jobs.filter(status="pending").order_by("run_at", "created_at")[:10],
        "recent_backups": ended.order_by("-completed_at")[:8],
        "workers": workers,
        "idle_queues": idle_queues(workers),
    }
