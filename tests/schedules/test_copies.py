"""Which copies are planned: what is missing in a schedule's storages and would stay there."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from jobs.models import BackupCopy, BackupJob, Storage
from schedules import copies
from schedules.copies import plan_missing
from schedules.models import Schedule, ScheduleStorage
from tests.at_once import at_once
from tests.processors.conftest import in_a_thread

from .conftest import MakeSchedule

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
ELSEWHERE = uuid.UUID(int=0)

Completed = Callable[..., BackupJob]


@pytest.fixture
def here(user: User) -> Storage:
    return Storage.objects.create(user=user, name="here", kind="folder", folder="/here", prefix="a")


@pytest.fixture
def there(user: User) -> Storage:
    return Storage.objects.create(user=user, name="there", kind="folder", folder="/there", prefix="b/c")


@pytest.fixture
def schedule(make_schedule: MakeSchedule, here: Storage, there: Storage) -> Schedule:
    made = make_schedule()
    for position, storage in enumerate((here, there)):
        ScheduleStorage.objects.create(schedule=made, storage=storage, position=position)
    return made


@pytest.fixture
def completed(schedule: Schedule, here: Storage) -> Completed:
    """`completed(age, **columns)`: a backup of the schedule, so many hours before NOON, stored here."""

    def make(age: float = 0, **columns: Any) -> BackupJob:
        key, moment = f"a/shop/{uuid.uuid4()}.dump", NOON - timedelta(hours=age)
        row = {
            "user": schedule.user, "database_name": "shop", "status": "completed", "slot": moment,
            "schedule_id": schedule.id, "size": 10, "sha256": "x", "storage_key": key, "completed_at": moment,
        } | columns  # fmt: skip
        backup = BackupJob.objects.create(**row)
        BackupCopy.objects.create(backup=backup, storage=here, storage_key=key, state="good", size=10)
        return backup

    return make


def keep(there: Storage, **rules: int) -> None:
    ScheduleStorage.objects.filter(storage=there).update(**rules)


def planned(there: Storage) -> set[uuid.UUID]:
    rows = BackupCopy.objects.filter(storage=there, state="writing", is_first=False)
    return set(rows.values_list("backup_id", flat=True))


def test_each_backup_gets_a_row_for_each_storage_once(completed: Completed, there: Storage) -> None:
    backups = [completed(age) for age in range(3)]
    assert plan_missing() == 3
    assert plan_missing() == 0
    assert planned(there) == {backup.id for backup in backups}
    copy = backups[0].copies.get(storage=there)
    assert copy.storage_key == f"b/c/shop/{(backups[0].storage_key or '').rsplit('/', 1)[1]}"
    assert (copy.claim_id, copy.attempts) == (None, 0)
    assert copy.next_attempt_at is not None
    assert copy.next_attempt_at <= timezone.now()


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "failed"},
        {"status": "running"},
        {"trashed_at": NOON},
        {"schedule_id": None},
        {"schedule_id": ELSEWHERE},
    ],
)
def test_what_is_not_a_good_backup_of_the_schedule_is_left_out(
    completed: Completed, there: Storage, columns: dict[str, Any]
) -> None:
    completed(**columns)
    assert (plan_missing(), planned(there)) == (0, set())


def test_without_anything_to_copy_from_nothing_is_planned(completed: Completed) -> None:
    completed().copies.update(state="failed")
    assert plan_missing() == 0


def test_what_the_storages_own_policy_would_delete_at_once_is_not_planned(
    completed: Completed, there: Storage
) -> None:
    keep(there, keep_daily=2)
    ages = {age: completed(age) for age in (0, 1, 20, 21, 40)}
    assert plan_missing() == 2
    assert planned(there) == {ages[0].id, ages[20].id}


def test_what_is_not_wanted_is_looked_at_again_only_when_something_changes(
    completed: Completed, there: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(there, keep_last=1)
    old = [completed(age) for age in range(3)][-1]
    looks: list[object] = []
    settle = copies._settle

    def looked(target: ScheduleStorage) -> tuple[int, int]:
        looks.append(target)
        return settle(target)

    monkeypatch.setattr(copies, "_settle", looked)
    for _ in range(4):
        plan_missing()
    assert len(looks) == 2  # the second time one of them was planned
    BackupJob.objects.filter(id=old.id).update(pinned=True)
    assert plan_missing() == 1
    keep(there, keep_last=2)
    assert plan_missing() == 1


def test_the_schedules_policy_holds_where_the_storage_has_none(
    completed: Completed, schedule: Schedule, there: Storage
) -> None:
    Schedule.objects.filter(id=schedule.id).update(keep_last=1)
    newest, _ = completed(0), completed(5, pinned=False)
    pinned = completed(9, pinned=True)
    plan_missing()
    assert planned(there) == {newest.id, pinned.id}


def test_what_lies_there_counts(completed: Completed, there: Storage) -> None:
    keep(there, keep_last=2)
    rows = [completed(age) for age in range(4)]
    for backup in rows[1:3]:
        BackupCopy.objects.create(
            backup=backup, storage=there, storage_key=str(backup.id), state="good", is_first=False
        )
    plan_missing()
    assert planned(there) == {rows[0].id}


def test_after_a_long_outage_only_what_would_stay_is_still_copied(
    completed: Completed, there: Storage
) -> None:
    keep(there, keep_last=2)
    for age in (30, 20, 10):
        completed(age)
        plan_missing()
        BackupCopy.objects.filter(storage=there).update(state="failed", attempts=1, error="away")
    BackupCopy.objects.filter(storage=there).update(state="writing")
    newest = completed(0)
    plan_missing()
    assert len(planned(there)) == 2
    assert newest.id in planned(there)


def test_what_is_being_copied_or_left_something_behind_is_not_forgotten(
    completed: Completed, there: Storage
) -> None:
    old, older, oldest = completed(1), completed(2), completed(3)
    plan_missing()
    keep(there, keep_last=1)
    completed(0)
    older.copies.filter(storage=there).update(claim_id=uuid.uuid4())
    oldest.copies.filter(storage=there).update(upload_token="part")
    plan_missing()
    assert planned(there) & {old.id, older.id, oldest.id} == {older.id, oldest.id}


def test_a_storage_that_the_schedule_gives_up_is_waited_for_no_longer(
    completed: Completed, there: Storage, schedule: Schedule
) -> None:
    kept = completed(1)
    BackupCopy.objects.create(backup=kept, storage=there, storage_key="k", state="good", is_first=False)
    completed(0)
    plan_missing()
    ScheduleStorage.objects.filter(storage=there).delete()
    assert (plan_missing(), planned(there)) == (0, set())
    assert kept.copies.filter(storage=there, state="good").exists()


def test_the_copies_of_a_deleted_schedule_are_still_made(
    completed: Completed, there: Storage, schedule: Schedule
) -> None:
    backup = completed()
    plan_missing()
    ScheduleStorage.objects.all().delete()
    schedule.delete()
    plan_missing()
    assert planned(there) == {backup.id}


def test_a_broken_zone_holds_up_nobody_else(
    completed: Completed, there: Storage, make_schedule: MakeSchedule, here: Storage
) -> None:
    broken = make_schedule("broken", timezone="Mars/Olympus")
    ScheduleStorage.objects.create(schedule=broken, storage=there)
    completed(2, schedule_id=broken.id)
    fine = completed()
    assert plan_missing() == 1
    assert planned(there) == {fine.id}


@pytest.mark.django_db(transaction=True)
def test_several_workers_plan_each_copy_once(completed: Completed, there: Storage) -> None:
    backups = [completed(age) for age in range(20)]
    at_once(4, plan_missing)
    assert plan_missing() == 0
    assert planned(there) == {backup.id for backup in backups}
    assert BackupCopy.objects.filter(storage=there).count() == 20


@pytest.mark.django_db(transaction=True)
def test_what_somebody_held_is_planned_at_the_next_look(completed: Completed, there: Storage) -> None:
    backup = completed()
    with transaction.atomic():
        BackupJob.objects.select_for_update().get(pk=backup.pk)
        in_a_thread(plan_missing)
    assert planned(there) == set()
    plan_missing()
    assert planned(there) == {backup.pk}


def test_another_backup_of_the_same_kind_is_looked_at_anew(completed: Completed, there: Storage) -> None:
    """The newest gone and another one back between two looks: as many as before, but not the same."""
    keep(there, keep_last=1)
    newest, older, oldest = completed(1), completed(2), completed(3)
    for backup in (older, oldest):
        BackupCopy.objects.create(
            backup=backup, storage=there, storage_key=str(backup.pk), state="good", size=1
        )
    BackupJob.objects.filter(pk__in=[newest.pk, oldest.pk]).update(trashed_at=NOON)
    middle = completed(2.5)
    assert plan_missing() == 0
    BackupJob.objects.filter(pk=older.pk).update(trashed_at=NOON)
    BackupJob.objects.filter(pk=oldest.pk).update(trashed_at=None)
    assert plan_missing() == 1
    assert planned(there) == {middle.pk}
