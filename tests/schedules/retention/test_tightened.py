"""What only a changed policy would delete waits, and can be taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from jobs import trash
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.processors.stored import of_backup
from schedules import prune, services
from schedules.models import Schedule
from schedules.plans import Target
from schedules.retention import Policy
from tests.conftest import Enqueue
from tests.schedules.conftest import MakeSchedule, ago

from .conftest import Backup, content_of, later, objects, remaining

pytestmark = pytest.mark.django_db


def keep(schedule: Schedule, database: Database, **changes: Any) -> Schedule:
    """Save the schedule with another policy, as its form does."""
    return services.update(schedule, replace(services.plan_of(schedule), **changes), by=database.user)


def given_up() -> set[Any]:
    return set(BackupCopy.objects.filter(delete_after__isnull=False).values_list("backup_id", flat=True))


def days_until(backup: BackupJob) -> float:
    leaves = trash.leaves_at(backup)
    assert leaves
    return (leaves - timezone.now()) / timedelta(days=1)


@pytest.fixture
def five(make_schedule: MakeSchedule, backup: Backup) -> tuple[Schedule, list[BackupJob]]:
    """A schedule that keeps all its five backups, the newest first."""
    schedule = make_schedule(keep_last=5)
    return schedule, [backup(schedule, ago(days=days)) for days in (1, 2, 3, 4, 5)]


Five = tuple[Schedule, list[BackupJob]]


def test_what_only_the_new_policy_deletes_waits(five: Five, database: Database, storage: Storage) -> None:
    schedule, made = five
    keep(schedule, database, policy=Policy(keep_last=2))
    assert given_up() == {each.id for each in made[2:]}
    assert 6.9 < days_until(made[4]) < 7.1
    assert prune.prune(schedule) == 0
    assert b"".join(of_backup(made[4]).read()) == content_of(made[4])
    later(days=7)
    assert prune.prune_due() == 3
    assert remaining() == {each.id for each in made[:2]}
    assert objects(storage) == {str(each.id) for each in made[:2]}


def test_what_the_old_policy_deletes_too_goes_at_once(five: Five, backup: Backup, database: Database) -> None:
    schedule, made = five
    overdue = backup(schedule, ago(days=6))
    keep(schedule, database, policy=Policy(keep_last=2))
    assert given_up() == {each.id for each in made[2:]}
    assert prune.prune(schedule) == 1
    assert overdue.id not in remaining()


def test_new_backups_take_the_place_of_old_ones_meanwhile(
    five: Five, backup: Backup, database: Database
) -> None:
    schedule, made = five
    keep(schedule, database, policy=Policy(keep_last=2))
    new = backup(schedule, ago(hours=1))
    assert prune.prune(schedule) == 1
    assert remaining() == {new.id, made[0].id, *(each.id for each in made[2:])}


def test_a_policy_that_is_loosened_again_keeps_what_it_keeps(five: Five, database: Database) -> None:
    schedule, made = five
    keep(schedule, database, policy=Policy(keep_last=1))
    keep(schedule, database, policy=Policy(keep_last=4))
    assert given_up() == {made[4].id}
    keep(schedule, database, policy=Policy())
    assert given_up() == set()


def test_one_storage_can_be_tightened_alone(five: Five, database: Database, storage: Storage) -> None:
    schedule, made = five
    keep(schedule, database, storages=[Target(storage, Policy(keep_last=3))])
    assert given_up() == {each.id for each in made[3:]}


def test_other_days_of_another_zone_count_as_tightened(
    make_schedule: MakeSchedule, backup: Backup, database: Database
) -> None:
    """Two days in UTC are one in Berlin."""
    schedule = make_schedule(keep_daily=2)
    new = backup(schedule, ago(days=1), slot="2026-01-10T23:30:00Z")
    old = backup(schedule, ago(days=1), slot="2026-01-11T02:00:00Z")
    keep(schedule, database, timezone="Europe/Berlin")
    assert given_up() == {new.id}
    assert old.id in remaining()


def test_pinned_ones_are_not_given_up(five: Five, database: Database) -> None:
    schedule, made = five
    BackupJob.objects.filter(id=made[4].id).update(pinned=True)
    keep(schedule, database, policy=Policy(keep_last=3))
    assert given_up() == {made[3].id}


def test_one_that_is_taken_back_stays_for_good(five: Five, database: Database) -> None:
    schedule, made = five
    keep(schedule, database, policy=Policy(keep_last=1))
    trash.take_back(made[3], by=database.user)
    trash.pin(made[4], True, by=database.user)
    later(days=8)
    prune.prune_due()
    assert remaining() == {each.id for each in (made[0], made[3], made[4])}


def test_the_newest_good_one_stays_though_it_was_given_up(five: Five, database: Database) -> None:
    """Those that were to stay were deleted by hand meanwhile."""
    schedule, made = five
    keep(schedule, database, policy=Policy(keep_last=2))
    for each in made[:2]:
        trash.put(each, by=database.user)
    later(days=8)
    prune.prune_due()
    assert given_up() == set()
    assert remaining() == {each.id for each in made[:3]}


def test_a_restore_that_waits_puts_it_off(five: Five, database: Database, enqueue: Enqueue) -> None:
    schedule, made = five
    keep(schedule, database, policy=Policy(keep_last=4))
    enqueue("restore", {"backup_id": str(made[4].id)})
    later(days=8)
    assert prune.prune_due() == 0
    assert given_up() == {made[4].id}
    QueuedJob.objects.filter(queue="restore").update(status="failed")
    assert prune.prune_due() == 1


def test_with_its_schedule_gone_nothing_is_given_up(five: Five, database: Database) -> None:
    keep(five[0], database, policy=Policy(keep_last=1))
    database.delete()
    later(days=8)
    assert prune.prune_due() == 0
    assert given_up() == set()
    assert len(remaining()) == 5


def test_without_a_trash_it_goes_with_the_next_prune(
    five: Five, database: Database, settings: Settings
) -> None:
    settings.TRASH_DAYS = 0
    schedule, made = five
    keep(schedule, database, policy=Policy(keep_last=1))
    assert given_up() == set()
    assert prune.prune(schedule) == 4
    assert remaining() == {made[0].id}


def test_the_preview_tells_what_goes_and_why_the_rest_stays(five: Five) -> None:
    schedule, made = five
    fates = prune.preview(schedule, Policy(keep_last=1, keep_days=3))
    assert [(fate.backup.id, fate.delete) for fate in fates] == [
        (each.id, place > 1) for place, each in enumerate(made)
    ]
    assert fates[0].reasons == "the newest good one, 1 of the last 1, younger than 3 days"
    assert fates[4].reasons == ""
    assert prune.prune(schedule) == 0, "to look changes nothing"
