from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from schedules import cron
from schedules.ahead import set_right
from schedules.models import Schedule
from tests.schedules.conftest import RARELY, MakeSchedule, ago, clock, next_of

pytestmark = pytest.mark.django_db


def test_a_clock_that_was_ahead_has_cost_one_slot_and_not_a_year_of_them(make_schedule: MakeSchedule) -> None:
    ahead = cron.next_run("@daily", "Europe/Berlin", clock() + timedelta(days=366))
    schedule = make_schedule(cron_expression="@daily", timezone="Europe/Berlin", next_run_at=ahead)
    assert set_right() == 1
    assert next_of(schedule) == cron.next_run("@daily", "Europe/Berlin", clock())
    assert set_right() == 0
    assert "schedules.ahead.set_right" in {path for path, _, _ in settings.UPKEEP_DUTIES}


def test_what_is_due_or_off_or_broken_or_was_made_due_earlier_stays(make_schedule: MakeSchedule) -> None:
    year, soon = clock() + timedelta(days=366), clock() + timedelta(seconds=50)
    make_schedule("due", "@hourly", next_run_at=ago(seconds=9))
    make_schedule("new", "@hourly")
    make_schedule("off", "@hourly", enabled=False, next_run_at=year)
    make_schedule("sooner", RARELY, next_run_at=soon)
    make_schedule("odd", "at noon", next_run_at=year)
    before = set(Schedule.objects.values_list("name", "next_run_at"))
    assert set_right() == 0
    assert set(Schedule.objects.values_list("name", "next_run_at")) == before


def test_who_saves_a_schedule_meanwhile_is_not_written_over(
    make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = make_schedule(cron_expression="@hourly", next_run_at=clock() + timedelta(days=366))
    saved = clock() + timedelta(days=20)
    computed = cron.next_run

    def next_run(*args: Any) -> datetime:
        Schedule.objects.filter(id=schedule.id).update(cron_expression="@monthly", next_run_at=saved)
        return computed(*args)

    monkeypatch.setattr(cron, "next_run", next_run)
    assert set_right() == 0
    assert next_of(schedule) == saved
