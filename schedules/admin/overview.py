"""Schedules as the home page and a database's page show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils.safestring import SafeString

from jobs.models import Database
from jobs.services import visible_to
from schedules.admin import columns
from schedules.admin.badges import badges, problems
from schedules.health import Health, health
from schedules.models import Schedule

NEXT, WRONG, SEEN, BY_HAND = 5, 10, 1000, 6


@dataclass(frozen=True)
class Line:
    schedule: Schedule
    health: Health | None

    @property
    def words(self) -> str:
        return columns.words(self.schedule)

    @property
    def next_run(self) -> SafeString | str:
        return columns.next_run(self.schedule)

    @property
    def badges(self) -> SafeString:
        return badges(self.schedule, self.health)

    @property
    def is_planned(self) -> bool:
        return self.schedule.enabled and not self.schedule.broken and self.schedule.next_run_at is not None

    @property
    def has_problems(self) -> bool:
        return any(problems(self.schedule, self.health))


def with_health(schedules: Iterable[Schedule]) -> list[Line]:
    """Of all of them at once."""
    rows = list(schedules)
    found = health(Schedule.objects.filter(pk__in=[row.pk for row in rows])) if rows else {}
    return [Line(row, found.get(row.pk)) for row in rows]


def home(user: User) -> dict[str, Any]:
    """What is wrong, then what runs next: looked for among the first thousand."""
    mine = visible_to(user, Schedule.objects.select_related("database"))
    lines = with_health(mine.order_by(F("next_run_at").asc(nulls_last=True), "name")[:SEEN])
    wrong = [line for line in lines if line.has_problems]
    well = [line for line in lines if line.is_planned and not line.has_problems]
    return {
        "has_schedules": bool(lines),
        "schedule_lines": wrong[:WRONG] + well[:NEXT],
        "by_hand": list(_by_hand(user)[:BY_HAND]) if lines else [],
    }


def _by_hand(user: User) -> QuerySet[Database]:
    """The databases that no schedule backs up."""
    planned = Schedule.objects.filter(database=OuterRef("pk"), enabled=True)
    return visible_to(user, Database.objects.filter(~Exists(planned)).order_by("name"))
