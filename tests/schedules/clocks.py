"""The rule of schedules.cron once more, written otherwise: what the tests compare it with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NAMES = {"sun": 0, "mon": 1, "fri": 5, "mar": 3, "apr": 4, "oct": 10, "nov": 11}


def values(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        start = low if first == "*" else _number(first)
        end = _number(last) if last else high if first == "*" or step else start
        found.update(range(start, end + 1, int(step or 1)))
    return found


def _number(text: str) -> int:
    return NAMES[text] if text in NAMES else int(text)


class Wanted:
    """Which times of the wall clock (naive) an expression names."""

    def __init__(self, expression: str) -> None:
        minute, hour, day, month, weekday = expression.split()
        self.minutes, self.hours = values(minute, 0, 59), values(hour, 0, 23)
        self.days, self.months = values(day, 1, 31), values(month, 1, 12)
        self.weekdays = {value % 7 for value in values(weekday, 0, 6)}
        self.elapsed = hour.startswith("*")
        self.either = not {day, weekday} & {"*", "*/1"}

    def on(self, day: date) -> bool:
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        matches = by_day or by_weekday if self.either else by_day and by_weekday
        return matches and day.month in self.months

    def at(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.on(wall.date())

    def times(self, first: datetime, last: datetime) -> Iterator[datetime]:
        for n in range((last.date() - first.date()).days + 1):
            day = first.date() + n * DAY
            if self.on(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        yield datetime(day.year, day.month, day.day, hour, minute)


@lru_cache(maxsize=64)
def readings(zone: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Every real minute from start to end (UTC), and what the clocks of the zone read then (naive)."""
    moments = (start + n * MINUTE for n in range(int((end - start) / MINUTE)))
    return [(moment, moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)) for moment in moments]


def by_minute(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """The slots of the rule: minute by minute, what the clocks read, or read for the first time."""
    wanted, slots = Wanted(expression), []
    minutes = readings(zone, start - 2 * DAY, end)
    furthest = minutes[0][1]
    for moment, wall in minutes:
        new = [furthest + (n + 1) * MINUTE for n in range(max(0, int((wall - furthest) / MINUTE)))]
        if wanted.at(wall) if wanted.elapsed else any(map(wanted.at, new)):
            slots.append(moment)
        furthest = max(furthest, wall)
    return [slot for slot in slots if slot > start]


@dataclass(frozen=True)
class Stretch:
    """A time in which the offset of a zone stays."""

    start: datetime
    end: datetime
    offset: timedelta


@lru_cache(maxsize=64)
def stretches(zone: str, start: datetime, end: datetime) -> list[Stretch]:
    found, since = [], start
    for n in range(int((end - start) / HOUR)):
        hour = start + n * HOUR
        if _offset(zone, hour) != _offset(zone, hour + HOUR):
            turn = next(
                hour + m * MINUTE
                for m in range(61)
                if _offset(zone, hour + m * MINUTE) != _offset(zone, hour)
            )
            found.append(Stretch(since, turn, _offset(zone, hour)))
            since = turn
    return [*found, Stretch(since, end, _offset(zone, end))]


def _offset(zone: str, moment: datetime) -> timedelta:
    offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return offset


def by_stretch(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """The same for a year: the times named, put into the stretches between the changes of the clocks."""
    wanted = Wanted(expression)
    found: set[datetime] = set()
    parts = stretches(zone, start - 2 * DAY, end)
    walls = list(wanted.times(start.replace(tzinfo=None) - 2 * DAY, end.replace(tzinfo=None) + 2 * DAY))
    for wall in walls:
        reads = [(part, wall.replace(tzinfo=UTC) - part.offset) for part in parts]
        if wanted.elapsed:
            found.update(moment for part, moment in reads if part.start <= moment < part.end)
        else:
            found.update([max(part.start, moment) for part, moment in reads if moment < part.end][:1])
    return sorted(slot for slot in found if start < slot < end)
