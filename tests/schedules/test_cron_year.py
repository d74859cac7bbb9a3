"""A year of twenty expressions in thirteen zones: the rule, and what another implementation says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from schedules.cron import next_run
from tests.schedules.clocks import by_stretch

# Each in a year in which its clocks did something.
YEARS = {
    "Europe/Berlin": 2026,
    "America/New_York": 2026,
    "Australia/Lord_Howe": 2026,  # by half an hour
    "Africa/Cairo": 2026,  # at midnight
    "America/Havana": 2026,  # midnight comes twice
    "Pacific/Apia": 2011,  # no 30 December
    "America/Sao_Paulo": 2018,  # the last time before DST was dropped
    "Asia/Kathmandu": 2026,  # +05:45, never changed
    "Antarctica/Troll": 2026,  # by two hours
    "Africa/Casablanca": 2026,  # back for Ramadan
    "Asia/Tehran": 2022,  # at midnight, for the last time
    "Europe/Moscow": 2011,  # forward, and there it stayed
    "Pacific/Kwajalein": 1993,  # no 21 August
}
EXPRESSIONS = [
    "30 2 * * *",
    "0 0 * * *",
    "15 0 * * *",
    "5 23 * * *",
    "0,30 2 * * *",
    "0 1-5 * mar,apr,oct,nov *",
    "*/15 2 * * *",
    "0 2,14 * * mon-fri",
    "30 1 * * sun",
    "0 3 1,15 * *",
    "0 4 29 2 *",
    "0 2 31 * *",
    "10 2 13 * fri",
    "0 */6 * * *",
    "30 */4 * * *",
    "0 * * * sun",
    "15 * 30 12 *",
    "59 23 31 12 *",
    "0 8/4 * * *",
    "20 2 * mar,oct *",
]
STAR_IN_THE_MINUTE = (
    "cronsim, like Debian's cron, lets a star in the minute field suspend its DST rule: what the gap holds "
    "is lost, what comes twice runs twice. Our rule looks at the hour field alone."
)
HALF_HOUR = (
    "cronsim steps through the hours in real hours from a full one; after a change by half an hour it "
    "arrives at half past and misses the one wanted."
)
# Expression and zone: slots that only we have, slots that only cronsim has (as the clocks read), and why.
DIFFERENCES: dict[tuple[str, str], tuple[list[str], list[str], str]] = {
    ("*/15 2 * * *", "Europe/Berlin"): (
        ["2026-03-29 03:00+0200"],
        [f"2026-10-25 02:{minute}+0100" for minute in ("00", "15", "30", "45")],
        STAR_IN_THE_MINUTE,
    ),
    ("*/15 2 * * *", "America/New_York"): (["2026-03-08 03:00-0400"], [], STAR_IN_THE_MINUTE),
    ("*/15 2 * * *", "Antarctica/Troll"): (
        ["2026-03-29 03:00+0200"],
        [f"2026-10-25 02:{minute}+0000" for minute in ("00", "15", "30", "45")],
        STAR_IN_THE_MINUTE,
    ),
    ("*/15 2 * * *", "Africa/Casablanca"): (
        ["2026-03-22 03:00+0100"],
        [f"2026-02-15 02:{minute}+0000" for minute in ("00", "15", "30", "45")],
        STAR_IN_THE_MINUTE,
    ),
    ("*/15 2 * * *", "Pacific/Apia"): (["2011-12-31 00:00+1400"], [], STAR_IN_THE_MINUTE),
    ("*/15 2 * * *", "Pacific/Kwajalein"): (["1993-08-22 00:00+1200"], [], STAR_IN_THE_MINUTE),
    ("*/15 2 * * *", "Europe/Moscow"): (["2011-03-27 03:00+0400"], [], STAR_IN_THE_MINUTE),
    ("*/15 2 * * *", "Australia/Lord_Howe"): (
        ["2026-04-05 02:00+1030", "2026-04-05 02:15+1030"],
        [],
        HALF_HOUR,
    ),
    ("0 */6 * * *", "Australia/Lord_Howe"): (
        ["2026-04-05 06:00+1030", "2026-10-04 06:00+1100"],
        [],
        HALF_HOUR,
    ),
}


def walk(step: Callable[[datetime], datetime], start: datetime, end: datetime) -> list[datetime]:
    slots, moment = [], step(start)
    while moment < end:
        slots.append(moment)
        moment = step(moment)
    return slots


@pytest.mark.parametrize("zone", YEARS)
def test_a_year_of_each_expression(zone: str) -> None:
    start = datetime(YEARS[zone], 1, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    end = datetime(YEARS[zone] + 1, 1, 1, tzinfo=UTC)
    for expression in EXPRESSIONS:
        ours = walk(lambda after: next_run(expression, zone, after), start, end)  # noqa: B023
        assert ours == by_stretch(expression, zone, start, end), expression
        differs = _differences(zone, ours, _cronsim(expression, zone, start, end))
        only_ours, only_theirs, _ = DIFFERENCES.get((expression, zone), ([], [], ""))
        assert differs == (only_ours, only_theirs), expression


def _cronsim(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    slots = (slot.astimezone(UTC) for slot in CronSim(expression, start.astimezone(ZoneInfo(zone))))
    return list(takewhile(lambda slot: slot < end, slots))


def _differences(zone: str, ours: list[datetime], theirs: list[datetime]) -> tuple[list[str], list[str]]:
    def read(slots: set[datetime]) -> list[str]:
        return [f"{slot.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M%z}" for slot in sorted(slots)]

    return read(set(ours) - set(theirs)), read(set(theirs) - set(ours))
