"""Jobs as commands show them: a job's history row, or, until it is first claimed, its queue row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.db.models.functions import Now

from jobs.management.text import between, printable, size
from jobs.models import HistoryRow, QueuedJob, WorkerProcess
from jobs.models.history import HISTORY, Status
from jobs.models.queue import QueueStatus
from jobs.services import NotFound, visible_to

WAITING = {QueueStatus.PENDING.value: Status.PENDING.value, QueueStatus.ACTIVE.value: Status.RUNNING.value}
MOST_WARNINGS = 20
KEYS = (
    "id", "queue", "status", "database", "size", "sha256", "storage_key", "error",
    "created_at", "started_at", "completed_at",
)  # fmt: skip


@dataclass(frozen=True)
class JobView:
    """One job of any queue. `status` is one of `jobs.models.history.Status`; sizes are bytes. The `error` of
    a waiting job is why it waits: for its turn at a server, or to be tried again."""

    id: UUID
    queue: str
    status: str
    database: str
    created_at: datetime
    size: int | None = None
    sha256: str | None = None
    storage_key: str | None = None
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    progress: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    kept_name: str | None = None  # what was replaced, as long as it is there

    @property
    def ended(self) -> bool:
        return self.status not in (Status.PENDING, Status.RUNNING)

    @property
    def waits(self) -> bool:
        return self.status == Status.PENDING

    def as_dict(self) -> dict[str, Any]:
        """KEYS, times as ISO 8601 in UTC."""
        values = {name: getattr(self, name) for name in KEYS}
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in values.items()
        } | {"id": str(self.id)}

    def verdict(self) -> str:
        """How it ended, in a few lines."""
        if self.status != Status.COMPLETED:
            return printable(f"{self.status}: {self.error or 'no reason was recorded'}")
        lines = [f"completed in {between(self.started_at, self.completed_at)}"]
        if self.storage_key:
            lines += [f"  size    {size(self.size)}", f"  sha256  {self.sha256}"]
            lines += [f"  key     {printable(self.storage_key)}"]
        if self.kept_name:
            lines += [f"  kept    {printable(self.kept_name)}: `undo_restore {self.id}` brings it back"]
        lines += [f"  warning: {printable(words)}" for words in self.warnings[:MOST_WARNINGS]]
        if len(self.warnings) > MOST_WARNINGS:
            lines += [f"  … and {len(self.warnings) - MOST_WARNINGS} more warnings"]
        return "\n".join(lines)


def find(user: User, job_id: UUID) -> JobView:
    """The job as it stands, if this user may see it. Raises `NotFound`."""
    # The queue first: a job that starts and ends between the two looks is then found in the history.
    waiting = visible_to(user, QueuedJob.objects.filter(id=job_id, status__in=WAITING)).first()
    for queue, model in HISTORY.items():
        row = visible_to(user, model.objects.filter(id=job_id)).first()
        if row is not None:
            view = _from_history(queue, row)
            return replace(view, error=waiting.last_error) if waiting and view.waits else view
    if waiting is None:
        raise NotFound(f"No job {job_id} is known. `python manage.py list_jobs` shows the newest.")
    return _from_queue(waiting)


def newest(user: User, queue: str | None, status: str | None, limit: int) -> list[JobView]:
    """At most `limit` jobs that this user may see, the newest first."""
    queues = [queue] if queue else list(HISTORY)
    waiting = _waiting(user, queues, status, limit)
    begun = [view for name in queues for view in _history(user, name, status, limit)]
    found = {view.id: view for view in [*waiting, *begun]}
    views = sorted(found.values(), key=lambda view: view.created_at, reverse=True)[:limit]
    back = [view.id for view in views if view.waits]
    reasons = dict(QueuedJob.objects.filter(id__in=back).values_list("id", "last_error"))
    return [replace(view, error=reasons[view.id]) if view.id in reasons else view for view in views]


def worker_is_alive(queue: str) -> bool:
    """Has a process of that queue been heard of lately, which still takes jobs?"""
    heard = Now() - timedelta(seconds=settings.STALE_SECONDS)
    return WorkerProcess.objects.filter(role=queue, heartbeat_at__gt=heard, stopping=False).exists()


def no_worker(queue: str) -> str:
    return (
        f"No worker is running for the {queue} queue, so the job waits: start one with "
        f"`python manage.py runworker` (or `make run`)."
    )


def _history(user: User, queue: str, status: str | None, limit: int) -> list[JobView]:
    rows = visible_to(user, HISTORY[queue].objects.order_by("-created_at"))
    if status:
        rows = rows.filter(status=status)
    return [_from_history(queue, row) for row in rows[:limit]]


def _waiting(user: User, queues: list[str], status: str | None, limit: int) -> list[JobView]:
    wanted = [name for name, shown in WAITING.items() if status in (None, shown)]
    rows = visible_to(user, QueuedJob.objects.filter(queue__in=queues, status__in=wanted))
    for name in queues:
        recorded: QuerySet[Any, Any] = HISTORY[name].objects.values("id")
        rows = rows.exclude(id__in=recorded)
    return [_from_queue(job) for job in rows.order_by("-created_at")[:limit]]


def _from_history(queue: str, row: HistoryRow) -> JobView:
    name = "target_database_name" if queue == "migration" else "database_name"
    return JobView(
        id=row.id,
        queue=queue,
        status=row.status,
        database=getattr(row, name),
        created_at=row.created_at,
        size=getattr(row, "size", None),
        sha256=getattr(row, "sha256", None),
        storage_key=getattr(row, "storage_key", None),
        error=row.error,
        started_at=row.started_at,
        completed_at=row.completed_at,
        progress=row.progress if isinstance(row.progress, dict) else {},
        warnings=[str(words) for words in row.warnings] if isinstance(row.warnings, list) else (),
        kept_name=getattr(row, "kept_name", None),
    )


def _from_queue(job: QueuedJob) -> JobView:
    payload = job.payload if isinstance(job.payload, dict) else {}
    name = payload.get("target_database_name" if job.queue == "migration" else "database_name")
    return JobView(
        id=job.id,
        queue=job.queue,
        status=WAITING[job.status],
        database=name if isinstance(name, str) else "",
        created_at=job.created_at,
        error=job.last_error if job.status == QueueStatus.PENDING else None,
    )
