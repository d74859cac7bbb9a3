"""The days on which clocks change: a table from many zones, and random expressions against the rule."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedules import cron
from schedules.cron import CronError, next_run, previous_run
from tests.schedules.clocks import DAY, MINUTE, by_minute


def between(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    slots, moment = [], next_run(expression, zone, start)
    while moment < end:
        slots.append(moment)
        moment = next_run(expression, zone, moment)
    return slots


def each(hours: range, minutes: str, offset: str) -> list[str]:
    return [f"{hour:02}:{minute}{offset}" for hour in hours for minute in minutes.split(",")]


CASES = [
    # Forward, 02:00 to 03:00: the first minute after the gap, once.
    ("Europe/Berlin", "2026-03-29", "30 2 * * *", ["03:00+0200"]),
    ("Europe/Berlin", "2026-03-29", "0,30 2 * * *", ["03:00+0200"]),
    ("Europe/Berlin", "2026-03-29", "0,30 2,3 * * *", ["03:00+0200", "03:30+0200"]),
    ("Europe/Berlin", "2026-03-29", "* 2 * * *", ["03:00+0200"]),
    ("Europe/Berlin", "2026-03-29", "0 1-4 * * *", ["01:00+0100", "03:00+0200", "04:00+0200"]),
    ("Europe/Berlin", "2026-03-29", "30 2 * * mon", []),
    ("Europe/Berlin", "2026-03-29", "30 */2 * 3 *", ["00:30+0100", *each(range(4, 24, 2), "30", "+0200")]),
    (
        "Europe/Berlin",
        "2026-03-29",
        "15 * 29 * *",
        ["00:15+0100", "01:15+0100", *each(range(3, 24), "15", "+0200")],
    ),
    # Back, 03:00 to 02:00: the first time only; by the hour both.
    ("Europe/Berlin", "2026-10-25", "30 2 * * *", ["02:30+0200"]),
    ("Europe/Berlin", "2026-10-25", "0,30 2 * * *", ["02:00+0200", "02:30+0200"]),
    ("Europe/Berlin", "2026-10-25", "0 2-3 * * *", ["02:00+0200", "03:00+0100"]),
    ("Europe/Berlin", "2026-10-25", "30 2/1 * * *", ["02:30+0200", *each(range(3, 24), "30", "+0100")]),
    (
        "Europe/Berlin",
        "2026-10-25",
        "30 */2 * * *",
        ["00:30+0200", "02:30+0200", "02:30+0100", *each(range(4, 24, 2), "30", "+0100")],
    ),
    (
        "Europe/Berlin",
        "2026-10-25",
        "59 * 25 10 *",
        [*each(range(3), "59", "+0200"), *each(range(2, 24), "59", "+0100")],
    ),
    ("Europe/Berlin", "2026-10-25", "30 */12,2 * * *", ["00:30+0200", "02:30+0200", "12:30+0100"]),
    ("America/New_York", "2026-03-08", "0,15 2 * * sun", ["03:00-0400"]),
    ("America/New_York", "2026-11-01", "0 1 1 * *", ["01:00-0400"]),
    # By half an hour: 02:00 to 02:30, 02:00 to 01:30.
    ("Australia/Lord_Howe", "2026-10-04", "15 2 * * *", ["02:30+1100"]),
    ("Australia/Lord_Howe", "2026-10-04", "15,30,45 2 * * *", ["02:30+1100", "02:45+1100"]),
    ("Australia/Lord_Howe", "2026-04-05", "45 1 * * *", ["01:45+1100"]),
    ("Australia/Lord_Howe", "2026-04-05", "45 */23 * * *", ["00:45+1100", "23:45+1030"]),
    (
        "Australia/Lord_Howe",
        "2026-04-05",
        "0,45 */1 5 4 *",
        [*each(range(2), "00,45", "+1100"), "01:45+1030", *each(range(2, 24), "00,45", "+1030")],
    ),
    # At midnight: 00:00 to 01:00, and a 00:00-01:00 or 23:00-24:00 that comes twice.
    ("Africa/Cairo", "2026-04-24", "0 0 * * *", ["01:00+0300"]),
    ("Africa/Cairo", "2026-04-24", "@daily", ["01:00+0300"]),
    ("Africa/Cairo", "2026-10-29", "30 23 * * *", ["23:30+0300"]),
    ("Africa/Cairo", "2026-10-29", "30 */23 * * *", ["00:30+0300", "23:30+0300", "23:30+0200"]),
    ("Asia/Beirut", "2026-03-29", "0,59 0 * * *", ["01:00+0300"]),
    ("Asia/Beirut", "2026-10-24", "0 23 24 * *", ["23:00+0300"]),
    ("America/Havana", "2026-03-08", "0 0 8 3 *", ["01:00-0400"]),
    ("America/Havana", "2026-11-01", "0 0 * * *", ["00:00-0400"]),
    ("America/Havana", "2026-11-01", "15 */12 * * *", ["00:15-0400", "00:15-0500", "12:15-0500"]),
    ("America/Sao_Paulo", "2018-11-04", "30 0 * * *", ["01:00-0200"]),
    ("America/Sao_Paulo", "2018-02-17", "45 23 * * *", ["23:45-0200"]),
    ("America/Sao_Paulo", "2018-02-17", "45 */23 17 2 *", ["00:45-0200", "23:45-0200", "23:45-0300"]),
    # DST dropped: no change any more.
    ("America/Sao_Paulo", "2026-11-01", "30 0 * * *", ["00:30-0300"]),
    ("Asia/Tehran", "2022-03-22", "0 0 * * *", ["01:00+0430"]),
    ("Asia/Tehran", "2023-03-22", "0 0 * * *", ["00:00+0330"]),
    ("Europe/Moscow", "2011-03-27", "30 2 * * *", ["03:00+0400"]),
    ("Europe/Moscow", "2014-10-26", "30 1 * * *", ["01:30+0400"]),
    ("Europe/Moscow", "2026-03-29", "30 2 * * *", ["02:30+0300"]),
    # Days left out: 30 December 2011, 21 August 1993.
    ("Pacific/Apia", "2011-12-29", "30 2 * * *", ["02:30-1000"]),
    ("Pacific/Apia", "2011-12-31", "30 2 * * *", ["00:00+1400", "02:30+1400"]),
    ("Pacific/Apia", "2011-12-31", "0 0 * * *", ["00:00+1400"]),
    ("Pacific/Apia", "2011-12-31", "0 12 30 12 *", ["00:00+1400"]),
    ("Pacific/Apia", "2011-12-31", "0 */12 * * *", ["00:00+1400", "12:00+1400"]),
    ("Pacific/Kwajalein", "1993-08-22", "15 5 21 8 *", ["00:00+1200"]),
    ("Pacific/Kwajalein", "1993-08-22", "15 */5 21 8 *", []),
    # +05:45, since a gap of a quarter of an hour in 1986.
    ("Asia/Kathmandu", "2026-05-01", "30 2 * * *", ["02:30+0545"]),
    ("Asia/Kathmandu", "1986-01-01", "0,10 0 * * *", ["00:15+0545"]),
    # From -00:44:30 to UTC, so that the gap ends within a minute.
    ("Africa/Monrovia", "1972-01-07", "10 0 * * *", ["00:45+0000"]),
    # By two hours: 01:00 to 03:00 and back.
    ("Antarctica/Troll", "2026-03-29", "15 1,2 * * *", ["03:00+0200"]),
    ("Antarctica/Troll", "2026-10-25", "15 1,2 * * *", ["01:15+0200", "02:15+0200"]),
    (
        "Antarctica/Troll",
        "2026-10-25",
        "15 */2 25 * *",
        ["00:15+0200", "02:15+0200", "02:15+0000", *each(range(4, 24, 2), "15", "+0000")],
    ),
    # Back for Ramadan, forward after it.
    ("Africa/Casablanca", "2026-02-15", "30 2 * * *", ["02:30+0100"]),
    ("Africa/Casablanca", "2026-03-22", "30 2 * * *", ["03:00+0100"]),
]


@pytest.mark.parametrize(("zone", "day", "expression", "expected"), CASES)
def test_a_day_of_change(zone: str, day: str, expression: str, expected: list[str]) -> None:
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    slots = between(expression, zone, start - 2 * DAY, start + 3 * DAY)
    local = [slot.astimezone(ZoneInfo(zone)) for slot in slots]
    assert [f"{slot:%H:%M%z}" for slot in local if f"{slot:%Y-%m-%d}" == day] == expected


def made_up_zone(changes: list[tuple[datetime, int]]) -> ZoneInfo:
    """A zone at UTC until its first change; each is an instant and the hours from UTC that hold then."""
    offsets = sorted({0, *(hours for _, hours in changes)}, key=abs)
    header = struct.pack(">4s16x6l", b"TZif", 0, 0, 0, len(changes), len(offsets), 4)
    times = b"".join(struct.pack(">l", int(moment.timestamp())) for moment, _ in changes)
    kinds = bytes(offsets.index(hours) for _, hours in changes)
    types = b"".join(struct.pack(">lbb", hours * 3600, 0, 0) for hours in offsets)
    return ZoneInfo.from_file(io.BytesIO(header + times + kinds + types + b"ODD\0"), key="Odd")


def test_clocks_that_jump_back_and_on_again_stop_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """03:00 is 01:00 again, and at 02:00 it is 04:00: the next 02:30 is tomorrow's."""
    turn = datetime(2026, 6, 1, 3, tzinfo=UTC)
    zone = made_up_zone([(turn, -2), (turn + timedelta(hours=1), 0)])
    monkeypatch.setattr(cron, "zone_of", {"Odd": zone}.get)
    assert next_run("30 */2 * * *", "Odd", turn - 40 * MINUTE) == turn - 30 * MINUTE
    assert next_run("30 */2 * * *", "Odd", turn + 10 * MINUTE) == turn + 90 * MINUTE
    assert next_run("30 2 * * *", "Odd", turn + 10 * MINUTE) == turn - 30 * MINUTE + DAY


