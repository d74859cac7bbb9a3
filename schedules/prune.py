"""Retention at work: what a schedule's policies give up is deleted; what a tightened one would, waits.

Each storage is looked at by itself. The newest good copy in each always stays: `jobs.deleting.mark_surplus`
looks again at everything that matters while the rows are locked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.db.utils import Error

from jobs import deleting, ending
from jobs.models import BackupCopy, BackupJob, QueuedJob
from jobs.models.history import Status
from jobs.models.storage import CopyState
from schedules.models import Schedule
from schedules.policies import Policies
from schedules.surplus import Fate, candidates, decision, good, preview, sources, storages_of

__all__ = ["Fate", "Policies", "preview", "prune", "prune_due", "tightened"]

DAILY, AGAIN_AFTER_TROUBLE, OVERLAP = timedelta(days=1), timedelta(minutes=15), timedelta(minutes=1)
LONGEST_RUN = timedelta(days=2)  # of a backup; what took longer is seen by the daily look
ROUND_SECONDS = 120.0  # then other duties have their turn
WAITS_FOR_PINGS = timedelta(hours=1)
MOST_FAILED = 1000  # of a schedule's failed runs at a time

log = logging.getLogger(__name__)


def prune_due() -> int:
    """Prune the schedules with something new, and each once a day; how many copies and runs are gone. An
    upkeep duty: a schedule's trouble is its own, and kept in `retention_error`."""
    gone, away, until = 0, set[UUID](), time.monotonic() + ROUND_SECONDS
    _spare_the_orphaned()
    for schedule_id in list(due().order_by("pruned_at").values_list("id", flat=True)):
        if ending.has_begun() or time.monotonic() > until:
            break
        schedule = due().filter(id=schedule_id).first()  # not if another worker was faster
        try:
            gone += prune(schedule, away=away) if schedule else 0
        except Error:
            raise
        except Exception as error:
            log.exception("retention of the schedule %s failed", schedule)
            Schedule.objects.filter(id=schedule_id).update(retention_error=str(error))
    return gone


def due() -> QuerySet[Schedule]:
    """Looked at again for a moment after: what was being finished meanwhile must not be missed."""
    since, began = _before_pruned(OVERLAP), _before_pruned(LONGEST_RUN)
    backups = BackupJob.objects.filter(schedule_id=OuterRef("pk"), created_at__gt=began)
    backups = backups.filter(completed_at__gt=since, status__in=deleting.ENDED)
    copies = BackupCopy.objects.filter(backup__schedule_id=OuterRef("pk"), backup__created_at__gt=began)
    copies = copies.filter(completed_at__gt=since)
    return Schedule.objects.filter(
        Q(pruned_at=None)
        | Q(pruned_at__lt=Now() - DAILY)
        | Q(pruned_at__lt=Now() - AGAIN_AFTER_TROUBLE, retention_error__isnull=False)
        | Exists(backups)
        | Exists(copies)
        | Exists(overdue().filter(backup__schedule_id=OuterRef("pk")))
    )


def _before_pruned(time: timedelta) -> ExpressionWrapper[CombinedExpression]:
    return ExpressionWrapper(OuterRef("pruned_at") - time, output_field=DateTimeField())


def prune(schedule: Schedule, *, away: set[UUID] | None = None) -> int:
    """Delete what its policies give up, and old failed runs; how many copies and runs are gone. Storages that
    are `away` are not asked.

    What could not be deleted is told in `retention_error` and tried again. Raises
    `schedules.cron.CronError` when the schedule's time zone is unknown.
    """
    Schedule.objects.filter(id=schedule.id).update(pruned_at=Now())
    for storage_id in storages_of(schedule.id):
        _mark(schedule.id, storage_id)
        _mark_overdue(schedule.id, storage_id)
    mine = BackupCopy.objects.filter(backup__schedule_id=schedule.id)
    gone = deleting.work_off(mine, away=away) + _drop_failed(schedule)
    Schedule.objects.filter(id=schedule.id).update(retention_error=_trouble(schedule.id))
    return gone


@transaction.atomic
def _mark(schedule_id: UUID, storage_id: UUID) -> None:
    """Decided while the schedule is locked, so that no policy is changed in between."""
    row = Schedule.objects.select_for_update(no_key=True).filter(id=schedule_id).first()
    if row is not None:
        decided = decision(row.id, storage_id, Policies.of(row))
        refused = candidates(row.id).filter(storage_id=storage_id, next_attempt_at__isnull=False)
        deleting.keep(refused.filter(backup_id__in=decided.keep))
        deleting.mark_surplus(row.id, storage_id, set(decided.delete) - sources(decided.delete))


