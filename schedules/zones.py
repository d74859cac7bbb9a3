"""Time zones by their IANA names, and where their wall clocks jump."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from schedules.errors import CronError

# Names of this machine, not of a place: they mean something else on the next one.
NOT_A_PLACE = {"localtime", "Factory"}


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Every zone this machine has data for: `Europe/Berlin`, `UTC`."""
    return frozenset(available_timezones() - NOT_A_PLACE)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo:
    """Raises CronError where there is no such zone, with the nearest names."""
    if name in zone_names():
        return ZoneInfo(name)
    raise CronError(f"time zone: there is no zone {name[:100]!r}; {_suggestion(name)}")


def _suggestion(name: str) -> str:
    by_lower = {known.lower(): known for known in zone_names()}
    close = get_close_matches(name.strip().lower()[:100], by_lower, n=3, cutoff=0.7)
    if close:
        return f"did you mean {' or '.join(by_lower[one] for one in close)}?"
    return "it takes a name of the IANA list, such as Europe/Berlin or UTC."


def first_reading(zone: ZoneInfo, wall: datetime) -> datetime:
    """The first instant (UTC) at which the clocks of `zone` read `wall` (naive) or have jumped over it."""
    reading = wall.replace(tzinfo=zone).astimezone(UTC)
    if reading.astimezone(zone).replace(tzinfo=None) == wall:
        return reading
    return change(zone, wall.replace(tzinfo=zone, fold=1).astimezone(UTC), reading)


def change(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """The first whole minute (of the clocks) with another offset than `low`'s; by `high` there is another."""
    offset = low.astimezone(zone).utcoffset()
    same, other = 0, int((high - low).total_seconds())
    while other - same > 1:
        middle = (same + other) // 2
        if (low + timedelta(seconds=middle)).astimezone(zone).utcoffset() == offset:
            same = middle
        else:
            other = middle
    turn = low + timedelta(seconds=other)
    return turn + timedelta(seconds=-turn.astimezone(zone).second % 60)
