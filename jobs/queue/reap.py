"""Taking jobs back from workers that went silent.

A stall is not a failure of the job: the attempt is refunded. But a job that stalls `STALL_LIMIT` times
has probably killed its workers, and fails for good.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.conf import settings
from django.db import transaction

from jobs.models.activity import TimelineEvent
from jobs.models.history import Status
from jobs.queue import history, notify, sql
from jobs.queue.rows import Job, as_job, execute, rows
from jobs.queue.timeline import note

BATCH = 50
log = logging.getLogger(__name__)


class Quiet:
    """Until when this process reaps nothing: after it lost its database, one stale period from its return.

    The outage was everybody's; the healthy workers must have the time to say that they are alive.
    """

    def __init__(self) -> None:
        self.until = 0.0

    def after_reconnect(self) -> None:
        self.until = time.monotonic() + float(settings.STALE_SECONDS)

    def __bool__(self) -> bool:
        return time.monotonic() < self.until


quiet = Quiet()


def reap_stale() -> int:
    """Take back every stale job; the number taken. An upkeep duty, safe to run in many workers at once."""
    taken = 0
    while not quiet:
        batch = _reap_batch()
        taken += batch
        if batch < BATCH:
            break
    return taken


def take_back(worker: str) -> int:
    """Take back what a process held that is known to be dead; the number taken."""
    with transaction.atomic():
        held = rows(sql.HELD_BY, {"worker": worker})
        for row in held:
            _reap(row, f"the worker process {worker} died")
    return len(held)


def _reap_batch() -> int:
    with transaction.atomic():
        stale = rows(sql.STALE, {"stale": settings.STALE_SECONDS, "batch": BATCH})
        for row in stale:
            silent = f"{row['silent_for']:.0f} s"
            _reap(row, f"the worker process {row['locked_by']} was not heard of for {silent}")
    return len(stale)


def _reap(row: dict[str, Any], silence: str) -> None:
    job = as_job(row, row["locked_by"])
    stalls = job.stalls + 1
    note(job.id, TimelineEvent.STALLED, attempt=job.attempts, worker=job.worker, detail=silence)
    if row["cancelled"]:
        _close(job, Status.CANCELLED, f"Cancelled; {silence} before it could confirm.")
    elif stalls >= settings.STALL_LIMIT:
        times = "once" if stalls == 1 else f"{stalls} times"
        _close(
            job,
            Status.FAILED,
            f"Stalled {times}: {silence}. The job may be what kills its worker (out of memory, a crash), so "
            "it is not tried again by itself. Look at the worker's log around that time, then re-run it.",
        )
    else:
        _put_back(job, silence)
    log.warning("took a job back: %s", silence, extra=job.log_fields)


def _close(job: Job, status: Status, error: str) -> None:
    execute(sql.COUNT_STALL, {"id": job.id})
    execute(sql.FINISH, {"id": job.id, "claim_id": job.claim_id, "status": status.value, "error": error})
    history.finalise(job, status, error)
    note(job.id, TimelineEvent(status.value), attempt=job.attempts, detail=error)
    notify.event(job.queue, "failed", job.id, job.user_id)


def _put_back(job: Job, reason: str) -> None:
    execute(
        sql.PUT_BACK,
        {"id": job.id, "claim_id": job.claim_id, "delay": 0, "refund": 1, "stalled": 1, "reason": reason},
    )
    history.put_back(job)
    notify.wake(job.queue)
    notify.event(job.queue, "progress", job.id, job.user_id)
