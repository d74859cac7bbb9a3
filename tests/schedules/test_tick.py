"""What one tick does with due rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from jobs.models import BackupJob, Database, QueuedJob, Storage, TimelineLine
from schedules import cron
from schedules import tick as ticking
from schedules.models import Schedule, ScheduleStorage, SkippedSlot
from schedules.tick import tick
from tests.schedules.conftest import RARELY, MakeSchedule, ago, clock, fresh, next_of

pytestmark = pytest.mark.django_db


def many(number: int, like: Schedule, **columns: object) -> None:
    row = {"user": like.user, "database": like.database, "cron_expression": RARELY} | columns
    Schedule.objects.bulk_create(Schedule(name=f"s{n}", **row) for n in range(number))


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
    line = TimelineLine.objects.get(job_id=job.id)
    assert (line.event, line.detail) == ("enqueued", "by its schedule")
    row = fresh(schedule)
    assert row.next_run_at == cron.next_run(RARELY, "UTC", clock())
    assert row.last_slot == due
    assert tick() == 0


def test_next_time_is_the_first_one_from_now_in_the_schedules_zone(make_schedule: MakeSchedule) -> None:
    columns = {"cron_expression": "30 2 29 2 *", "timezone": "Asia/Kolkata"}
    schedule = make_schedule(**columns, next_run_at=ago(seconds=1))

    tick()

    assert fresh(schedule).next_run_at == cron.next_run("30 2 29 2 *", "Asia/Kolkata", clock())


def test_schedule_that_is_not_due_or_disabled_is_left_alone(make_schedule: MakeSchedule) -> None:
    later = make_schedule("later", next_run_at=clock() + timedelta(minutes=1))
    off = make_schedule("off", next_run_at=ago(hours=1), enabled=False)

    assert tick() == 0
    assert fresh(later).next_run_at == later.next_run_at
    assert fresh(off).next_run_at == off.next_run_at


def test_thousand_schedules_without_a_next_time_fire_none(make_schedule: MakeSchedule) -> None:
    many(1000, make_schedule("first", next_run_at=clock() + timedelta(days=1)), cron_expression="* * * * *")
    before = clock()

    assert tick() == 0

    assert not QueuedJob.objects.exists()
    times = set(Schedule.objects.exclude(name="first").values_list("next_run_at", "last_slot"))
    expected = {cron.next_run("* * * * *", "UTC", moment) for moment in (before, clock())}
    assert times <= {(moment, None) for moment in expected}


def test_batches_follow_each_other_until_nothing_is_due(
    make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticking, "BATCH", 7)
    many(30, make_schedule("first", next_run_at=ago(minutes=1)), next_run_at=ago(seconds=30))

    assert tick() == 31
    assert QueuedJob.objects.values("schedule_id").distinct().count() == 31


def test_rest_is_left_to_the_next_turn_when_time_is_up(
    make_schedule: MakeSchedule, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(ticking, "BATCH", 7)
    settings.HEARTBEAT_SECONDS = 0.0
    many(20, make_schedule("first", next_run_at=ago(minutes=1)), next_run_at=ago(seconds=30))

    assert [tick() for _ in range(4)] == [7, 7, 7, 0]


def test_number_of_queries_does_not_grow_with_the_schedules(make_schedule: MakeSchedule) -> None:
    first = make_schedule("first", next_run_at=ago(seconds=30), overlap="skip")
    with CaptureQueriesContext(connection) as one:
        tick()
    many(200, first, next_run_at=ago(seconds=30), overlap="skip")

    with CaptureQueriesContext(connection) as more:
        assert tick() == 200

    assert len(more) <= len(one)


def test_backup_goes_into_the_first_storage(make_schedule: MakeSchedule, user: User) -> None:
    schedule = make_schedule(next_run_at=ago(seconds=1))
    first, second = (Storage.objects.create(user=user, name=name, bucket="b") for name in ("z", "a"))
    for position, storage in ((1, second), (0, first)):
        ScheduleStorage.objects.create(schedule=schedule, storage=storage, position=position)

    tick()

    assert QueuedJob.objects.get().payload["storage_id"] == str(first.id)


# A slot fires once ------------------------------------------------------------------------------


@pytest.fixture
def slot(make_schedule: MakeSchedule) -> datetime:
    """The slot of a schedule that is due beside another one."""
    due = ago(seconds=10)
    make_schedule("used", next_run_at=due)
    make_schedule("other", next_run_at=due)
    return due


def test_slot_that_has_a_job_gets_no_second_one(slot: datetime) -> None:
    used = Schedule.objects.get(name="used")
    QueuedJob.objects.create(queue="backup", user=used.user, schedule_id=used.id, slot=slot)

    assert tick() == 1
    assert QueuedJob.objects.filter(schedule_id=used.id).count() == 1
    assert next_of(used) > clock()


def test_slot_that_only_the_history_remembers_gets_no_second_one(slot: datetime) -> None:
    used = Schedule.objects.get(name="used")
    BackupJob.objects.create(
        user=used.user, database_name="shop", schedule_id=used.id, slot=slot, status="failed"
    )

    assert tick() == 1
    assert not QueuedJob.objects.filter(schedule_id=used.id).exists()
    assert next_of(used) > clock()


# While the previous one is unfinished -----------------------------------------------------------


@pytest.mark.parametrize(("status", "words"), [("pending", "waits in the queue"), ("active", "runs")])
def test_overlap_is_skipped_with_the_reason(make_schedule: MakeSchedule, status: str, words: str) -> None:
    due = ago(seconds=10)
    schedule = make_schedule(next_run_at=due, overlap="skip")
    job = QueuedJob.objects.create(
        queue="backup", user=schedule.user, schedule_id=schedule.id, slot=ago(hours=1), status=status,
        claim_id=schedule.id, locked_by="w", heartbeat_at=clock(),
    )  # fmt: skip
    if status == "active":
        BackupJob.objects.create(id=job.id, user=schedule.user, database_name="shop", status="running")

    assert tick() == 0

    skipped = SkippedSlot.objects.get()
    assert (skipped.schedule, skipped.slot) == (schedule, due)
    assert skipped.reason == f"The previous run has not ended: job {job.id} still {words}."
    assert skipped.backup_id == (job.id if status == "active" else None)
    assert fresh(schedule).last_slot == due
    assert next_of(schedule) > clock()


def test_overlap_is_allowed_unless_said_otherwise_and_ended_ones_are_none(
    make_schedule: MakeSchedule,
) -> None:
    allowing = make_schedule("allowing", next_run_at=ago(seconds=10))
    careful = make_schedule("careful", next_run_at=ago(seconds=10), overlap="skip")
    for schedule, status in ((allowing, "pending"), (careful, "completed"), (careful, "failed")):
        QueuedJob.objects.create(queue="backup", user=schedule.user, schedule_id=schedule.id, status=status)

    assert tick() == 2
    assert not SkippedSlot.objects.exists()


def test_slot_is_not_skipped_for_its_own_job(make_schedule: MakeSchedule) -> None:
    schedule = make_schedule(next_run_at=ago(seconds=10), overlap="skip")
    tick()
    Schedule.objects.update(next_run_at=schedule.next_run_at)

    assert tick() == 0
    assert not SkippedSlot.objects.exists()


# Whoever else holds something -------------------------------------------------------------------


def test_unexpected_trouble_of_one_row_is_its_own(make_schedule: MakeSchedule) -> None:
    odd = make_schedule("odd", cron_expression="0 3 * * *", next_run_at=ago(seconds=10))
    make_schedule("plain", next_run_at=ago(seconds=10))
    real = cron.next_run

    def next_run(expression: str, timezone: str, after: datetime) -> datetime:
        if expression == odd.cron_expression:
            raise OverflowError("date value out of range")
        return real(expression, timezone, after)

    with patch("schedules.cron.next_run", next_run):
        assert tick() == 1

    assert fresh(odd).broken == "It cannot be read: OverflowError: date value out of range"