def _mark_overdue(schedule_id: UUID, storage_id: UUID) -> None:
    """What a tightened policy gave up, and nobody took back. The newest first: one that turns out to be the
    newest good one, or pinned, stays after all, and is what older ones go by."""
    rows = overdue().filter(backup__schedule_id=schedule_id, storage_id=storage_id)
    newest = rows.annotate(moment=deleting.moment("backup__")).order_by("-moment", "-backup_id")
    for backup_id in list(newest.values_list("backup_id", flat=True)):
        with transaction.atomic():
            marked = deleting.mark_surplus(schedule_id, storage_id, [backup_id], given_up=True)
            if not marked and not deleting.wanted_by_restores([backup_id]):
                rows.filter(backup_id=backup_id).update(delete_after=None)


def overdue() -> QuerySet[BackupCopy]:
    return BackupCopy.objects.filter(
        deleting.due(), delete_after__lte=Now(), state=CopyState.GOOD, backup__trashed_at=None
    )


def _spare_the_orphaned() -> None:
    """With its schedule gone there is no policy any more that could give a copy up."""
    schedules = Schedule.objects.filter(id=OuterRef("backup__schedule_id"))
    given_up = BackupCopy.objects.filter(~Exists(schedules), delete_after__isnull=False)
    given_up.filter(state=CopyState.GOOD).update(delete_after=None)


@transaction.atomic
def tightened(schedule: Schedule, old: Policies, new: Policies) -> int:
    """Give what only the new policies delete TRASH_DAYS to be taken back; how many copies wait now. What they
    keep after all waits no longer. To be called in the transaction that changes the schedule's row."""
    waiting = 0
    mine = BackupJob.objects.filter(schedule_id=schedule.id, status=Status.COMPLETED)
    list(deleting.in_order(mine).values_list("id"))  # nobody pins one meanwhile
    for storage_id in storages_of(schedule.id):
        kept = decision(schedule.id, storage_id, new, good(schedule.id)).keep
        here = BackupCopy.objects.filter(storage_id=storage_id)
        here.filter(backup_id__in=kept, delete_after__isnull=False).update(delete_after=None)
        gone = set(decision(schedule.id, storage_id, new).delete)
        newly = gone - set(decision(schedule.id, storage_id, old).delete)
        if settings.TRASH_DAYS:
            waiting += _give_up(here, schedule.id, newly)
    return waiting


def _give_up(here: QuerySet[BackupCopy], schedule_id: UUID, backup_ids: Collection[UUID]) -> int:
    chosen = candidates(schedule_id).filter(backup_id__in=backup_ids, backup__pinned=False)
    until = Now() + timedelta(days=settings.TRASH_DAYS)
    return here.filter(id__in=chosen.values("id"), state=CopyState.GOOD).update(delete_after=until)


def _drop_failed(schedule: Schedule) -> int:
    with transaction.atomic():
        old = _failed(schedule).filter(id__in=old_failed(schedule)[:MOST_FAILED])
        return sum(deleting.mark_all(backup) for backup in deleting.locked(old, wait=False))


def old_failed(schedule: Schedule) -> list[UUID]:
    """Failed and cancelled runs beyond `keep_failed`, once the monitor has been told of them."""
    if schedule.keep_failed is None:
        return []
    newest = _failed(schedule).annotate(moment=deleting.moment()).order_by("-moment", "-id")
    old = list(newest.values_list("id", flat=True)[schedule.keep_failed :])
    if schedule.ping_success_url or schedule.ping_failure_url:
        told = BackupJob.objects.filter(id__in=old, completed_at__lt=Now() - WAITS_FOR_PINGS)
        return list(told.values_list("id", flat=True))
    return old


def _failed(schedule: Schedule) -> QuerySet[BackupJob]:
    unfinished = QueuedJob.objects.filter(id=OuterRef("id"), status__in=["pending", "active"])
    rows = BackupJob.objects.filter(schedule_id=schedule.id, status__in=[Status.FAILED, Status.CANCELLED])
    return rows.filter(~Exists(unfinished), trashed_at=None, pinned=False)


def _trouble(schedule_id: UUID) -> str | None:
    stuck = BackupCopy.objects.filter(
        Q(state__in=[CopyState.DELETING, CopyState.GOOD], next_attempt_at__isnull=False),
        backup__schedule_id=schedule_id,
        error__isnull=False,
    )
    first = stuck.order_by("next_attempt_at").select_related("storage").first()
    if first is None:
        return None
    count = stuck.count()
    what = "A copy" if count == 1 else f"{count} copies, one"
    return f"{what} in {first.storage.name!r} could not be deleted, which is tried again: {first.error}"
