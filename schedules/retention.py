"""Which backups of one schedule in one storage stay, and why: a function of values, without a database.

Only good copies of completed backups are candidates, so failed runs never count as a backup kept. A period
(hour, day, ISO week, month, year in the schedule's zone) counts when it has a backup, as restic and borg
count: seven daily ones are the newest backups of the last seven days that have one, however long ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

NEWEST = "the newest good one"
PINNED = "pinned"


@dataclass(frozen=True)
class Policy:
    """How many; `keep_days`: for so many days of 24 hours; `keep_bytes`: at most. None, 0: no such rule."""

    keep_last: int | None = None
    keep_days: int | None = None
    keep_hourly: int | None = None
    keep_daily: int | None = None
    keep_weekly: int | None = None
    keep_monthly: int | None = None
    keep_yearly: int | None = None
    keep_bytes: int | None = None

    @property
    def is_set(self) -> bool:
        """With no rule at all everything stays."""
        return any(getattr(self, each.name) for each in fields(self))

    @property
    def selects(self) -> bool:
        """Whether a rule but the cap is set: the cap alone applies to everything."""
        return any(getattr(self, each.name) for each in fields(self) if each.name != "keep_bytes")

    @classmethod
    def of(cls, row: Any) -> Policy:
        """Of a row with the columns of `schedules.models.Keeping`."""
        return cls(**{each.name: getattr(row, each.name) or None for each in fields(cls)})


@dataclass(frozen=True)
class Candidate:
    """A good copy of a completed backup. `moment`: its slot, else when it started (aware); `size`: bytes."""

    id: UUID
    moment: datetime
    size: int
    pinned: bool = False


@dataclass(frozen=True)
class Decision:
    """`keep` says why, in words. Both run from the newest to the oldest."""

    keep: dict[UUID, list[str]] = field(default_factory=dict)
    delete: list[UUID] = field(default_factory=list)


def decide(
    candidates: Iterable[Candidate], policy: Policy, now: datetime, zone: ZoneInfo | tzinfo
) -> Decision:
    """What the policy keeps of these, and what it deletes.

    Kept is what any rule keeps, all that is pinned, and always the newest. The cap comes afterwards: the
    oldest go until the rest fits, but never what is pinned nor the newest. No rule at all keeps everything.

    A stricter policy never keeps more: a rule with a smaller number, or without one of several rules, keeps a
    part of what it kept before (with no cap); so does a smaller cap, with the same rules.
    """
    ordered = sorted(candidates, key=lambda each: (each.moment.astimezone(UTC), each.id), reverse=True)
    reasons = _reasons(ordered, policy, now, zone)
    if policy.keep_bytes:
        _cap(ordered, reasons, policy.keep_bytes)
    keep = {each.id: reasons[each.id] for each in ordered if reasons[each.id]}
    return Decision(keep, [each.id for each in ordered if each.id not in keep])


def _reasons(ordered: list[Candidate], policy: Policy, now: datetime, zone: tzinfo) -> dict[UUID, list[str]]:
    reasons: dict[UUID, list[str]] = {each.id: [PINNED] if each.pinned else [] for each in ordered}
    if ordered:
        reasons[ordered[0].id].insert(0, NEWEST)
    if not policy.selects:
        why = "fits into the size allowed" if policy.keep_bytes else "no rule is set"
        for found in reasons.values():
            found.append(why)
        return reasons
    for number, each in enumerate(ordered[: policy.keep_last or 0], 1):
        reasons[each.id].append(f"{number} of the last {policy.keep_last}")
    if policy.keep_days:
        for each in ordered:
            if (now - each.moment) / timedelta(days=1) < policy.keep_days:
                reasons[each.id].append(f"younger than {policy.keep_days} {_days(policy.keep_days)}")
    for word, period in PERIODS.items():
        _newest_of_each(ordered, reasons, getattr(policy, f"keep_{word}") or 0, period, zone)
    return reasons


def _days(count: int) -> str:
    return "day" if count == 1 else "days"


def _newest_of_each(
    ordered: list[Candidate], reasons: dict[UUID, list[str]], count: int, period: Period, zone: tzinfo
) -> None:
    seen: set[tuple[object, ...]] = set()
    for each in ordered:
        if len(seen) == count:
            return
        local = each.moment.astimezone(zone)
        found = period.of(local)
        if found not in seen:
            seen.add(found)
            reasons[each.id].append(
                f"newest of {period.name(local)} ({len(seen)} of {count} {period.plural})"
            )


def _cap(ordered: list[Candidate], reasons: dict[UUID, list[str]], most: int) -> None:
    """Empties the reasons of what has to go."""
    total = sum(each.size for each in ordered if reasons[each.id])
    for each in reversed(ordered[1:]):
        if total <= most:
            return
        if reasons[each.id] and not each.pinned:
            total -= each.size
            reasons[each.id] = []


@dataclass(frozen=True)
class Period:
    """`of` tells periods apart, `name` is what people call one; both from a time in the schedule's zone."""

    plural: str
    of: Callable[[datetime], tuple[object, ...]]
    name: Callable[[datetime], str]


# An hour that comes twice when the clocks go back is two hours: their offsets differ.
PERIODS = {
    "hourly": Period(
        "hours",
        lambda at: (at.date(), at.hour, at.utcoffset()),
        lambda at: f"{at:%Y-%m-%d %H}:00",
    ),
    "daily": Period("days", lambda at: (at.date(),), lambda at: f"{at:%Y-%m-%d}"),
    "weekly": Period("weeks", lambda at: tuple(at.isocalendar()[:2]), lambda at: f"week {at:%G-W%V}"),
    "monthly": Period("months", lambda at: (at.year, at.month), lambda at: f"{at:%Y-%m}"),
    "yearly": Period("years", lambda at: (at.year,), lambda at: f"{at:%Y}"),
}