# Around a change each, as instants.
CHANGES = [
    ("Europe/Berlin", "2026-03-29T01:00"),
    ("Europe/Berlin", "2026-10-25T01:00"),
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Africa/Cairo", "2026-04-23T22:00"),
    ("Africa/Cairo", "2026-10-29T21:00"),
    ("America/Havana", "2026-03-08T05:00"),
    ("America/Havana", "2026-11-01T05:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("Pacific/Kwajalein", "1993-08-21T12:00"),
    ("Pacific/Kwajalein", "1969-09-30T12:00"),  # 30 September came twice
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Antarctica/Troll", "2026-10-25T01:00"),
    ("Africa/Casablanca", "2026-02-15T02:00"),
    ("Asia/Kathmandu", "1985-12-31T18:30"),
    ("Asia/Tehran", "2022-09-21T19:30"),
]


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    spans = st.tuples(number, number).map(sorted).map(lambda ends: f"{ends[0]}-{ends[1]}")
    steps = st.integers(1, high)
    part = number.map(str) | spans | st.builds(lambda span, step: f"{span}/{step}", spans, steps)
    return (
        st.just("*")
        | steps.map(lambda step: f"*/{step}")
        | st.lists(part, min_size=1, max_size=3).map(",".join)
    )


EXPRESSIONS = st.tuples(
    field(0, 59),
    field(0, 23) | st.sampled_from(["0", "1", "2", "23", "0,1", "1-3"]),
    st.just("*") | field(1, 31),
    st.just("*"),
    st.just("*") | st.just("*") | field(0, 6),
).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    expression=EXPRESSIONS,
    change=st.sampled_from(CHANGES),
    minutes=st.lists(st.integers(-1400, 1400), min_size=2, max_size=2).map(sorted),
    seconds=st.integers(0, 59),
)
def test_any_expression_around_any_change(
    expression: str, change: tuple[str, str], minutes: list[int], seconds: int
) -> None:
    """Always later, each slot of the rule and none besides, from wherever one looks."""
    zone, turn = change[0], datetime.fromisoformat(change[1]).replace(tzinfo=UTC)
    start, end = turn - DAY, turn + DAY
    slots = between(expression, zone, start, end)
    assert slots == by_minute(expression, zone, start, end)
    earlier, later = (turn + minute * MINUTE + timedelta(seconds=seconds) for minute in minutes)
    assert next_run(expression, zone, earlier) == min(
        (slot for slot in slots if slot > earlier), default=next_run(expression, zone, end - MINUTE)
    )
    assert previous_run(expression, zone, later, earlier) == max(
        (slot for slot in slots if earlier <= slot <= later), default=None
    )


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet="0123456789*/-,LRHW#?@ \tmonja", max_size=24))
def test_whatever_is_typed_is_refused_or_comes_later(text: str) -> None:
    now = datetime(2026, 10, 25, tzinfo=UTC)
    with suppress(CronError):
        assert next_run(text, "Europe/Berlin", now) > now
