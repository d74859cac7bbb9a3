"""Values as people read them: sizes, durations, ages, and a status as colour, icon and word.

Functions that return markup escape everything they are given.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.storage.base import FOREVER
from jobs.units import in_bytes, in_time

NOTHING = "\u2013"  # an en dash
PERIODS = ((86400 * 365, "year"), (86400 * 30, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))
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
    "stop": "✕",
    "warn": "!",
    "ok": "✓",
}
LEVELS = {"warn": "warning"}


def size(count: object) -> str:
    """Bytes. What is no number (these come out of JSON too) is a dash."""
    return in_bytes(count) if isinstance(count, int | float) else NOTHING


def duration(seconds: object) -> str:
    """A dash for what is no number."""
    return in_time(seconds) if isinstance(seconds, int | float) else NOTHING


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
    # What is to come is told as it was promised: a week begins as 7 days, not as 6.
    count = max(int(distance // length) if seconds >= 0 else round(distance / length), 1)
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


def lock(until: datetime | None) -> str:
    """Of an object that nobody can delete before; "" when there is no lock (any more)."""
    if until is None or until <= timezone.now():
        return ""
    return "locked by a legal hold" if until >= FOREVER else f"locked until {exact(until)}"


def status(word: str, shown: str | None = None) -> SafeString:
    """A badge; `shown` is the word where it differs from the status itself."""
    known = word if word in ICONS else "pending"
    return format_html(
        '<span class="badge badge-{}"><span class="badge-icon" aria-hidden="true">{}</span>{}</span>',
        known,
        ICONS[known],
        shown or word,
    )


def level(word: str) -> SafeString:
    """Of a finding: stop, warn or ok."""
    return status(word, LEVELS.get(word, word))
