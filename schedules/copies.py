"""Which copies a schedule wants: its backups in each of its storages, as long as the policy there keeps them.

What is looked at is what there is, so that a storage which is added later gets the older backups, too, and
one that was away for long only what is still worth it. `jobs.copying` makes the copies.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import (
    Count,
    Exists,
    Func,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
)
from django.db.models.functions import Cast, JSONObject, Now
from django.utils import timezone

from jobs import deleting
from jobs.models import BackupCopy, BackupJob
from jobs.models.history import Status
from jobs.models.storage import CopyState
from jobs.storage.keys import moved_key
from schedules.errors import CronError
from schedules.models import Schedule, ScheduleStorage
from schedules.policies import Policies
from schedules.retention import Candidate, Policy, decide

log = logging.getLogger(__name__)

# What the last look decided on, of those that left nothing to do: else it would be decided anew each time,
# for as long as a policy does not want what is missing.
_settled: dict[tuple[UUID, UUID], tuple[object, ...]] = {}

# Made from another copy, and never there so far.
UNMADE = Q(state__in=[CopyState.WRITING, CopyState.FAILED], is_first=False, completed_at=None)
# Which rows are counted, in a number.
HASH = Func(Cast("id", TextField()), function="hashtext", output_field=IntegerField())
# Nobody writes it, and nobody has left anything that would have to be cleared away.
IDLE = UNMADE & Q(claim_id=None, upload_token="")


def plan_missing() -> int:
    """Plan the copies that are missing and forget planned ones that nobody wants any more; how many were
    planned. An upkeep duty, fit to run in several workers at once."""
    forget_unwanted()
    planned = 0
    targets = _unsettled().select_related("schedule", "storage")
    rows = list(targets.annotate(missing=_count_missing(), there=_count_there()))
    for gone in _settled.keys() - {_key(row) for row in rows}:
        del _settled[gone]
    for target in rows:
        if _settled.get(_key(target)) != _signature(target):
            planned += _settle_once(target)
    return planned


def _settle_once(target: ScheduleStorage) -> int:
    """Remembered only once it is committed and nothing was left out, or it would not be tried again."""
    _settled.pop(_key(target), None)
    planned, left_out = 0, 0
    try:
        planned, left_out = _settle(target)
    except CronError as error:  # the schedule is shown as broken
        log.warning("no copies are planned for the schedule %s: %s", target.schedule, error)
    if not left_out:
        _settled[_key(target)] = _signature(target)
    return planned


def _key(target: ScheduleStorage) -> tuple[UUID, UUID]:
    return target.schedule_id, target.storage_id


def _signature(target: ScheduleStorage) -> tuple[object, ...]:
    """Of what the decision goes by; every hour another one. `target` has what `plan_missing` adds to it."""
    schedule = target.schedule
    policies = (Policy.of(target), Policy.of(schedule), schedule.timezone, target.storage.prefix)
    return (*policies, repr(vars(target)["missing"]), repr(vars(target)["there"]), int(time.time() // 3600))


def _count_missing() -> Subquery:
    found = _missing(OuterRef(OuterRef("storage_id"))).filter(schedule_id=OuterRef("schedule_id"))
    counts = JSONObject(
        all=Count("id"),
        which=Sum(HASH),
        pinned=Count("id", filter=Q(pinned=True)),
        newest=Max("completed_at"),
    )
    return Subquery(found.order_by().values("schedule_id").annotate(counts=counts).values("counts"))


def _count_there() -> Subquery:
    found = BackupCopy.objects.filter(
        backup__schedule_id=OuterRef("schedule_id"), storage_id=OuterRef("storage_id")
    )
    good = Q(state=CopyState.GOOD, delete_after=None, backup__trashed_at=None)
    waiting = Count("id", filter=UNMADE)
    counts = JSONObject(good=Count("id", filter=good), which=Sum(HASH, filter=good), waiting=waiting)
    return Subquery(found.order_by().values("storage_id").annotate(counts=counts).values("counts"))


def forget_unwanted() -> None:
    """Planned copies into a storage that their schedule does not name any more."""
    schedule = Schedule.objects.filter(id=OuterRef("backup__schedule_id"))
    named = ScheduleStorage.objects.filter(
        schedule_id=OuterRef("backup__schedule_id"), storage_id=OuterRef("storage_id")
    )
    BackupCopy.objects.filter(IDLE, Exists(schedule), ~Exists(named)).delete()


def _unsettled() -> QuerySet[ScheduleStorage]:
    """Where a copy is missing, wanted or not, or waits to be made."""
    waiting = BackupCopy.objects.filter(
        IDLE, backup__schedule_id=OuterRef("schedule_id"), storage_id=OuterRef("storage_id")
    )
    missing = _missing(OuterRef(OuterRef("storage_id"))).filter(schedule_id=OuterRef("schedule_id"))
    return ScheduleStorage.objects.filter(Exists(missing) | Exists(waiting))


def _missing(storage_id: Any) -> QuerySet[BackupJob]:
    """Good backups of schedules that have no copy of any state there."""
    copies = BackupCopy.objects.filter(backup_id=OuterRef("pk"))
    return BackupJob.objects.filter(
        ~Exists(copies.filter(storage_id=storage_id)),
        Exists(copies.filter(state=CopyState.GOOD)),
        status=Status.COMPLETED,
        trashed_at=None,
    )


@transaction.atomic
def _settle(target: ScheduleStorage) -> tuple[int, int]:
    """How many were planned, and how many left out as somebody holds them. Raises `CronError` when the
    schedule's time zone is unknown."""
    here = BackupCopy.objects.filter(storage_id=target.storage_id)
    missing = _missing(target.storage_id).filter(schedule_id=target.schedule_id)
    absent = set(missing.values_list("id", flat=True))
    waiting = here.filter(UNMADE, backup__schedule_id=target.schedule_id)
    coming = absent | set(waiting.values_list("backup_id", flat=True))
    wanted = _kept(target, coming)
    waiting.filter(IDLE).exclude(backup_id__in=wanted).delete()
    planned = _plan(target, missing.filter(id__in=wanted & absent))
    return planned, len(wanted & absent) - planned


def _kept(target: ScheduleStorage, coming: Collection[UUID]) -> set[UUID]:
    """What the policy keeps there of the good copies and of those that are to come, as if all were there."""
    policies = Policies.of(target.schedule)
    good = BackupCopy.objects.filter(
        backup_id=OuterRef("pk"), storage_id=target.storage_id, state=CopyState.GOOD, delete_after=None
    )
    rows = BackupJob.objects.filter(schedule_id=target.schedule_id, status=Status.COMPLETED, trashed_at=None)
    rows = rows.filter(Q(id__in=coming) | Exists(good)).annotate(moment=deleting.moment())
    columns = rows.values_list("id", "moment", "size", "pinned")
    candidates = [Candidate(id_, moment, size or 0, pinned) for id_, moment, size, pinned in columns]
    decision = decide(candidates, policies.at(target.storage_id), timezone.now(), policies.zone)
    return set(decision.keep)


def _plan(target: ScheduleStorage, missing: QuerySet[BackupJob]) -> int:
    """Those that another worker plans or somebody deletes right now are left to them."""
    rows = [
        BackupCopy(
            backup=backup,
            storage=target.storage,
            storage_key=moved_key(backup.storage_key or "", target.storage.prefix),
            is_first=False,
            next_attempt_at=Now(),
        )
        for backup in deleting.locked(missing, wait=False)
    ]
    BackupCopy.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
