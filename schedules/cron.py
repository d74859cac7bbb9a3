"""When a schedule fires: cron expression and time zone to instants. The one place that knows cron.

Five fields, as cron reads them: minute, hour, day of month, month, day of week; each `*`, a number or a name
(mon, jan), a range, a step or a list of these. Sunday is 0 or 7. `@hourly`, `@daily`, `@midnight`, `@weekly`,
`@monthly`, `@yearly` and `@annually` stand for their five fields. With both a day of month and a day of week,
either will do (OR). `schedules.fields` says what is refused.

The clocks change, and the rule is:

- **Fixed hours** (the hour field names at least one hour: `2`, `1-5`, `2,14`, `8/4`): exactly once per local
  time it names. A time that does not exist that day fires at the first minute after the gap, and what falls
  on the same minute by that fires once (`0,30 2 * * *` where 02:00-03:00 is missing: once, at 03:00). A time
  that occurs twice fires the first time only. A day that a zone left out altogether (Apia, 2011-12-30) is
  one long gap.
- **`*` or `*/n` as the hour** follows elapsed time: every real minute at which the wall clock reads a time
  that matches. Where the clocks go back both occurrences fire, where they go forward the missing ones do not.

Slots are whole minutes of the wall clock, given in UTC.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import croniter

from schedules.errors import CronError
from schedules.fields import Fields, parse
from schedules.zones import change, first_reading, zone_of

__all__ = ["CronError", "check", "next_run", "previous_run", "upcoming", "warnings"]

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@lru_cache(maxsize=4096)
def _parsed(expression: str) -> Fields:
    return parse(expression)


def check(expression: str, timezone: str) -> None:
    """Raises CronError where either is not usable: bad fields, an unknown zone, a date that never comes."""
    _parsed(expression)
    zone_of(timezone)


def warnings(expression: str) -> list[str]:
    """What a user may not have meant, in words; none: empty. Raises CronError."""
    fields = _parsed(expression)
    if not (fields.day_set and fields.weekday_set):
        return []
    return [
        "Day of month and day of week are both set: it runs on days that match either of them, not both. "
        "Write * for the one that should not count."
    ]


def next_run(expression: str, timezone: str, after: datetime) -> datetime:
    """The first slot strictly after `after` (aware), in UTC. Raises CronError."""
    if after.tzinfo is None:
        raise ValueError("next_run needs a time with a zone")
    fields, zone = _parsed(expression), zone_of(timezone)
    step = _next_elapsed if fields.follows_elapsed_time else _next_fixed
    return step(fields, zone, after.astimezone(UTC))


def upcoming(expression: str, timezone: str, after: datetime, count: int) -> list[datetime]:
    """The next `count` slots after `after`, in UTC. Raises CronError."""
    slots: list[datetime] = []
    for _ in range(count):
        after = next_run(expression, timezone, after)
        slots.append(after)
    return slots


def _next_fixed(fields: Fields, zone: ZoneInfo, after: datetime) -> datetime:
    wall = after.astimezone(zone).replace(tzinfo=None)
    while True:
        wall = _wanted(fields, wall.replace(second=0, microsecond=0) + MINUTE)
        slot = first_reading(zone, wall)
        if slot > after:
            return slot


def _next_elapsed(fields: Fields, zone: ZoneInfo, after: datetime) -> datetime:
    local = after.astimezone(zone)
    moment = after - timedelta(seconds=local.second, microseconds=local.microsecond) + MINUTE
    while True:
        wall = moment.astimezone(zone).replace(tzinfo=None)
        wanted = _wanted(fields, wall)
        if wanted == wall:
            return moment
        moment = _when_it_reads(zone, wanted, moment)


def _when_it_reads(zone: ZoneInfo, wanted: datetime, moment: datetime) -> datetime:
    """An instant after `moment` before which the clocks of `zone` do not read `wanted`, a later time.

    Where they go back before that, it is the turn: earlier times come again there. Once they went back it is
    the next minute, and so on until they are beyond what they read before.
    """
    reading = first_reading(zone, wanted)
    again = moment.astimezone(zone).replace(fold=1).astimezone(UTC)
    if again > moment:
        reading = min(reading, change(zone, moment, again))
    return max(reading, moment + MINUTE)


def previous_run(expression: str, timezone: str, before: datetime, not_before: datetime) -> datetime | None:
    """The latest slot from `not_before` to `before` (both included), in UTC, or None. Raises CronError.

    Quick also for a year of every minute: the last slot is searched for in halves.
    """
    slot = next_run(expression, timezone, not_before - timedelta(microseconds=1))
    if slot > before:
        return None
    if next_run(expression, timezone, slot) > before:
        return slot
    none_after = before
    while none_after - slot >= MINUTE:
        middle = slot + (none_after - slot) / 2
        later = next_run(expression, timezone, middle)
        if later <= before:
            slot = later
        else:
            none_after = middle
    return slot


def _wanted(fields: Fields, wall: datetime) -> datetime:
    """The first time named from `wall` on (both naive), on clocks that never change."""
    today = wall.date()
    if _day(fields.days_spelled, today) == today:
        later = _time(fields, wall)
        if later is not None:
            return datetime.combine(today, later)
    first = time(fields.hours[0], fields.minutes[0])
    return datetime.combine(_day(fields.days_spelled, today + DAY), first)


@lru_cache(maxsize=8192)
def _day(days: str, first: date) -> date:
    """The first day from `first` on that day of month, month and day of week (`days`, spelled out) name."""
    eve = datetime.combine(first, time()) - MINUTE
    found: datetime = croniter(f"0 0 {days}", eve).get_next(datetime)
    return found.date()


def _time(fields: Fields, wall: datetime) -> time | None:
    """The first time named from `wall` to the end of its day."""
    at = bisect_left(fields.hours, wall.hour)
    if at < len(fields.hours) and fields.hours[at] == wall.hour:
        left = bisect_left(fields.minutes, wall.minute)
        if left < len(fields.minutes):
            return time(wall.hour, fields.minutes[left])
        at += 1
    return time(fields.hours[at], fields.minutes[0]) if at < len(fields.hours) else None
