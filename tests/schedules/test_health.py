"""How schedules do, in one query."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.stores import default_storage
from schedules.health import Health, health
from schedules.models import Schedule
from schedules.tick import tick
from tests.schedules.conftest import MakeSchedule, ago, clock

pytestmark = pytest.mark.django_db

STORED = {"storage_key": "k", "size": 1, "sha256": "0" * 64}
Run = Callable[..., BackupJob]


@pytest.fixture
def run(database: Database) -> Run:
    """A row of history: `run(schedule, "failed", hours_ago=3)`."""

    def make(schedule: Schedule, status: str, *, hours_ago: float, **columns: Any) -> BackupJob:
        at = ago(hours=hours_ago)
        stored = STORED if status == "completed" else {}
        row = BackupJob.objects.create(
            user=database.user, database=database, database_name="shop", status=status,
            schedule_id=schedule.id, completed_at=at, **stored, **columns,
        )  # fmt: skip
        BackupJob.objects.filter(id=row.id).update(created_at=at)
        row.refresh_from_db()
        return row

    return make


def of(schedule: Schedule) -> Health:
    return health(Schedule.objects.filter(id=schedule.id))[schedule.id]


def queue(schedule: Schedule, *, created_at: datetime | None = None, **columns: Any) -> QueuedJob:
    return QueuedJob.objects.create(
        queue="backup", user=schedule.user, schedule_id=schedule.id, created_at=created_at or clock(),
        **columns,
    )  # fmt: skip


ACTIVE: dict[str, Any] = {"status": "active", "claim_id": uuid.uuid4(), "locked_by": "w"}


def test_schedule_that_never_ran(make_schedule: MakeSchedule) -> None:
    later = clock() + timedelta(hours=1)

    assert of(make_schedule(next_run_at=later)) == Health(None, None, 0, "", later, False, False, 0, None)


def test_failures_are_those_since_the_last_success(make_schedule: MakeSchedule, run: Run) -> None:
    schedule = make_schedule()
    run(schedule, "failed", hours_ago=9)
    good = run(schedule, "completed", hours_ago=8)
    for hours in (7, 6, 5):
        run(schedule, "failed", hours_ago=hours)
    run(schedule, "cancelled", hours_ago=4)

    found = of(schedule)

    assert (found.last_success_id, found.last_success) == (good.id, good.completed_at)
    assert (found.failures, found.last_status) == (3, "cancelled")


def test_failures_without_any_success(make_schedule: MakeSchedule, run: Run) -> None:
    schedule = make_schedule()
    run(schedule, "failed", hours_ago=1)

    assert (of(schedule).failures, of(schedule).last_success) == (1, None)


def test_success_in_the_trash_is_none_to_fall_back_on(make_schedule: MakeSchedule, run: Run) -> None:
    schedule = make_schedule()
    older = run(schedule, "completed", hours_ago=9)
    run(schedule, "failed", hours_ago=8)
    run(schedule, "completed", hours_ago=7, trashed_at=clock())

    assert (of(schedule).last_success_id, of(schedule).failures) == (older.id, 0)


def test_other_schedules_and_manual_backups_do_not_count(make_schedule: MakeSchedule, run: Run) -> None:
    schedule, other = make_schedule(), make_schedule("other")
    run(other, "completed", hours_ago=1)
    BackupJob.objects.create(user=other.user, database_name="shop", status="failed")

    assert of(schedule) == Health(None, None, 0, "", None, False, False, 0, None)


def test_waiting_and_running_are_told_from_the_queue(make_schedule: MakeSchedule, run: Run) -> None:
    waiting, running = make_schedule("waiting"), make_schedule("running")
    for schedule in (waiting, running):
        run(schedule, "completed", hours_ago=24)
    queue(waiting)
    queue(running, heartbeat_at=clock(), **ACTIVE)

    assert (of(waiting).last_status, of(waiting).running) == ("pending", False)
    assert (of(running).last_status, of(running).running) == ("running", True)


def test_overdue_is_what_nobody_looked_at(make_schedule: MakeSchedule) -> None:
    passed, just, off = (
        make_schedule("passed", next_run_at=ago(minutes=6)),
        make_schedule("just", next_run_at=ago(minutes=4)),
        make_schedule("off", next_run_at=ago(days=1), enabled=False),
    )

    assert [of(schedule).overdue for schedule in (passed, just, off)] == [True, False, False]


def test_overdue_is_what_waits_for_over_an_hour_but_not_what_runs(make_schedule: MakeSchedule) -> None:
    stuck, fresh, running = make_schedule("stuck"), make_schedule("fresh"), make_schedule("running")
    queue(stuck, created_at=ago(minutes=61))
    queue(fresh, created_at=ago(minutes=59))
    queue(running, created_at=ago(hours=6), heartbeat_at=clock(), **ACTIVE)

    assert [of(schedule).overdue for schedule in (stuck, fresh, running)] == [True, False, False]


def test_broken_row_says_why(make_schedule: MakeSchedule) -> None:
    schedule = make_schedule(cron_expression="every day", next_run_at=ago(hours=1))
    tick()

    found = of(schedule)

    assert found.broken
    assert found.overdue


def test_copies_that_failed_or_take_long_are_counted(
    make_schedule: MakeSchedule, run: Run, user: User
) -> None:
    schedule = make_schedule()
    good, trashed = (
        run(schedule, "completed", hours_ago=1),
        run(schedule, "completed", hours_ago=2, trashed_at=clock()),
    )
    elsewhere = Storage.objects.create(user=user, name="elsewhere", bucket="b")
    late = {"created_at": ago(minutes=16)}

    def copy(backup: BackupJob, key: str, **columns: Any) -> None:
        BackupCopy.objects.create(backup=backup, storage=elsewhere, storage_key=key, **columns)

    BackupCopy.objects.create(backup=good, storage=default_storage(), storage_key="1", state="good", **late)
    copy(good, "2", state="writing", is_first=False)
    copy(good, "3", state="writing", is_first=False, **late)
    copy(good, "4", state="failed", is_first=False, error="full")
    copy(good, "5", state="deleting", is_first=False, error="away", **late)
    copy(trashed, "6", state="failed", is_first=False, error="full", **late)

    assert of(schedule).copies_lagging == 2


def test_one_query_for_any_number_of_schedules(make_schedule: MakeSchedule, run: Run) -> None:
    for number in range(20):
        schedule = make_schedule(f"s{number}")
        run(schedule, "completed", hours_ago=2)
        run(schedule, "failed", hours_ago=1)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = health(Schedule.objects.all())

    assert len(queries) == 1
    assert len(found) == 20
    assert {each.failures for each in found.values()} == {1}


def test_no_schedules_no_health(db: None) -> None:
    assert health(Schedule.objects.none()) == {}


def test_history_is_read_through_the_index_of_schedules(
    make_schedule: MakeSchedule, database: Database
) -> None:
    schedules = [make_schedule(f"s{number}") for number in range(20)]
    BackupJob.objects.bulk_create(
        BackupJob(
            user=database.user, database_name="shop", schedule_id=schedules[number % 20].id, status="failed"
        )
        for number in range(4000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE backup_jobs; ANALYZE backup_schedules")
    with CaptureQueriesContext(connection) as queries:
        health(Schedule.objects.all())
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + queries[0]["sql"])
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "backup_jobs_schedule" in plan
    assert "Seq Scan on backup_jobs" not in plan
