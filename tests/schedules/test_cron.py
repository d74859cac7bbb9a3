"""When a schedule fires: fields, refusals, zones. The days on which clocks change are in test_cron_clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from schedules import cron
from schedules.cron import CronError, check, next_run, previous_run, upcoming, warnings

BERLIN = "Europe/Berlin"
# A Saturday, 12:20 in Berlin.
NOON = datetime(2026, 8, 1, 10, 20, tzinfo=UTC)


def runs(expression: str, count: int = 3) -> list[str]:
    slots = upcoming(expression, BERLIN, NOON, count)
    return [f"{slot.astimezone(ZoneInfo(BERLIN)):%a %Y-%m-%d %H:%M}" for slot in slots]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 2 * * *", ["Sun 2026-08-02 02:30", "Mon 2026-08-03 02:30", "Tue 2026-08-04 02:30"]),
        ("* * * * *", ["Sat 2026-08-01 12:21", "Sat 2026-08-01 12:22", "Sat 2026-08-01 12:23"]),
        ("*/25 * * * *", ["Sat 2026-08-01 12:25", "Sat 2026-08-01 12:50", "Sat 2026-08-01 13:00"]),
        ("5/20 * * * *", ["Sat 2026-08-01 12:25", "Sat 2026-08-01 12:45", "Sat 2026-08-01 13:05"]),
        ("0 9-17/4 * * *", ["Sat 2026-08-01 13:00", "Sat 2026-08-01 17:00", "Sun 2026-08-02 09:00"]),
        ("0 2,14 * * *", ["Sat 2026-08-01 14:00", "Sun 2026-08-02 02:00", "Sun 2026-08-02 14:00"]),
        ("0 0 * * mon", ["Mon 2026-08-03 00:00", "Mon 2026-08-10 00:00", "Mon 2026-08-17 00:00"]),
        ("0 0 * * MON,Wed", ["Mon 2026-08-03 00:00", "Wed 2026-08-05 00:00", "Mon 2026-08-10 00:00"]),
        ("0 0 * * 0", ["Sun 2026-08-02 00:00", "Sun 2026-08-09 00:00", "Sun 2026-08-16 00:00"]),
        ("0 0 * * 7", ["Sun 2026-08-02 00:00", "Sun 2026-08-09 00:00", "Sun 2026-08-16 00:00"]),
        ("0 0 * * fri-sun", ["Sun 2026-08-02 00:00", "Fri 2026-08-07 00:00", "Sat 2026-08-08 00:00"]),
        ("0 0 * * 6-7", ["Sun 2026-08-02 00:00", "Sat 2026-08-08 00:00", "Sun 2026-08-09 00:00"]),
        ("0 0 * * 1/2", ["Mon 2026-08-03 00:00", "Wed 2026-08-05 00:00", "Fri 2026-08-07 00:00"]),
        ("0 0 * * 7/2", ["Sun 2026-08-02 00:00", "Sun 2026-08-09 00:00", "Sun 2026-08-16 00:00"]),
        ("0 0 1 jan,JUL *", ["Fri 2027-01-01 00:00", "Thu 2027-07-01 00:00", "Sat 2028-01-01 00:00"]),
        ("0 0 1 nov-dec *", ["Sun 2026-11-01 00:00", "Tue 2026-12-01 00:00", "Mon 2027-11-01 00:00"]),
        ("0 0 31 * *", ["Mon 2026-08-31 00:00", "Sat 2026-10-31 00:00", "Thu 2026-12-31 00:00"]),
        ("0 0 29 2 *", ["Tue 2028-02-29 00:00", "Sun 2032-02-29 00:00", "Fri 2036-02-29 00:00"]),
        ("5-5 3-3 * * *", ["Sun 2026-08-02 03:05", "Mon 2026-08-03 03:05", "Tue 2026-08-04 03:05"]),
        ("  0\t4  * *   * ", ["Sun 2026-08-02 04:00", "Mon 2026-08-03 04:00", "Tue 2026-08-04 04:00"]),
        ("@hourly", ["Sat 2026-08-01 13:00", "Sat 2026-08-01 14:00", "Sat 2026-08-01 15:00"]),
        ("@daily", ["Sun 2026-08-02 00:00", "Mon 2026-08-03 00:00", "Tue 2026-08-04 00:00"]),
        ("@Midnight", ["Sun 2026-08-02 00:00", "Mon 2026-08-03 00:00", "Tue 2026-08-04 00:00"]),
        ("@weekly", ["Sun 2026-08-02 00:00", "Sun 2026-08-09 00:00", "Sun 2026-08-16 00:00"]),
        ("@monthly", ["Tue 2026-09-01 00:00", "Thu 2026-10-01 00:00", "Sun 2026-11-01 00:00"]),
        ("@yearly", ["Fri 2027-01-01 00:00", "Sat 2028-01-01 00:00", "Mon 2029-01-01 00:00"]),
        ("@annually", ["Fri 2027-01-01 00:00", "Sat 2028-01-01 00:00", "Mon 2029-01-01 00:00"]),
        # Both days set: either will do, also where one side names all, or a date that never comes.
        ("0 0 13 * fri", ["Fri 2026-08-07 00:00", "Thu 2026-08-13 00:00", "Fri 2026-08-14 00:00"]),
        ("0 0 */15 * fri", ["Fri 2026-08-07 00:00", "Fri 2026-08-14 00:00", "Sun 2026-08-16 00:00"]),
        ("0 0 1-31 * fri", ["Sun 2026-08-02 00:00", "Mon 2026-08-03 00:00", "Tue 2026-08-04 00:00"]),
        ("0 0 1 * 0-6", ["Sun 2026-08-02 00:00", "Mon 2026-08-03 00:00", "Tue 2026-08-04 00:00"]),
        ("0 0 31 9 mon", ["Mon 2026-09-07 00:00", "Mon 2026-09-14 00:00", "Mon 2026-09-21 00:00"]),
        ("0 0 */1 * fri", ["Fri 2026-08-07 00:00", "Fri 2026-08-14 00:00", "Fri 2026-08-21 00:00"]),
    ],
)
def test_the_fields(expression: str, expected: list[str]) -> None:
    assert runs(expression) == expected


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "0 fields, five fields are wanted"),
        ("0 2 * *", "4 fields, five fields are wanted"),
        ("0 0 2 * * *", "6 fields, five fields are wanted.*seconds and years are not supported"),
        ("0 0 2 * * * 2027", "7 fields, five fields are wanted.*seconds and years are not supported"),
        ("60 * * * *", "minute: 60 is out of range; it takes 0-59"),
        ("0 24 * * *", "hour: 24 is out of range; it takes 0-23"),
        ("0 0 0 * *", "day of month: 0 is out of range; it takes 1-31"),
        ("0 0 32 * *", "day of month: 32 is out of range; it takes 1-31"),
        ("0 0 1 13 *", "month: 13 is out of range; it takes 1-12 or jan-dec"),
        ("0 0 * * 8", "day of week: 8 is out of range; it takes 0-7 or sun-sat"),
        ("0 0 * * 99999999999999999999", "day of week: 99999999999999999999 is out of range"),
        ("0 0 1 foo *", "month: 'foo' is not understood"),
        ("0 0 * * jan", "day of week: 'jan' is not understood"),
        ("mon 0 * * *", "minute: 'mon' is not understood"),
        ("-5 * * * *", "minute: '-5' is not understood"),
        ("1- * * * *", "minute: '1-' is not understood"),
        ("*-5 * * * *", "minute: '.-5' is not understood"),
        ("1.5 * * * *", "minute: '1.5' is not understood"),
        ("\u00b2 * * * *", "minute: '\u00b2' is not understood"),
        ("\u0663 * * * *", "minute: '\u0663' is not understood"),
        ("0 1,,2 * * *", "hour: '1,,2' has a comma too many"),
        ("0 1, * * *", "hour: '1,' has a comma too many"),
        ("*/0 * * * *", "minute: a step of 0 is out of range; it takes 1-60"),
        ("*/90 * * * *", "minute: a step of 90 is out of range; it takes 1-60"),
        ("0 22-2 * * *", "hour: the range '22-2' runs backwards; write 22-23,0-2 instead"),
        ("0 0 * * sat-mon", "day of week: the range 'sat-mon' runs backwards; write sat-7,0-mon instead"),
        # What croniter takes beyond cron.
        ("0 0 L * *", "day of month: 'L' is not understood"),
        ("0 0 15W * *", "day of month: '15W' is not understood"),
        ("0 0 * * L5", "day of week: 'L5' is not understood"),
        ("0 0 * * fri#2", "day of week: 'fri#2' is not understood"),
        ("R * * * *", "minute: 'R' is not understood"),
        ("H H * * *", "minute: 'H' is not understood"),
        ("0 R(1-3) * * *", "hour: 'R.1-3.' is not understood"),
        ("0 0 ? * *", "day of month: '.' is not understood"),
        ("@reboot", "'@reboot' is not one of the words .*@hourly, @daily"),
        ("@every 1h", "'@every 1h' is not one of the words"),
        # What never comes.
        ("0 0 31 2 *", "day of month: this date never comes"),
        ("0 0 30 feb *", "day of month: this date never comes"),
        ("0 0 30-31 2 *", "day of month: this date never comes"),
        ("0 0 31 4,6,9,11 *", "day of month: this date never comes"),
        (",".join(["1"] * 200) + " * * * *", "longer than 200 characters"),
    ],
)
def test_what_is_refused_says_the_field_and_what_is_wrong(expression: str, says: str) -> None:
    with pytest.raises(CronError, match=says):
        check(expression, "UTC")
    with pytest.raises(CronError, match=says):
        next_run(expression, "UTC", NOON)


@pytest.mark.parametrize("zone", ["UTC", BERLIN, "America/Argentina/Ushuaia", "Etc/GMT+3", "Pacific/Chatham"])
def test_zones_by_their_names(zone: str) -> None:
    check("@daily", zone)


@pytest.mark.parametrize(
    ("zone", "says"),
    [
        ("", "IANA list, such as Europe/Berlin"),
        ("europe/berlin", "did you mean Europe/Berlin"),
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("CEST", "time zone: there is no zone 'CEST'"),
        ("localtime", "no zone 'localtime'"),
        ("right/UTC", "no zone 'right/UTC'"),
        ("/usr/share/zoneinfo/UTC", "no zone '/usr/share/zoneinfo/UTC'"),
        ("../zoneinfo/UTC", "no zone '../zoneinfo/UTC'"),
        ("Europe/../UTC", "no zone"),
        ("UTC\0", "no zone"),
    ],
)
def test_an_unknown_zone_is_a_clear_error(zone: str, says: str) -> None:
    with pytest.raises(CronError, match=says):
        check("@daily", zone)


def test_strictly_after_and_in_utc() -> None:
    slot = next_run("30 2 * * *", BERLIN, NOON)
    assert slot == datetime(2026, 8, 2, 0, 30, tzinfo=UTC)
    assert slot.tzinfo is UTC
    assert next_run("30 2 * * *", BERLIN, slot - timedelta(microseconds=1)) == slot
    assert next_run("30 2 * * *", BERLIN, slot) == slot + timedelta(days=1)
    assert next_run("30 2 * * *", BERLIN, slot + timedelta(microseconds=1)) == slot + timedelta(days=1)


def test_after_may_be_given_in_any_zone() -> None:
    there = NOON.astimezone(ZoneInfo("Asia/Kathmandu"))
    assert next_run("*/5 * * * *", BERLIN, there) == NOON + timedelta(minutes=5)


def test_a_time_without_zone_is_no_instant() -> None:
    with pytest.raises(ValueError, match="zone"):
        next_run("@daily", BERLIN, datetime(2026, 8, 1))


def test_a_leap_day_is_found_over_a_century_without_one() -> None:
    assert next_run("0 0 29 2 *", "UTC", datetime(2096, 3, 1, tzinfo=UTC)) == datetime(
        2104, 2, 29, tzinfo=UTC
    )


def test_both_days_set_is_warned_of() -> None:
    assert "either" in warnings("0 0 13 * fri")[0]
    assert warnings("0 0 13 * *") == warnings("0 0 * * fri") == warnings("@daily") == []


def test_the_previous_run() -> None:
    week = NOON - timedelta(days=7)
    assert previous_run("30 2 * * *", BERLIN, NOON, week) == datetime(2026, 8, 1, 0, 30, tzinfo=UTC)
    assert previous_run("0 0 * * mon", BERLIN, NOON, week) == datetime(2026, 7, 26, 22, 0, tzinfo=UTC)
    assert previous_run("0 0 1 1 *", BERLIN, NOON, week) is None


def test_the_previous_run_includes_both_ends() -> None:
    slot = datetime(2026, 8, 1, 0, 30, tzinfo=UTC)
    second, day = timedelta(seconds=1), timedelta(days=1)
    assert previous_run("30 2 * * *", BERLIN, slot, slot) == slot
    assert previous_run("30 2 * * *", BERLIN, slot - second, slot - day) == slot - day
    assert previous_run("30 2 * * *", BERLIN, slot - second, slot - day + second) is None
    assert previous_run("30 2 * * *", BERLIN, slot, slot + second) is None


def test_the_previous_run_walks_through_no_half_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    def counted(expression: str, zone: str, after: datetime) -> datetime:
        nonlocal steps
        steps += 1
        return next_run(expression, zone, after)

    monkeypatch.setattr(cron, "next_run", counted)
    assert previous_run("* * * * *", BERLIN, NOON, NOON - timedelta(days=365)) == NOON
    assert previous_run("59 23 31 12 *", BERLIN, NOON, NOON - timedelta(days=9000)) is not None
    assert steps < 60
    steps = 0
    assert previous_run("@daily", BERLIN, NOON, NOON - timedelta(days=1)) is not None
    assert steps == 2
