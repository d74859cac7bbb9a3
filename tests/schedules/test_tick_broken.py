"""Rows that cannot fire: they say why, and the others fire."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection

from jobs.models import QueuedJob, Storage
from schedules import tick as ticking
from schedules.models import Schedule, ScheduleStorage
from schedules.tick import tick
from tests.schedules.conftest import RARELY, MakeSchedule, ago, fresh, next_of

pytestmark = pytest.mark.django_db


def by_hand(schedule: Schedule, column: str, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE backup_schedules SET {column} = %s WHERE id = %s", [value, schedule.id])


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("cron_expression", "at noon of every day", "minute: 'at' is not understood"),
        ("cron_expression", "0 3 * *", "five fields"),
        ("cron_expression", "0 0 31 2 *", "never"),
        ("timezone", "Europe/Atlantis", "Europe/Atlantis"),
        ("flags", '{"format": "zip"}', "format"),
        ("flags", '["--clean"]', "must be a JSON object"),
        ("flags", f'{{"jobs": {"9" * 5000}}}', "must be a JSON object"),
        ("flags", "[" * 3000 + "]" * 3000, "must be a JSON object"),
    ],
)
def test_row_broken_by_hand_says_why_and_the_others_fire(
    make_schedule: MakeSchedule, column: str, value: str, reason: str
) -> None:
    due = ago(seconds=30)
    broken, fine = make_schedule("broken", next_run_at=due), make_schedule("fine", next_run_at=due)
    by_hand(broken, column, value)

    assert tick() == 1

    assert QueuedJob.objects.get().schedule_id == fine.id
    told, *times = Schedule.objects.values_list("broken", "next_run_at", "last_slot").get(id=broken.id)
    assert reason in (told or "")
    assert times == [due, None]
    assert tick() == 0


def test_mended_row_fires_for_the_slot_it_missed(make_schedule: MakeSchedule) -> None:
    due = ago(seconds=30)
    schedule = make_schedule(next_run_at=due)
    by_hand(schedule, "cron_expression", "nonsense")
    tick()
    by_hand(schedule, "cron_expression", RARELY)

    assert tick() == 1
    assert QueuedJob.objects.get().slot == due
    assert fresh(schedule).broken is None
    assert next_of(schedule) > due


def test_broken_rows_do_not_stand_in_the_way(
    make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticking, "BATCH", 5)
    for number in range(12):
        make_schedule(f"broken {number}", cron_expression="nonsense", next_run_at=ago(hours=1))
    make_schedule("fine", next_run_at=ago(seconds=1))

    assert tick() == 1
    assert Schedule.objects.filter(broken__isnull=False).count() == 12


def test_row_that_is_still_broken_is_not_written_again(make_schedule: MakeSchedule) -> None:
    schedule = make_schedule(cron_expression="nonsense", next_run_at=ago(hours=1))
    tick()
    before = version(schedule)

    tick()

    assert version(schedule) == before


def version(schedule: Schedule) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT ctid::text FROM backup_schedules WHERE id = %s", [schedule.id])
        return str(cursor.fetchone()[0])


@pytest.mark.parametrize("moment", ["-infinity", "infinity", "0044-03-15 BC", "20000-01-01"])
def test_next_time_that_nobody_can_read_is_refused(make_schedule: MakeSchedule, moment: str) -> None:
    odd = make_schedule("odd", next_run_at=ago(hours=1))
    with pytest.raises(IntegrityError, match="next_run_at_is_a_time"):
        by_hand(odd, "next_run_at", moment)


def test_broken_row_without_a_next_time_is_told_too(make_schedule: MakeSchedule) -> None:
    schedule = make_schedule(cron_expression="nonsense")

    assert tick() == 0
    assert fresh(schedule).broken
    by_hand(schedule, "cron_expression", RARELY)
    tick()
    assert fresh(schedule).broken is None
    assert next_of(schedule)
    assert not QueuedJob.objects.exists()


def elsewhere(schedule: Schedule, other: User) -> str:
    storage = Storage.objects.create(user=other, name="theirs", bucket="b")
    ScheduleStorage.objects.create(schedule=schedule, storage=storage)
    return "The storage 'theirs' is another account's"


def moved(schedule: Schedule, other: User) -> str:
    schedule.database.user = other
    schedule.database.save()
    return "The database 'shop' belongs to another account by now"


@pytest.mark.parametrize("change", [elsewhere, moved])
def test_what_belongs_to_others_by_now_stops_only_that_schedule(
    make_schedule: MakeSchedule, other_user: User, change: Any
) -> None:
    schedule = make_schedule("first", next_run_at=ago(seconds=30))
    reason = change(schedule, other_user)
    second = Schedule.objects.get(id=make_schedule("second", next_run_at=ago(seconds=30)).id)
    if change is moved:
        Schedule.objects.filter(id=second.id).update(user=other_user)

    assert tick() == 1
    assert reason in (fresh(schedule).broken or "")
    assert QueuedJob.objects.get().schedule_id == second.id
