"""Schedules as commands show them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from jobs.management.text import moment, printable
from schedules.cron import CronError
from schedules.health import Health, health
from schedules.models import Keeping, Schedule
from schedules.retention import Policy
from schedules.wording import in_words

HEAD = ("NAME", "DATABASE", "WHEN", "NEXT RUN", "LAST SUCCESS", "HEALTH")


def shown(schedules: QuerySet[Schedule]) -> list[tuple[Schedule, Health]]:
    """By name, each with how it does."""
    told = health(schedules)
    rows = schedules.select_related("database").prefetch_related("schedulestorage_set__storage")
    return [(row, told[row.id]) for row in rows.order_by("name", "id") if row.id in told]


def when(schedule: Schedule) -> str:
    """In words, or as it stands where it cannot be read."""
    try:
        words = in_words(schedule.cron_expression)
    except CronError:
        words = schedule.cron_expression
    return printable(f"{words} ({schedule.timezone})")


def state(schedule: Schedule, found: Health) -> str:
    """How it does, in the words of the pages' badges: everything that is wrong, the worst first."""
    copies = "1 copy" if found.copies_lagging == 1 else f"{found.copies_lagging} copies"
    problems = (
        (found.broken, "broken"),
        (found.overdue, "overdue"),
        (found.failures == 1, "last run failed"),
        (found.failures > 1, f"failing: {found.failures} times"),
        (found.copies_lagging, f"{copies} lagging"),
        (schedule.retention_error, "retention failing"),
    )
    if wrong := [words for is_so, words in problems if is_so]:
        return ", ".join(wrong)
    if found.running:
        return "running"
    if not schedule.enabled:
        return "off"
    return "healthy" if found.last_success else "no backup yet"


def cells(schedule: Schedule, found: Health) -> tuple[str, ...]:
    return (
        printable(schedule.name),
        printable(schedule.database.name),
        when(schedule),
        moment(found.next_run_at),
        moment(found.last_success),
        state(schedule, found),
    )


def as_dict(schedule: Schedule, found: Health) -> dict[str, Any]:
    """For --json; times as ISO 8601 in UTC. Rules that are not set are left out."""
    return {
        "id": str(schedule.id),
        "name": schedule.name,
        "database": schedule.database.name,
        "cron": schedule.cron_expression,
        "timezone": schedule.timezone,
        "words": when(schedule),
        "enabled": schedule.enabled,
        "flags": schedule.flags,
        "skip_missed": schedule.skip_missed,
        "overlap": schedule.overlap,
        "keep": _rules(schedule),
        "keep_failed": schedule.keep_failed,
        "storages": [
            {"name": each.storage.name, "keep": _rules(each)} for each in schedule.schedulestorage_set.all()
        ],
        "state": state(schedule, found),
        "next_run_at": _iso(found.next_run_at),
        "last_slot": _iso(schedule.last_slot),
        "last_status": found.last_status,
        "last_success": _iso(found.last_success),
        "last_success_id": found.last_success_id,
        "failures": found.failures,
        "overdue": found.overdue,
        "running": found.running,
        "copies_lagging": found.copies_lagging,
        "broken": found.broken,
        "retention_error": schedule.retention_error,
    }


def _rules(row: Keeping) -> dict[str, int]:
    return {name.removeprefix("keep_"): value for name, value in vars(Policy.of(row)).items() if value}


def _iso(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
