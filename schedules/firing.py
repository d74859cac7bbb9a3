"""What a due schedule comes to: a job, a slot left out, only its next time, or a row that cannot fire."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from uuid import UUID

from jobs.models import QueuedJob, Storage
from jobs.pgtools.errors import InvalidFlags
from jobs.queue.rows import storable
from jobs.services import ServiceError, plan_backup
from schedules import cron
from schedules.models import Schedule

# A slot that is older has been missed; workers tick every 30 s.
GRACE = timedelta(minutes=5)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Verdict:
    """`next_run_at` None: as it was. A `slot` is dealt with by `job`, else `left_out` says why there is none.
    `unfinished`: the job that it was left out for."""

    schedule_id: UUID
    next_run_at: datetime | None = None
    slot: datetime | None = None
    job: QueuedJob | None = None
    left_out: str = ""
    unfinished: UUID | None = None
    broken: str | None = None

    def instead_of_overlapping(self, job_id: UUID, status: str) -> Verdict:
        doing = "runs" if status == "active" else "waits in the queue"
        words = f"The previous run has not ended: job {job_id} still {doing}."
        return replace(self, job=None, left_out=words, unfinished=job_id)


def decide(schedule: Schedule, storage: Storage | None, now: datetime) -> Verdict:
    """`storage`: the one that the dump goes into, None as the database says. Never raises: what is wrong with
    one row is that row's own trouble, and is told as `broken`."""
    try:
        return _decide(schedule, storage, now)
    except (cron.CronError, InvalidFlags, ServiceError) as error:
        return Verdict(schedule.id, broken=storable(str(error)))
    except Exception as error:
        if schedule.broken is None:
            log.exception("schedule %s cannot be read", schedule.id)
        return Verdict(schedule.id, broken=storable(f"It cannot be read: {type(error).__name__}: {error}"))


def _decide(schedule: Schedule, storage: Storage | None, now: datetime) -> Verdict:
    if schedule.user_id != schedule.database.user_id:
        raise ServiceError(
            f"The database {schedule.database.name!r} belongs to another account by now: that account has "
            "to make a schedule of its own."
        )
    job = plan_backup(schedule.database, schedule.flags, storage=storage, schedule_id=schedule.id)
    due = schedule.next_run_at
    slot, after = _times(schedule.cron_expression, schedule.timezone, due, now)
    if due is None or due > now:
        return Verdict(schedule.id, next_run_at=after if due is None else None)
    verdict = Verdict(schedule.id, next_run_at=after, slot=slot)
    late = now - slot > GRACE
    if late and schedule.skip_missed:
        return replace(verdict, left_out=_missed(slot, due))
    job.slot = slot
    if late:
        job.payload["late"] = True
    return replace(verdict, job=job)


@lru_cache(maxsize=2000)
def _times(expression: str, timezone: str, due: datetime | None, now: datetime) -> tuple[datetime, datetime]:
    """The latest slot that is due (what else was missed before it is not made up for), and the next one.

    A row that was made due by hand, at a time its expression does not name, fires at that time.
    """
    after = cron.next_run(expression, timezone, now)
    if due is None or due > now:
        return after, after
    return cron.previous_run(expression, timezone, now, due) or due, after


def _missed(slot: datetime, due: datetime) -> str:
    words = f"Missed: no worker looked within {GRACE.total_seconds() / 60:.0f} minutes."
    return f"{words} So were those from {due:%Y-%m-%d %H:%M} UTC on." if due < slot else words
