"""What one tick does with each kind of row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.models import Database, QueuedJob, TimelineLine
from schedules import cron
from schedules.models import Schedule
from schedules.tick import tick
from tests.schedules.conftest import MakeSchedule, ago, clock, fresh

pytestmark = pytest.mark.django_db


def test_due_schedule_gets_its_job_and_its_next_time(make_schedule: MakeSchedule, database: Database) -> None:
    due = ago(seconds=20)
    schedule = make_schedule(next_run_at=due, flags={"format": "plain"})

    assert tick() == 1

    job = QueuedJob.objects.get()
    assert (job.queue, job.status, job.user_id) == ("backup", "pending", database.user_id)
    assert (job.schedule_id, job.slot, job.max_attempts) == (schedule.id, due, 1)
    assert job.payload == {
        "database_id": str(database.id), "database_name": "shop", "flags": {"format": "plain"},
    }  # fmt: skip
    assert TimelineLine.objects.get(job_id=job.id).event == "enqueued"
    row = fresh(schedule)
    assert row.next_run_at == cron.next_run("0 3 * * *", "UTC", clock())
    assert row.last_slot == due
    assert tick() == 0


def test_schedule_that_is_not_due_or_disabled_is_left_alone(make_schedule: MakeSchedule) -> None:
    later = make_schedule("later", next_run_at=clock() + timedelta(minutes=1))
    off = make_schedule("off", next_run_at=ago(hours=1), enabled=False)

    assert tick() == 0
    assert fresh(later).next_run_at == later.next_run_at
    assert fresh(off).next_run_at == off.next_run_at


def test_without_a_next_time_it_is_computed_and_nothing_fires(make_schedule: MakeSchedule) -> None:
    schedule = make_schedule(cron_expression="* * * * *")

    assert tick() == 0
    assert fresh(schedule).next_run_at == cron.next_run("* * * * *", "UTC", clock())
    assert fresh(schedule).last_slot is None


def test_thousand_schedules_without_a_next_time_fire_none(make_schedule: MakeSchedule) -> None:
    first = make_schedule("first", cron_expression="* * * * *")
    Schedule.objects.bulk_create(
        Schedule(user=first.user, database=first.database, name=f"s{n}", cron_expression=f"{n % 60} * * * *")
        for n in range(999)
    )

    assert tick() == 0
    assert not QueuedJob.objects.exists()
    assert Schedule.objects.filter(next_run_at__gt=clock()).count() == 1000
