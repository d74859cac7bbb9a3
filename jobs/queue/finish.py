"""Everything a worker writes about a job it holds. Each function raises `ClaimLost`, having written
nothing, once the job belongs to somebody else.

The order is always the same: lock the queue row by its claim, write both rows, the timeline and the
NOTIFY, commit. So no reader sees half a verdict, and a zombie cannot write one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import transaction

from jobs.models.activity import TimelineEvent
from jobs.models.history import Status
from jobs.queue import history, notify, sql
from jobs.queue.rows import AlreadyEnded, ClaimLost, Job, as_job, execute, rows, storable
from jobs.queue.timeline import note

LONGEST_ERROR = 20_000  # characters
RETRY_DELAYS = (30, 120, 600, 3600)  # seconds before the second, third, … attempt


@contextmanager
def held(job: Job, ending: Status | None = None) -> Iterator[bool]:
    """A transaction in which the job cannot change hands; yields whether it is to be cancelled.

    Raises `AlreadyEnded` when this claim has written `ending` before, else `ClaimLost`.
    """
    with transaction.atomic():
        found = rows(sql.LOCK_HELD, {"id": job.id, "claim_id": job.claim_id})
        if not found:
            raise ClaimLost(job.id)
        if found[0]["status"] != "active":
            raise AlreadyEnded(job.id) if found[0]["status"] == ending else ClaimLost(job.id)
        yield found[0]["cancelled"]


def start(job: Job) -> None:
    """Write the history row: the work begins."""
    with held(job):
        history.start(job)
        notify.event(job.queue, "progress", job.id, job.user_id)


def progress(job: Job, **values: Any) -> None:
    with held(job):
        history.update(job, **values)
        notify.event(job.queue, "progress", job.id, job.user_id)


def complete(job: Job, also: Callable[[], None] | None = None, **values: Any) -> None:
    """`values`: columns of the history table, such as size and sha256. `also` writes more in the same
    transaction."""
    with held(job, Status.COMPLETED):
        if also is not None:
            also()
        _close(job, Status.COMPLETED, None, values)


def fail(job: Job, error: str, **values: Any) -> None:
    """Failed for good, or put back with growing delay while attempts are left."""
    with held(job, Status.FAILED) as to_be_cancelled:
        if job.attempts < job.max_attempts and not to_be_cancelled:
            delay = RETRY_DELAYS[min(job.attempts, len(RETRY_DELAYS)) - 1]
            _put_back(job, TimelineEvent.RETRY, error, delay=delay, refund=0)
        else:
            _close(job, Status.FAILED, error, values)


def cancelled(job: Job, reason: str, **values: Any) -> None:
    with held(job, Status.CANCELLED):
        _close(job, Status.CANCELLED, reason, values)


def hand_back(job: Job, reason: str, *, delay: float = 0.0) -> None:
    """Waiting again after `delay` seconds, as if it had not been tried; or cancelled, if that was asked for
    meanwhile."""
    with held(job, Status.CANCELLED) as to_be_cancelled:
        if to_be_cancelled:
            _close(job, Status.CANCELLED, "Cancelled.", {})
        else:
            _put_back(job, TimelineEvent.HANDED_BACK, reason, delay=delay, refund=1)


def hand_back_unanswered(worker: str, known: Collection[UUID]) -> int:
    """Put back what a claim gave to this process while its answer was lost: all it holds but does not know
    of. The number of jobs."""
    with transaction.atomic():
        found = rows(sql.UNANSWERED, {"worker": worker, "known": list(known)})
        for row in found:
            hand_back(as_job(row, worker), "The answer to the claim was lost on its way to the worker.")
    return len(found)


def _close(job: Job, status: Status, error: str | None, values: dict[str, Any]) -> None:
    error = error and storable(error[:LONGEST_ERROR])
    execute(sql.FINISH, {"id": job.id, "claim_id": job.claim_id, "status": status.value, "error": error})
    history.finalise(job, status, error, **values)
    note(job.id, TimelineEvent(status.value), attempt=job.attempts, worker=job.worker, detail=error or "")
    outcome = "completed" if status is Status.COMPLETED else "failed"
    notify.event(job.queue, outcome, job.id, job.user_id)


def _put_back(job: Job, event: TimelineEvent, reason: str, *, delay: float, refund: int) -> None:
    reason = storable(reason[:LONGEST_ERROR])
    execute(
        sql.PUT_BACK,
        {
            "id": job.id,
            "claim_id": job.claim_id,
            "delay": delay,
            "refund": refund,
            "stalled": 0,
            "reason": reason,
        },
    )
    history.put_back(job)
    note(job.id, event, attempt=job.attempts, worker=job.worker, detail=reason)
    notify.wake(job.queue)
    notify.event(job.queue, "progress", job.id, job.user_id)
