"""The values of a schedule as its pages show them."""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin import formats
from schedules.admin.timing import local
from schedules.cron import CronError
from schedules.health import Health
from schedules.models import Schedule
from schedules.wording import in_words


def words(schedule: Schedule) -> str:
    """The expression itself where it means nothing."""
    try:
        return in_words(schedule.cron_expression)
    except CronError:
        return schedule.cron_expression


def timing(schedule: Schedule) -> SafeString:
    return format_html(
        '<span title="{}">{}</span><br><span class="quiet-text">{}</span>',
        schedule.cron_expression,
        words(schedule),
        schedule.timezone,
    )


def moment(instant: datetime, zone: str) -> SafeString:
    """The relative time, with the exact one in the zone and in UTC on hover."""
    utc = formats.exact(instant)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        instant.isoformat(),
        utc if zone == "UTC" else f"{local(instant, zone)} ({utc})",
        formats.age(instant),
    )


def next_run(schedule: Schedule) -> SafeString | str:
    if not schedule.enabled or schedule.broken:
        return formats.NOTHING
    if schedule.next_run_at is None:
        return "soon"
    if schedule.next_run_at <= timezone.now():
        return format_html('<span class="due">due {}</span>', moment(schedule.next_run_at, schedule.timezone))
    return moment(schedule.next_run_at, schedule.timezone)


def last_success(schedule: Schedule, health: Health | None) -> SafeString | str:
    if health is None or health.last_success is None:
        return formats.NOTHING
    when = moment(health.last_success, schedule.timezone)
    if health.last_success_id is None:
        return when
    link = reverse("admin:jobs_backupjob_change", args=[health.last_success_id])
    return format_html('<a href="{}">{}</a>', link, when)
