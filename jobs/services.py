"""Making and changing jobs: the only way in from web, commands and schedules.

Everything here runs in the caller's transaction: a request that is rolled back has enqueued nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db import models, transaction

from jobs.models import ActivityEvent, Database, QueuedJob, Storage
from jobs.models.activity import TimelineEvent
from jobs.models.base import Queue
from jobs.pgtools.flags import DumpFlags
from jobs.queue import cancel as queue_cancel
from jobs.queue import sql
from jobs.queue.rows import rows
from jobs.queue.timeline import note
from jobs.stores import usable_by

Row = TypeVar("Row", bound=models.Model)


class ServiceError(Exception):
    """The request cannot be met; the message says why and what to do."""


class NotFound(ServiceError):
    """There is no such object, or it belongs to somebody else (which is not told apart)."""


def visible_to(user: User, rows: models.QuerySet[Row]) -> models.QuerySet[Row]:
    """What this user may see and touch: their own, or everything for a superuser."""
    return rows if user.is_superuser else rows.filter(user_id=user.pk)


def find_database(user: User, name: str) -> Database:
    """By name, the user's own first."""
    found = Database.objects.filter(user_id=user.pk, name=name).first()
    if found is None and user.is_superuser:
        candidates = list(Database.objects.filter(name=name)[:2])
        found = candidates[0] if len(candidates) == 1 else None
    if found is None:
        known = ", ".join(Database.objects.filter(user_id=user.pk).values_list("name", flat=True)[:10])
        raise NotFound(
            f"No database is called {name!r}. Registered: {known or 'none yet (see add_database)'}."
        )
    return found


def find_storage(database: Database, name: str) -> Storage:
    """By name, one that this database's backups can go to; its owner's own first. Raises `NotFound`."""
    usable = usable_by(database.user).order_by("user_id")
    found = usable.filter(name=name).first()
    if found is None:
        known = ", ".join(usable.values_list("name", flat=True)[:10]) or "none"
        raise NotFound(f"No storage is called {name!r}. There is: {known}.")
    return found


@transaction.atomic
def enqueue_backup(
    database: Database,
    flags: Mapping[str, Any],
    *,
    by: User,
    storage: Storage | None = None,
    schedule_id: UUID | None = None,
    slot: datetime | None = None,
    max_attempts: int = 1,
) -> UUID:
    """Queue a backup for the database's owner; the job's id.

    Raises `jobs.pgtools.errors.InvalidFlags` with every problem of `flags` (see `DumpFlags`), `NotFound`.
    """
    if not visible_to(by, Database.objects.filter(id=database.id)).exists():
        raise NotFound(f"No database is called {database.name!r}.")
    if storage is not None and not usable_by(database.user).filter(id=storage.id).exists():
        raise NotFound(f"No storage is called {storage.name!r}.")
    planned = plan_backup(
        database, flags, storage=storage, schedule_id=schedule_id, slot=slot, max_attempts=max_attempts
    )
    planned.save(force_insert=True)
    note(planned.id, TimelineEvent.ENQUEUED)
    record(by, "backup", database, job=str(planned.id))
    return planned.id


def plan_backup(
    database: Database,
    flags: Mapping[str, Any],
    *,
    storage: Storage | None = None,
    late: bool = False,
    **columns: Any,
) -> QueuedJob:
    """The job of a backup, for the database's owner; not queued yet, and nothing is asked of the database.

    Raises `jobs.pgtools.errors.InvalidFlags`, and `ServiceError` for somebody else's storage.
    """
    payload: dict[str, Any] = {
        "database_id": str(database.id),
        "database_name": database.name,
        "flags": DumpFlags.from_dict(flags).to_dict(),
    }
    if storage is not None:
        if storage.user_id not in (None, database.user_id):
            raise ServiceError(f"The storage {storage.name!r} is another account's: choose another one.")
        payload["storage_id"] = str(storage.id)
    if late:
        payload["late"] = True
    return QueuedJob(queue=Queue.BACKUP, user_id=database.user_id, payload=payload, **columns)


def enqueue_many(planned: Sequence[QueuedJob], detail: str = "") -> set[UUID]:
    """Queue what `plan_backup` made for the slots of schedules, in one statement; the ids of those queued.

    A slot that has a job already, or had one of which only the history is left, gets no second one.
    `detail` goes into each job's timeline.
    """
    columns = [
        {
            "id": job.id,
            "user_id": job.user_id,
            "payload": job.payload,
            "schedule_id": job.schedule_id,
            "slot": job.slot,
        }
        for job in planned
    ]
    parameters = {"planned": json.dumps(columns, default=str), "detail": detail}
    return {row["id"] for row in rows(sql.ENQUEUE_BACKUPS, parameters)}


def enqueue(
    queue: Queue, user_id: int, payload: dict[str, Any], max_attempts: int = 1, **columns: Any
) -> UUID:
    """Put a job into the queue. What is in the payload has been checked."""
    job_id = uuid.uuid4()
    QueuedJob.objects.create(
        id=job_id, queue=queue, user_id=user_id, payload=payload, max_attempts=max_attempts, **columns
    )
    note(job_id, TimelineEvent.ENQUEUED)
    return job_id


@transaction.atomic
def cancel_job(job_id: UUID, *, by: User) -> str:
    """ "cancelled" at once while it waits, "requested" while it runs (its worker ends it within seconds).
    Raises `NotFound`, or `ServiceError` when the job has ended already."""
    job = visible_to(by, QueuedJob.objects.filter(id=job_id)).first()
    if job is None:
        raise NotFound(f"No job {job_id} is waiting or running.")
    outcome = queue_cancel.cancel(job_id, f"Cancelled by {by.get_username()}.")
    if not outcome:
        job.refresh_from_db()
        raise ServiceError(f"Job {job_id} has ended already: {job.status}.")
    record(by, "cancel", job)
    return outcome


def record(by: User, action: str, subject: models.Model, **detail: Any) -> None:
    """A line of what people did."""
    ActivityEvent.objects.create(
        user=by,
        username=by.get_username(),
        action=action,
        object_type=str(subject._meta.verbose_name),
        object_id=str(subject.pk),
        object_name=str(subject),
        detail=detail,
    )
