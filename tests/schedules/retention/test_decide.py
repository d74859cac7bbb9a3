"""Retention as a function of values: cases by hand, then what holds for all of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedules.retention import Candidate, Policy, decide

BERLIN, NEW_YORK, LORD_HOWE = (
    ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
)
KATHMANDU, UTC_ZONE = ZoneInfo("Asia/Kathmandu"), ZoneInfo("UTC")
NOW = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def at(text: str, zone: ZoneInfo = UTC_ZONE, *, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold)


def history(*moments: datetime, size: int = 10, pinned: tuple[int, ...] = ()) -> list[Candidate]:
    """Candidates with the ids 1, 2, … in this order."""
    return [
        Candidate(UUID(int=number), moment, size, number in pinned)
        for number, moment in enumerate(moments, 1)
    ]


def kept(
    candidates: list[Candidate], policy: Policy, *, now: datetime = NOW, zone: ZoneInfo = UTC_ZONE
) -> list[int]:
    decision = decide(candidates, policy, now, zone)
    assert {*decision.keep, *decision.delete} == {each.id for each in candidates}
    assert not decision.keep.keys() & set(decision.delete)
    return sorted(found.int for found in decision.keep)


def daily(count: int, *, until: datetime = NOW) -> list[Candidate]:
    """One a day, the oldest first, the last at `until`."""
    return history(*(until - DAY * ago for ago in reversed(range(count))))


# Each rule ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy(), Policy(keep_hourly=0, keep_last=0, keep_bytes=0)])
def test_without_a_rule_everything_stays(policy: Policy) -> None:
    assert kept(daily(30), policy) == list(range(1, 31))
    assert not policy.is_set


def test_nothing_is_nothing() -> None:
    assert kept([], Policy(keep_last=1)) == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy(keep_last=3), [8, 9, 10]),
        (Policy(keep_last=100), list(range(1, 11))),
        (Policy(keep_days=3), [8, 9, 10]),
        (Policy(keep_daily=2), [9, 10]),
        (Policy(keep_weekly=2), [5, 10]),
        (Policy(keep_monthly=2), [10]),
        (Policy(keep_yearly=1), [10]),
        (Policy(keep_last=1, keep_weekly=2), [5, 10]),
        (Policy(keep_last=2, keep_weekly=2), [5, 9, 10]),
        (Policy(keep_bytes=35), [8, 9, 10]),
        (Policy(keep_last=5, keep_bytes=25), [9, 10]),
        (Policy(keep_bytes=1), [10]),
    ],
)
def test_rules_keep_what_they_say(policy: Policy, expected: list[int]) -> None:
    """Ten days up to Friday, 20 March: number 5 is the Sunday that ends the week before."""
    assert kept(daily(10), policy) == expected


def test_days_are_of_24_hours_and_the_border_belongs_to_the_older() -> None:
    candidates = history(NOW - 2 * DAY, NOW - 2 * DAY + timedelta(microseconds=1), NOW)
    assert kept(candidates, Policy(keep_days=2)) == [2, 3]


def test_a_period_without_a_backup_does_not_count() -> None:
    """As restic and borg count: a pause of half a year makes no daily backup too many."""
    old = [at("2025-09-01T10:00"), at("2025-09-02T10:00"), at("2025-09-03T10:00")]
    assert kept(history(*old, NOW), Policy(keep_daily=3)) == [2, 3, 4]
    assert kept(history(*old, NOW), Policy(keep_monthly=2)) == [3, 4]


def test_of_a_period_the_newest_stays() -> None:
    candidates = history(at("2026-03-19T01:00"), at("2026-03-19T23:00"), at("2026-03-20T01:00"))
    assert kept(candidates, Policy(keep_daily=5)) == [2, 3]


def test_weeks_are_iso_weeks_also_over_new_year() -> None:
    """2026 began on a Thursday: the Monday before belongs to its first week."""
    candidates = history(at("2025-12-28T10:00"), at("2025-12-29T10:00"), at("2026-01-02T10:00"))
    assert kept(candidates, Policy(keep_weekly=9)) == [1, 3]
    assert kept(candidates, Policy(keep_yearly=9)) == [2, 3]


def test_what_is_to_come_by_this_clock_is_young() -> None:
    assert kept(history(NOW - 9 * DAY, NOW + DAY), Policy(keep_days=1)) == [2]


def test_of_two_at_the_same_moment_one_is_the_newest() -> None:
    assert kept(history(NOW, NOW), Policy(keep_last=1)) == [2]


# Zones -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "moments", "policy", "expected"),
    [
        # 23:30 and 00:30 in Berlin are one day in UTC; and the other way round.
        (BERLIN, [at("2026-01-10T22:30"), at("2026-01-10T23:30")], Policy(keep_daily=9), [1, 2]),
        (UTC_ZONE, [at("2026-01-10T22:30"), at("2026-01-10T23:30")], Policy(keep_daily=9), [2]),
        (NEW_YORK, [at("2026-01-10T23:30"), at("2026-01-11T04:30")], Policy(keep_daily=9), [2]),
        (UTC_ZONE, [at("2026-01-10T23:30"), at("2026-01-11T04:30")], Policy(keep_daily=9), [1, 2]),
        # A day of 23 hours and one of 25 are a day each.
        (BERLIN, [at("2026-03-29T00:00", BERLIN), at("2026-03-29T23:59", BERLIN)], Policy(keep_daily=9), [2]),
        (BERLIN, [at("2026-10-25T00:00", BERLIN), at("2026-10-25T23:59", BERLIN)], Policy(keep_daily=9), [2]),
        (
            BERLIN,
            [at("2026-10-24T23:59", BERLIN), at("2026-10-25T00:00", BERLIN)],
            Policy(keep_daily=9),
            [1, 2],
        ),
        # The hour that comes twice is two hours, of which each has a newest.
        (
            BERLIN,
            [at("2026-10-25T02:30", BERLIN), at("2026-10-25T02:30", BERLIN, fold=1)],
            Policy(keep_hourly=9),
            [1, 2],
        ),
        (
            BERLIN,
            [at("2026-10-25T02:10", BERLIN), at("2026-10-25T02:50", BERLIN)],
            Policy(keep_hourly=9),
            [2],
        ),
        # 01:59 and 03:00 are a minute apart in spring, in two hours all the same.
        (
            BERLIN,
            [at("2026-03-29T01:59", BERLIN), at("2026-03-29T03:00", BERLIN)],
            Policy(keep_hourly=9),
            [1, 2],
        ),
        # Half an hour is put back: 01:45 comes twice.
        (
            LORD_HOWE,
            [at("2026-04-05T01:45", LORD_HOWE), at("2026-04-05T01:45", LORD_HOWE, fold=1)],
            Policy(keep_hourly=9),
            [1, 2],
        ),
        # Hours begin a quarter past those of UTC.
        (KATHMANDU, [at("2026-01-10T10:10"), at("2026-01-10T10:20")], Policy(keep_hourly=9), [1, 2]),
        (UTC_ZONE, [at("2026-01-10T10:10"), at("2026-01-10T10:20")], Policy(keep_hourly=9), [2]),
        # Sunday evening in New York is Monday in UTC, and 31 December is next year.
        (NEW_YORK, [at("2026-01-18T12:00"), at("2026-01-19T03:00")], Policy(keep_weekly=9), [2]),
        (NEW_YORK, [at("2025-12-31T12:00"), at("2026-01-01T03:00")], Policy(keep_yearly=9), [2]),
        (NEW_YORK, [at("2026-01-31T12:00"), at("2026-02-01T03:00")], Policy(keep_monthly=9), [2]),
    ],
)
def test_periods_are_those_of_the_schedules_zone(
    zone: ZoneInfo, moments: list[datetime], policy: Policy, expected: list[int]
) -> None:
    assert kept(history(*moments), policy, zone=zone) == expected


# Pins, caps, reasons -----------------------------------------------------------------------------


def test_pinned_ones_stay_and_count_in_the_cap() -> None:
    candidates = history(*(NOW - DAY * ago for ago in (4, 3, 2, 1, 0)), pinned=(1,))
    assert kept(candidates, Policy(keep_last=2)) == [1, 4, 5]
    assert kept(candidates, Policy(keep_last=3, keep_bytes=30)) == [1, 4, 5]
    assert kept(candidates, Policy(keep_bytes=1)) == [1, 5]


def test_the_cap_takes_the_oldest_until_it_fits_and_no_more() -> None:
    sizes = [50, 5, 40, 10]
    candidates = [replace(each, size=size) for each, size in zip(daily(4), sizes, strict=True)]
    assert kept(candidates, Policy(keep_bytes=60)) == [2, 3, 4]
    assert kept(candidates, Policy(keep_bytes=105)) == [1, 2, 3, 4]


def test_every_reason_is_told() -> None:
    policy = Policy(keep_last=2, keep_days=1, keep_daily=2, keep_weekly=1, keep_monthly=1, keep_yearly=1)
    candidates = history(NOW - DAY, NOW, pinned=(2,))
    decision = decide(candidates, policy, NOW, UTC_ZONE)
    assert decision.keep[UUID(int=2)] == [
        "the newest good one",
        "pinned",
        "1 of the last 2",
        "younger than 1 day",
        "newest of 2026-03-20 (1 of 2 days)",
        "newest of week 2026-W12 (1 of 1 weeks)",
        "newest of 2026-03 (1 of 1 months)",
        "newest of 2026 (1 of 1 years)",
    ]
    assert decision.keep[UUID(int=1)] == ["2 of the last 2", "newest of 2026-03-19 (2 of 2 days)"]


# Whatever the history ----------------------------------------------------------------------------

RULES = ("keep_last", "keep_days", "keep_hourly", "keep_daily", "keep_weekly", "keep_monthly", "keep_yearly")
numbers = st.none() | st.integers(0, 12)
rules = st.builds(Policy, **dict.fromkeys(RULES, numbers))
caps = st.none() | st.integers(1, 400)
zones = st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, KATHMANDU, UTC_ZONE])
# Bunched, so that periods are shared: minutes, hours, days and months apart; also in the future.
steps = st.sampled_from([0, 1, 59, 60, 61, 600, 1440, 1441, 10_080, 43_200, 525_600])


@st.composite
def histories(draw: st.DrawFn) -> list[Candidate]:
    moment, found = NOW + timedelta(minutes=draw(st.integers(-100_000, 3000))), []
    for number in range(draw(st.integers(0, 30))):
        moment -= timedelta(minutes=draw(steps), seconds=draw(st.integers(0, 59)))
        found.append(
            Candidate(
                UUID(int=draw(st.integers(0, 9)) << 64 | number),
                moment,
                draw(st.integers(0, 50)),
                draw(st.booleans()),
            )
        )
    return draw(st.permutations(found))


def ids(candidates: list[Candidate], policy: Policy, zone: ZoneInfo) -> set[UUID]:
    return set(decide(candidates, policy, NOW, zone).keep)


@settings(max_examples=300, deadline=None)
@given(histories(), rules, caps, zones)
def test_the_newest_and_the_pinned_survive_and_nothing_else_appears(
    candidates: list[Candidate], policy: Policy, cap: int | None, zone: ZoneInfo
) -> None:
    policy = replace(policy, keep_bytes=cap)
    decision = decide(candidates, policy, NOW, zone)
    assert sorted([*decision.keep, *decision.delete]) == sorted(each.id for each in candidates)
    assert all(decision.keep.values())
    if candidates:
        newest = max(candidates, key=lambda each: (each.moment, each.id))
        assert newest.id in decision.keep
    assert {each.id for each in candidates if each.pinned} <= decision.keep.keys()
    if not policy.is_set:
        assert decision.delete == []


@settings(max_examples=300, deadline=None)
@given(histories(), rules, st.sampled_from(RULES), st.integers(0, 12), zones)
def test_a_stricter_rule_never_keeps_more(
    candidates: list[Candidate], policy: Policy, name: str, number: int, zone: ZoneInfo
) -> None:
    """Smaller, or left out while another rule stays."""
    stricter = replace(policy, **{name: min(number, getattr(policy, name) or 0)})
    if stricter.is_set:
        assert ids(candidates, stricter, zone) <= ids(candidates, policy, zone)


@settings(max_examples=300, deadline=None)
@given(histories(), rules, caps, st.integers(1, 400), zones)
def test_a_smaller_cap_never_keeps_more(
    candidates: list[Candidate], policy: Policy, cap: int | None, smaller: int, zone: ZoneInfo
) -> None:
    smaller = min(smaller, cap or smaller)
    loose, strict = replace(policy, keep_bytes=cap), replace(policy, keep_bytes=smaller)
    decision = decide(candidates, strict, NOW, zone)
    assert set(decision.keep) <= ids(candidates, loose, zone)
    sizes = {each.id: each.size for each in candidates}
    removable = {each.id for each in candidates if not each.pinned} - set(list(decision.keep)[:1])
    if removable & decision.keep.keys():
        assert sum(sizes[each] for each in decision.keep) <= smaller


@settings(max_examples=200, deadline=None)
@given(histories(), rules, caps, zones)
def test_what_was_decided_once_is_decided_again(
    candidates: list[Candidate], policy: Policy, cap: int | None, zone: ZoneInfo
) -> None:
    """With the deleted ones gone the same policy deletes nothing more."""
    policy = replace(policy, keep_bytes=cap)
    stays = ids(candidates, policy, zone)
    assert ids([each for each in candidates if each.id in stays], policy, zone) == stays
