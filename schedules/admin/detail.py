"""The page of one schedule: how it is, what comes next, what was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from jobs.admin.base import OwnedAdmin
from jobs.admin.copies import shown_of
from jobs.copying import lonely
from jobs.models import BackupCopy, BackupJob, QueuedJob
from jobs.models.storage import CopyState
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.flags import DumpFlags
from schedules import cron
from schedules.admin import columns, keeping
from schedules.admin.badges import badges, lines
from schedules.admin.pages import page
from schedules.admin.timing import RUNS, Reading
from schedules.cron import CronError
from schedules.health import Health, health
from schedules.models import PingKind, Schedule, SchedulePing, SkippedSlot
from schedules.ping_urls import addresses
from schedules.plans import Target, targets_of
from schedules.retention import Policy

LATEST = 20


@dataclass(frozen=True)
class Place:
    """A storage of the schedule, and what is kept there."""

    target: Target
    rules: str


def detail(owner: OwnedAdmin[Any], request: HttpRequest, schedule: Schedule) -> HttpResponseBase:
    found = health(Schedule.objects.filter(pk=schedule.pk)).get(schedule.pk)
    shown: dict[str, Any] = {
        "original": schedule,
        "schedule": schedule,
        "health": found,
        "badges": badges(schedule, found),
        "problems": lines(schedule, found),
        "words": columns.words(schedule),
        "next_run": columns.next_run(schedule),
        "last_success": columns.last_success(schedule, found),
        "reading": coming(schedule),
        "places": list(_places(schedule)),
        "policy": keeping.in_words(Policy.of(schedule)),
        "flags": _flags(schedule),
        "lonely": _lonely(found),
        "addresses": addresses(schedule),
    }
    return page(owner, request, "schedule/detail.html", schedule.name, **shown, **_past(schedule))


def coming(schedule: Schedule) -> Reading | None:
    """Its next runs, of which `next_run_at` is the first; None for one that does not run on its own."""
    if not schedule.enabled or schedule.broken:
        return None
    known = [schedule.next_run_at] if schedule.next_run_at else []
    after = known[0] if known else timezone.now()
    try:
        runs = cron.upcoming(schedule.cron_expression, schedule.timezone, after, RUNS - len(known))
        return Reading(
            schedule.cron_expression,
            schedule.timezone,
            columns.words(schedule),
            cron.warnings(schedule.cron_expression),
            known + runs,
        )
    except (CronError, OverflowError):
        return None


def _past(schedule: Schedule) -> dict[str, Any]:
    backups = BackupJob.objects.filter(schedule_id=schedule.pk).defer("log", "manifest")
    # Both of one run may have been noted at the same instant.
    noted = SchedulePing.objects.filter(schedule=schedule).order_by("-created_at")[:LATEST]
    pings = sorted(noted, key=lambda ping: (ping.created_at, ping.kind != PingKind.START), reverse=True)
    called = {ping.backup_id for ping in pings}
    return {
        "backups": backups.order_by("-created_at")[:LATEST],
        "waiting": _waiting(schedule),
        "skipped": SkippedSlot.objects.filter(schedule=schedule).order_by("-slot")[:LATEST],
        "pings": pings,
        "known": set(BackupJob.objects.filter(pk__in=called).values_list("pk", flat=True)),
        "lagging": [shown_of(copy.backup, copy) for copy in _lagging(schedule)[:LATEST]],
        "given_up": _copies(schedule).filter(delete_after__isnull=False).order_by("delete_after")[:LATEST],
        "locked": _copies(schedule).filter(locked_until__gt=timezone.now(), state=CopyState.DELETING)[
            :LATEST
        ],
    }


def _waiting(schedule: Schedule) -> QuerySet[QueuedJob]:
    """Runs that no worker has taken up yet."""
    started = BackupJob.objects.filter(pk=OuterRef("pk"))
    jobs = QueuedJob.objects.filter(~Exists(started), schedule_id=schedule.pk, status="pending")
    return jobs.order_by("run_at")[:LATEST]


def _copies(schedule: Schedule) -> QuerySet[BackupCopy]:
    return BackupCopy.objects.filter(backup__schedule_id=schedule.pk).select_related("backup", "storage")


def _lagging(schedule: Schedule) -> QuerySet[BackupCopy]:
    unfinished = _copies(schedule).filter(is_first=False, state__in=[CopyState.WRITING, CopyState.FAILED])
    return unfinished.order_by("-backup__created_at")


def _places(schedule: Schedule) -> Iterator[Place]:
    for target in targets_of(schedule):
        own = target.policy if target.policy.is_set else Policy.of(schedule)
        yield Place(target, keeping.in_words(own))


def _lonely(found: Health | None) -> str:
    """A notice about the newest good backup."""
    if found is None or found.last_success_id is None:
        return ""
    return "".join(lonely(BackupJob.objects.filter(pk=found.last_success_id)).values())


def _flags(schedule: Schedule) -> str:
    try:
        return DumpFlags.from_dict(schedule.flags).in_words()
    except InvalidFlags as error:
        return f"not valid: {error}"
