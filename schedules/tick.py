"""The scheduler: every due row becomes a job and gets its next time, in one transaction.

An advisory lock lets one worker tick at a time, and a slot's unique key is the backstop. Every batch is a
transaction of its own, and after a few seconds the rest is left to the next turn: this shares a thread with
the signs of life.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from jobs.models import Storage
from jobs.queue.rows import execute, rows
from jobs.services import enqueue_many
from schedules import sql
from schedules.firing import Verdict, decide
from schedules.models import Schedule, ScheduleStorage

LOCK_KEY = 0x70676272_7469636B  # "pgbrtick"
BATCH = 500
READ = (
    "id", "user_id", "database__id", "database__user_id", "database__name", "cron_expression", "timezone",
    "flags", "next_run_at", "skip_missed", "overlap", "broken",
)  # fmt: skip

log = logging.getLogger(__name__)


def tick() -> int:
    """Queue the backups of every schedule that is due; the number queued. An upkeep duty, safe to run in many
    workers at once. Broken rows are looked at last, some at every turn: one that was mended fires again."""
    until = time.monotonic() + settings.HEARTBEAT_SECONDS / 3
    queued, seen = 0, BATCH
    while seen == BATCH:
        seen, jobs = _batch(_due)
        queued += jobs
        if time.monotonic() > until:
            return queued
    return queued + _batch(_broken)[1]


def _due(now: datetime) -> QuerySet[Schedule]:
    when = Q(next_run_at__isnull=True) | Q(next_run_at__lte=now)
    return Schedule.objects.filter(when, broken__isnull=True).order_by("next_run_at")


def _broken(_: datetime) -> QuerySet[Schedule]:
    return Schedule.objects.filter(broken__isnull=False).order_by("?")


@transaction.atomic
def _batch(choose: Callable[[datetime], QuerySet[Schedule]]) -> tuple[int, int]:
    """How many schedules were looked at (none while somebody else ticks), and how many jobs that made."""
    (lock,) = rows(sql.TRY_TICK_LOCK, {"key": LOCK_KEY})
    if not lock["got"]:
        return 0, 0
    found = _held(choose(lock["now"]))
    storages = _first_storages([schedule.id for schedule in found])
    verdicts = [decide(schedule, storages.get(schedule.id), lock["now"]) for schedule in found]
    _tell(found, verdicts)
    return len(found), _write(_without_overlap(found, verdicts))


def _held(chosen: QuerySet[Schedule]) -> list[Schedule]:
    """Locked rows, past those that somebody is just saving: nobody's open transaction stops the others."""
    held = chosen.filter(enabled=True).select_for_update(skip_locked=True, of=("self",), no_key=True)
    return list(held.select_related("database").only(*READ)[:BATCH])


def _first_storages(schedules: Sequence[UUID]) -> dict[UUID, Storage]:
    rows_of = ScheduleStorage.objects.filter(schedule__in=schedules).select_related("storage")
    first = rows_of.order_by("schedule_id", "position").distinct("schedule_id")
    return {row.schedule_id: row.storage for row in first}


def _without_overlap(found: Sequence[Schedule], verdicts: Sequence[Verdict]) -> list[Verdict]:
    careful = [schedule.id for schedule in found if schedule.overlap == "skip"]
    unfinished = {row["schedule_id"]: row for row in rows(sql.UNFINISHED, {"schedules": careful})}
    return [
        each.instead_of_overlapping(row["id"], row["status"])
        if each.job and (row := unfinished.get(each.schedule_id))
        else each
        for each in verdicts
    ]


def _write(verdicts: Sequence[Verdict]) -> int:
    """Jobs, left out slots and next times; the number of jobs."""
    planned = [each.job for each in verdicts if each.job]
    queued = enqueue_many(planned, "by its schedule") if planned else set()
    if skips := [_skip(each) for each in verdicts if each.left_out]:
        execute(sql.SKIP, {"skips": json.dumps(skips, default=str)})
    if verdicts:
        seen = [_seen(each) for each in verdicts]
        execute(sql.TICKED, {"seen": json.dumps(seen, default=str)})
    return len(queued)


def _seen(verdict: Verdict) -> dict[str, Any]:
    return {
        "id": verdict.schedule_id,
        "next_run_at": verdict.next_run_at,
        "slot": verdict.slot,
        "broken": verdict.broken,
    }


def _skip(verdict: Verdict) -> dict[str, Any]:
    return {
        "schedule_id": verdict.schedule_id,
        "slot": verdict.slot,
        "reason": verdict.left_out,
        "backup_id": verdict.unfinished,
    }


def _tell(found: Sequence[Schedule], verdicts: Sequence[Verdict]) -> None:
    for schedule, verdict in zip(found, verdicts, strict=True):
        if verdict.broken and verdict.broken != schedule.broken:
            log.warning("schedule %s cannot fire: %s", schedule.id, verdict.broken)
