"""How a schedule does, for pages, metrics and notifications: one query for any number of schedules.

Overdue is an enabled schedule whose time came more than five minutes ago and that nobody has looked at (no
worker ticks, or the row is broken), or whose run has waited in the queue for over an hour (no worker takes
it, or its turn does not come). A run that is being worked on is not overdue, however long it takes. What is
in the trash is no success to fall back on, but it does end a row of failures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Now

from jobs.models import BackupCopy, BackupJob, QueuedJob
from jobs.models.history import Status
from jobs.models.queue import QueueStatus
from jobs.models.storage import CopyState
from schedules.firing import GRACE
from schedules.models import Schedule

LONGEST_WAIT = timedelta(hours=1)
LAGGING = timedelta(minutes=15)
_BEFORE_ALL = Value(datetime(1970, 1, 1, tzinfo=UTC))


@dataclass(frozen=True)
class Health:
    """`failures`: failed runs since the last one that succeeded; cancelled ones count neither way.
    `last_status`: of the newest run, as people see it; "" before the first. `copies_lagging`: copies to
    further storages that failed, or are not there 15 minutes after the backup."""

    last_success: datetime | None
    last_success_id: UUID | None
    failures: int
    last_status: str
    next_run_at: datetime | None
    overdue: bool
    running: bool
    copies_lagging: int
    broken: str | None


def health(schedules: QuerySet[Schedule]) -> dict[UUID, Health]:
    """By the schedule's id, of all in the query set."""
    return {row["id"]: _health(row) for row in _facts(schedules)}


def _health(row: Mapping[str, Any]) -> Health:
    status = row["newest_status"] or ""
    if row["is_active"]:
        status = Status.RUNNING.value
    elif row["is_waiting"]:
        status = Status.PENDING.value
    return Health(
        last_success=row["success_at"],
        last_success_id=row["success_id"],
        failures=row["failures"],
        last_status=status,
        next_run_at=row["next_run_at"],
        overdue=row["enabled"] and (row["is_past"] or row["waits_long"]),
        running=row["is_active"],
        copies_lagging=row["copies_lagging"],
        broken=row["broken"],
    )


def _facts(schedules: QuerySet[Schedule]) -> Iterable[Mapping[str, Any]]:
    runs = BackupJob.objects.filter(schedule_id=OuterRef("id")).order_by("-created_at")
    good = runs.filter(status=Status.COMPLETED)
    at_hand = good.filter(trashed_at__isnull=True)
    queued = QueuedJob.objects.filter(schedule_id=OuterRef("id"))
    waiting = queued.filter(status=QueueStatus.PENDING)
    return schedules.annotate(
        newest_status=Subquery(runs.values("status")[:1]),
        success_at=Subquery(at_hand.values("completed_at")[:1]),
        success_id=Subquery(at_hand.values("id")[:1]),
        good_since=Coalesce(Subquery(good.values("created_at")[:1]), _BEFORE_ALL),
        failures=_number(runs.filter(status=Status.FAILED, created_at__gt=OuterRef("good_since"))),
        is_active=Exists(queued.filter(status=QueueStatus.ACTIVE)),
        is_waiting=Exists(waiting),
        waits_long=Exists(waiting.filter(created_at__lt=Now() - LONGEST_WAIT)),
        is_past=Coalesce(Q(next_run_at__lt=Now() - GRACE), False),
        copies_lagging=_number(_lagging().annotate(schedule_id=F("backup__schedule_id"))),
    ).values(
        "id", "enabled", "next_run_at", "broken", "newest_status", "success_at", "success_id", "failures",
        "is_active", "is_waiting", "waits_long", "is_past", "copies_lagging",
    )  # fmt: skip


def _lagging() -> QuerySet[BackupCopy]:
    late = Q(error__isnull=False) | Q(created_at__lt=Now() - LAGGING)
    return BackupCopy.objects.filter(
        late,
        state__in=[CopyState.WRITING, CopyState.FAILED],
        backup__schedule_id=OuterRef("id"),
        backup__status=Status.COMPLETED,
        backup__trashed_at__isnull=True,
    )


def _number(rows: QuerySet[Any]) -> Coalesce:
    counted = rows.order_by().values("schedule_id").annotate(number=Count("*")).values("number")
    return Coalesce(Subquery(counted), 0)
