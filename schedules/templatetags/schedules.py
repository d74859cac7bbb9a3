"""What pages of databases and backups, which know no schedules, show of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin import formats
from jobs.models import BackupJob, Database
from schedules.admin import columns
from schedules.admin.overview import with_health
from schedules.admin.timing import local
from schedules.models import Schedule

register = template.Library()


@register.filter
def at(instant: datetime, zone: str) -> SafeString:
    """As the clock of the zone had it; in UTC, to the second, on hover."""
    utc, shown = formats.exact(instant), local(instant, zone)
    return format_html('<time datetime="{}" title="{}">{}</time>', instant.isoformat(), utc, shown)


@register.inclusion_tag("schedules/of_database.html")
def schedules_of(database: Database) -> dict[str, Any]:
    rows = Schedule.objects.filter(database=database).order_by("name")[:20]
    return {"database": database, "lines": with_health(rows)}


@register.inclusion_tag("schedules/of_backup.html")
def schedule_of(backup: BackupJob) -> dict[str, Any]:
    schedule = Schedule.objects.filter(pk=backup.schedule_id).first() if backup.schedule_id else None
    return {"backup": backup, "schedule": schedule, "slot": slot_of(backup, schedule)}


def slot_of(backup: BackupJob, schedule: Schedule | None) -> str:
    if backup.slot is None:
        return ""
    return columns.moment(backup.slot, schedule.timezone if schedule else "UTC")
