"""How a schedule is, as badges: colour, icon and word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.admin import formats
from schedules.health import Health
from schedules.models import Schedule

OVERDUE = "Its time has passed, or its run has waited for over an hour: is a worker running?"

Badge = tuple[str, str, str]  # a status of `formats.status`, the word shown, what is behind it


def problems(schedule: Schedule, health: Health | None) -> Iterator[Badge]:
    if schedule.broken:
        yield "failed", "broken", schedule.broken
    if health is None:
        return
    if health.overdue:
        yield "failed", "overdue", OVERDUE
    if health.failures:
        yield "failed", _times(health.failures), _since(health.failures)
    if health.copies_lagging:
        copies = "1 copy" if health.copies_lagging == 1 else f"{health.copies_lagging} copies"
        yield "warning", f"{copies} lagging", "Backups that do not lie in all of its storages yet."
    if schedule.retention_error:
        yield "warning", "retention failing", schedule.retention_error


def state(schedule: Schedule, health: Health | None) -> Badge:
    """Of one without problems."""
    if health is not None and health.running:
        return "running", "running", "A backup of it runs now."
    if not schedule.enabled:
        return "cancelled", "off", "It runs by hand only."
    if health is None or health.last_success is None:
        return "pending", "no backup yet", ""
    return "good", "healthy", ""


def badges(schedule: Schedule, health: Health | None) -> SafeString:
    found = list(problems(schedule, health)) or [state(schedule, health)]
    shown = ((why, formats.status(kind, word)) for kind, word, why in found)
    return format_html(
        '<span class="checks">{}</span>', format_html_join(" ", '<span title="{}">{}</span>', shown)
    )


def _times(failures: int) -> str:
    return "last run failed" if failures == 1 else f"failing, {failures} times"


def _since(failures: int) -> str:
    runs = "One run has" if failures == 1 else f"{failures} runs have"
    return f"{runs} failed since the last one that succeeded."


def lines(schedule: Schedule, health: Health | None) -> list[dict[str, Any]]:
    """The problems with what is behind them, for a page that has room."""
    return [{"kind": kind, "word": word, "why": why} for kind, word, why in problems(schedule, health)]
