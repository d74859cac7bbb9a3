"""Values as people read them: sizes, durations, ages, and a status as colour, icon and word.

Functions that return markup escape everything they are given.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

NOTHING = "\u2013"  # an en dash
PERIODS = ((86400 * 365, "year"), (86400 * 30, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))
UNITS = ("kB", "MB", "GB", "TB", "PB")
# An icon that differs in shape, so that a status is told without its colour.
ICONS = {
    "pending": "○",
    "waiting": "○",
    "active": "◐",
    "running": "◐",
    "completed": "✓",
    "good": "✓",
    "failed": "✕",
    "cancelled": "⊘",
    "writing": "◐",
    "deleting": "⊘",
    "warning": "!",
}


def size(count: object) -> str:
    """Bytes in decimal units with three digits at least: "512 B", "15.3 MB", "1.25 GB". What is no number
    (these come out of JSON too) is a dash."""
    if not isinstance(count, int | float):
        return NOTHING
    if abs(count) < 1000:
        return f"{count:.0f} B"
    power = 1
    while abs(count) >= 999.5 * 1000**power and power < len(UNITS):
        power += 1
    value = count / 1000**power
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f} {UNITS[power - 1]}"


def duration(seconds: object) -> str:
    """ "0.4s", "12s", "3m 12s", "2h 5m", "3d 4h"; a dash for what is no number."""
    if not isinstance(seconds, int | float):
        return NOTHING
    if seconds < 0.95:
        return f"{max(seconds, 0.0):.1f}s"
    whole = round(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days}d {hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    if minutes:
        return f"{minutes}m {whole % 60}s" if whole % 60 else f"{minutes}m"
    return f"{whole}s"


def between(start: datetime | None, end: datetime | None) -> str:
    """How long it took; up to now where it has not ended."""
    if start is None:
        return NOTHING
    return duration(((end or timezone.now()) - start).total_seconds())


def age(moment: datetime, now: datetime | None = None) -> str:
    """ "just now", "5 minutes ago", "in 2 hours"."""
    seconds = ((now or timezone.now()) - moment).total_seconds()
    distance = abs(seconds)
    if distance < 45:
        return "just now" if seconds >= 0 else "in a moment"
    length, name = next(((length, name) for length, name in PERIODS if distance >= length), PERIODS[-1])
    count = max(int(distance // length), 1)
    words = f"{count} {name}" if count == 1 else f"{count} {name}s"
    return f"{words} ago" if seconds >= 0 else f"in {words}"


def exact(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def when(moment: datetime | None) -> SafeString | str:
    """The relative time with the exact one on hover."""
    if moment is None:
        return NOTHING
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.astimezone(UTC).isoformat(),
        exact(moment),
        age(moment),
    )


def status(word: str, shown: str | None = None) -> SafeString:
    """A badge; `shown` is the word where it differs from the status itself."""
    known = word if word in ICONS else "pending"
    return format_html(
        '<span class="badge badge-{}"><span class="badge-icon" aria-hidden="true">{}</span>{}</span>',
        known,
        ICONS[known],
        shown or word,
    )
