"""Changing, switching, cloning, running and deleting schedules."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import ActivityEvent, BackupCopy, BackupJob, Database, QueuedJob
from jobs.secrets import seal
from jobs.services import ServiceError
from jobs.stores import default_storage
from schedules import cron, services
from schedules.models import Schedule, ScheduleStorage
from schedules.retention import Policy
from schedules.services import Plan
from tests.schedules.conftest import NIGHTLY, RARELY, actions, ago, clock, fresh, next_of

pytestmark = pytest.mark.django_db

# Changing ---------------------------------------------------------------------------------------


def test_next_time_stays_unless_the_timing_changes(schedule: Schedule, user: User, full: Plan) -> None:
    timing: dict[str, Any] = {"cron_expression": RARELY, "timezone": "Europe/Berlin"}

    services.update(schedule, replace(full, **timing), by=user)

    row = fresh(schedule)
    assert row.next_run_at == schedule.next_run_at
    assert services.plan_of(row) == replace(full, **timing)


@pytest.mark.parametrize("change", [{"cron_expression": "0 0 1 3 *"}, {"timezone": "Asia/Tokyo"}])
def test_next_time_follows_a_new_timing(schedule: Schedule, user: User, change: dict[str, Any]) -> None:
    plan = replace(services.plan_of(schedule), **change)

    saved = services.update(schedule, plan, by=user)

    expected = cron.next_run(plan.cron_expression, plan.timezone, clock())
    assert saved.next_run_at == next_of(schedule) == expected
    assert ActivityEvent.objects.get(action="change").detail == {"changed": list(change)}


def test_what_the_tick_wrote_meanwhile_is_not_written_over(schedule: Schedule, user: User) -> None:
    opened, plan = Schedule.objects.get(id=schedule.id), services.plan_of(schedule)
    ticked = {"next_run_at": clock() + timedelta(hours=5), "last_slot": ago(seconds=1)}
    Schedule.objects.filter(id=schedule.id).update(**ticked)

    services.update(opened, replace(plan, skip_missed=True), by=user)

    row = fresh(schedule)
    assert (row.next_run_at, row.last_slot, row.skip_missed) == (*ticked.values(), True)


def test_row_is_written_once_and_by_named_columns(schedule: Schedule, user: User) -> None:
    plan = replace(services.plan_of(schedule), skip_missed=True)

    with CaptureQueriesContext(connection) as queries:
        services.update(schedule, plan, by=user)

    writes = [query["sql"] for query in queries if query["sql"].startswith('UPDATE "backup_schedules"')]
    assert len(writes) == 1
    assert "next_run_at" not in writes[0]
    assert "last_slot" not in writes[0]


def test_edit_mends_a_broken_row(schedule: Schedule, user: User) -> None:
    Schedule.objects.update(broken="It is.", timezone="Nowhere/At_All")

    services.update(schedule, NIGHTLY, by=user)

    assert fresh(schedule).broken is None
    assert next_of(schedule) > clock()


def test_schedule_stays_with_its_database(schedule: Schedule, user: User) -> None:
    other = Database.objects.create(user=user, name="other", sealed_url=seal("postgresql://h/d"))
    moved = Schedule.objects.get(id=schedule.id)
    moved.database = other

    with pytest.raises(ServiceError, match="stays with the database 'shop'"):
        services.update(moved, services.plan_of(schedule), by=user)


def test_name_of_another_schedule_cannot_be_taken(schedule: Schedule, database: Database, user: User) -> None:
    services.create(database, replace(NIGHTLY, name="weekly"), by=user)

    with pytest.raises(ServiceError, match="a schedule called 'weekly' already"):
        services.update(schedule, replace(NIGHTLY, name="weekly"), by=user)


def test_tightened_policy_gives_copies_time_to_be_taken_back(
    schedule: Schedule, database: Database, user: User
) -> None:
    for days in (1, 2, 3):
        backup = BackupJob.objects.create(
            user=user, database=database, database_name="shop", status="completed", schedule_id=schedule.id,
            slot=ago(days=days), started_at=ago(days=days), completed_at=ago(days=days), storage_key="k",
            size=1, sha256="0",
        )  # fmt: skip
        BackupCopy.objects.create(
            backup=backup, storage=default_storage(), state="good", storage_key=f"k{days}", size=1
        )

    services.update(schedule, replace(services.plan_of(schedule), policy=Policy(keep_last=2)), by=user)

    given_up = BackupCopy.objects.filter(delete_after__isnull=False)
    assert [copy.storage_key for copy in given_up] == ["k3"]


# Switching, cloning, running, deleting ------------------------------------------------------------


def test_switched_off_and_on_it_waits_for_its_next_time(schedule: Schedule, user: User) -> None:
    services.set_enabled(schedule, False, by=user)
    assert (fresh(schedule).enabled, fresh(schedule).next_run_at) == (False, None)

    services.set_enabled(schedule, True, by=user)
    assert next_of(schedule) == cron.next_run(RARELY, "Europe/Berlin", clock())
    assert actions()[1:] == [("disable", "nightly"), ("enable", "nightly")]


def test_switching_to_what_it_is_changes_nothing(schedule: Schedule, user: User) -> None:
    services.set_enabled(schedule, True, by=user)

    assert fresh(schedule).next_run_at == schedule.next_run_at
    assert actions() == [("add", "nightly")]


def test_clone_is_the_same_but_off_and_silent(database: Database, user: User, full: Plan) -> None:
    schedule = services.create(database, full, by=user)

    twin = services.clone(schedule, "twin", by=user)

    silent = replace(full, ping_start_url="", ping_success_url="", ping_failure_url="")
    assert services.plan_of(fresh(twin)) == replace(silent, name="twin", enabled=False)
    assert twin.id != schedule.id
    assert twin.next_run_at is None


def test_run_now_is_a_run_without_a_slot(database: Database, user: User, full: Plan) -> None:
    schedule = services.create(database, full, by=user)
    due = next_of(schedule)

    job_id = services.run_now(schedule, by=user)

    job = QueuedJob.objects.get(id=job_id)
    assert (job.schedule_id, job.slot, job.user_id) == (schedule.id, None, user.pk)
    assert job.payload["storage_id"] == str(full.storages[0].storage.id)
    assert job.payload["flags"] == full.flags
    assert next_of(schedule) == due
    assert actions()[-1] == ("run", "full")


def test_delete_leaves_the_backups(schedule: Schedule, database: Database, user: User, full: Plan) -> None:
    services.update(schedule, full, by=user)
    backup = BackupJob.objects.create(
        user=user, database=database, database_name="shop", status="failed", schedule_id=schedule.id
    )

    services.delete(schedule, by=user)

    assert not Schedule.objects.exists()
    assert not ScheduleStorage.objects.exists()
    assert BackupJob.objects.get() == backup
    assert actions()[-1] == ("delete", "full")
