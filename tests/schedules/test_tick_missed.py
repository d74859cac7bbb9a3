"""Slots that came while nobody ticked: one run for the latest, or none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.models import BackupJob, QueuedJob
from jobs.queue import history
from jobs.queue.rows import QueueRow
from schedules import cron
from schedules.models import SkippedSlot
from schedules.tick import tick
from tests.schedules.conftest import MakeSchedule, ago, clock, fresh, next_of

pytestmark = pytest.mark.django_db

# Every six hours, at a minute that is half an hour or more away from now.
EXPRESSION = "{} */6 * * *"


@pytest.fixture
def expression() -> str:
    return EXPRESSION.format((clock().minute + 30) % 60)


def test_downtime_gives_one_late_run_for_the_latest_slot(
    make_schedule: MakeSchedule, expression: str
) -> None:
    now = clock()
    slots = cron.upcoming(expression, "UTC", now - timedelta(days=3), 11)
    schedule = make_schedule(cron_expression=expression, next_run_at=slots[0])

    assert tick() == 1

    job = QueuedJob.objects.get()
    latest = cron.previous_run(expression, "UTC", now, slots[0])
    assert (job.slot, job.payload["late"]) == (latest, True)
    assert next_of(schedule) == cron.next_run(expression, "UTC", now)
    assert fresh(schedule).last_slot == latest
    assert not SkippedSlot.objects.exists()


def test_history_says_that_a_run_was_late(make_schedule: MakeSchedule) -> None:
    make_schedule(next_run_at=ago(minutes=6))
    tick()
    job = QueuedJob.objects.get()

    history.start(QueueRow(**{name: getattr(job, name) for name in QueueRow.__dataclass_fields__}))

    assert BackupJob.objects.get().late


def test_some_minutes_are_not_late(make_schedule: MakeSchedule) -> None:
    make_schedule(next_run_at=ago(minutes=4), skip_missed=True)

    assert tick() == 1
    assert "late" not in QueuedJob.objects.get().payload


def test_frequent_schedule_is_on_time_again_at_once(make_schedule: MakeSchedule) -> None:
    make_schedule(cron_expression="* * * * *", next_run_at=ago(days=300))

    assert tick() == 1

    job = QueuedJob.objects.get()
    assert job.slot is not None
    assert clock() - job.slot < timedelta(minutes=2)
    assert "late" not in job.payload


def test_missed_runs_are_skipped_where_the_schedule_says_so(
    make_schedule: MakeSchedule, expression: str
) -> None:
    now = clock()
    slots = cron.upcoming(expression, "UTC", now - timedelta(days=1), 3)
    schedule = make_schedule(cron_expression=expression, next_run_at=slots[0], skip_missed=True)

    assert tick() == 0

    skipped = SkippedSlot.objects.get()
    latest = cron.previous_run(expression, "UTC", now, slots[0])
    assert (skipped.slot, skipped.backup_id) == (latest, None)
    since = f"{slots[0]:%Y-%m-%d %H:%M} UTC"
    assert skipped.reason == f"Missed: no worker looked within 5 minutes. So were those from {since} on."
    assert next_of(schedule) == cron.next_run(expression, "UTC", now)
    assert fresh(schedule).last_slot == latest
    assert tick() == 0
    assert not QueuedJob.objects.exists()


def test_single_missed_slot_is_skipped_once(make_schedule: MakeSchedule) -> None:
    due = ago(hours=1)
    make_schedule(next_run_at=due, skip_missed=True)

    tick()

    assert SkippedSlot.objects.get().reason == "Missed: no worker looked within 5 minutes."
