"""Ending a job early: at once while it waits, through its worker while it runs."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from jobs.models.activity import TimelineEvent
from jobs.models.history import Status
from jobs.queue import history, notify, sql
from jobs.queue.rows import Job, QueueRow, as_job, as_row, execute, rows
from jobs.queue.timeline import note


def cancel(job_id: UUID, reason: str) -> str:
    """ "cancelled" when the job was waiting, "requested" when its worker has been told, "" when it had
    ended already."""
    with transaction.atomic():
        found = rows(sql.LOCK_UNFINISHED, {"id": job_id})
        if not found:
            return ""
        if found[0]["status"] == "pending":
            _end(as_row(found[0]), reason)
            return "cancelled"
        _request(as_job(found[0], found[0]["locked_by"]), reason)
        return "requested"


def _end(job: QueueRow, reason: str) -> None:
    execute(sql.CANCEL_WAITING, {"id": job.id, "reason": reason})
    history.finalise(job, Status.CANCELLED, reason)
    note(job.id, TimelineEvent.CANCELLED, detail=reason)
    notify.event(job.queue, "failed", job.id, job.user_id)


def _request(job: Job, reason: str) -> None:
    execute(sql.REQUEST_CANCEL, {"id": job.id})
    note(job.id, TimelineEvent.CANCEL_REQUESTED, attempt=job.attempts, worker=job.worker, detail=reason)
    notify.cancel(job.id)
