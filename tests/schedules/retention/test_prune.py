"""What retention deletes, and above all what it does not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now

from jobs import deleting, trash
from jobs.models import BackupCopy, BackupJob, QueuedJob, Storage
from jobs.models.storage import CopyState
from jobs.processors.stored import of_backup
from jobs.services import ServiceError
from schedules import prune
from schedules.models import Schedule, ScheduleStorage
from schedules.retention import Policy
from tests.conftest import Enqueue
from tests.schedules.conftest import MakeSchedule, ago, fresh

from .conftest import Backup, content_of, folder, later, objects, remaining, store

pytestmark = pytest.mark.django_db

EVERY_KIND: dict[str, int] = {
    "keep_last": 1,
    "keep_days": 1,
    "keep_hourly": 1,
    "keep_daily": 1,
    "keep_weekly": 1,
    "keep_monthly": 1,
    "keep_yearly": 1,
    "keep_bytes": 1,
}


# What stays --------------------------------------------------------------------------------------


def test_what_the_policy_gives_up_is_deleted_with_its_history(
    make_schedule: MakeSchedule, backup: Backup, storage: Storage
) -> None:
    schedule = make_schedule(keep_last=2)
    made = [backup(schedule, ago(days=days)) for days in (4, 3, 2, 1)]
    assert prune.prune(schedule) == 2
    assert remaining() == {made[2].id, made[3].id}
    assert objects(storage) == {str(made[2].id), str(made[3].id)}
    assert fresh(schedule).retention_error is None
    assert fresh(schedule).pruned_at


@pytest.mark.parametrize("rule", EVERY_KIND)
def test_ten_failed_runs_leave_the_newest_good_one_to_be_restored(
    rule: str, make_schedule: MakeSchedule, backup: Backup
) -> None:
    schedule = make_schedule(keep_failed=3, **{rule: EVERY_KIND[rule]})
    older, newest = backup(schedule, ago(days=400)), backup(schedule, ago(days=390))
    failed = [backup(schedule, ago(days=30 - day), status="failed") for day in range(10)]
    prune.prune_due()
    assert remaining() - {older.id} == {newest.id, *(each.id for each in failed[-3:])}
    stored = of_backup(newest)
    assert b"".join(stored.read()) == content_of(newest)
    assert stored.sha256 == newest.sha256


def test_manual_pinned_trashed_and_foreign_ones_are_no_candidates(
    make_schedule: MakeSchedule, backup: Backup
) -> None:
    schedule, other = make_schedule(keep_last=1), make_schedule("other")
    stays = [
        backup(None, ago(days=9)),
        backup(other, ago(days=9)),
        backup(schedule, ago(days=9), pinned=True),
        backup(schedule, ago(days=9), trashed_at=ago(days=1)),
        backup(schedule, ago(days=1)),
    ]
    gone = backup(schedule, ago(days=2))
    assert prune.prune(schedule) == 1
    assert remaining() == {each.id for each in stays}
    assert gone.id not in remaining()


def test_one_in_the_trash_is_no_newest_good_one(make_schedule: MakeSchedule, backup: Backup) -> None:
    schedule = make_schedule(keep_last=1)
    good, trashed = backup(schedule, ago(days=2)), backup(schedule, ago(days=1), trashed_at=ago(hours=1))
    assert prune.prune(schedule) == 0
    assert remaining() == {good.id, trashed.id}


def test_when_the_newest_lost_its_object_the_newest_good_one_stays_as_well(
    make_schedule: MakeSchedule, backup: Backup
) -> None:
    schedule = make_schedule(keep_last=1)
    oldest, good, lost = (backup(schedule, ago(days=days)) for days in (3, 2, 1))
    lost.copies.update(state=CopyState.FAILED, error="The object is gone")
    assert prune.prune(schedule) == 1
    assert remaining() == {good.id, lost.id}
    assert oldest.id not in remaining()


def test_by_its_slot_not_by_when_it_was_caught_up(make_schedule: MakeSchedule, backup: Backup) -> None:
    schedule = make_schedule(keep_last=1)
    late = backup(schedule, ago(hours=1), slot=ago(days=5))
    punctual = backup(schedule, ago(days=1), slot=ago(days=1))
    prune.prune(schedule)
    assert remaining() == {punctual.id}
    assert late.id not in remaining()


def test_without_a_rule_nothing_goes(make_schedule: MakeSchedule, backup: Backup) -> None:
    schedule = make_schedule()
    for day in range(5):
        backup(schedule, ago(days=day))
        backup(schedule, ago(days=day), status="cancelled")
    assert prune.prune(schedule) == 0
    assert len(remaining()) == 10


def test_a_restore_that_waits_keeps_its_backup(
    make_schedule: MakeSchedule, backup: Backup, enqueue: Enqueue
) -> None:
    schedule = make_schedule(keep_last=1)
    wanted, newest = backup(schedule, ago(days=2)), backup(schedule, ago(days=1))
    enqueue("restore", {"backup_id": str(wanted.id)})
    enqueue("restore", None, status="pending")
    assert prune.prune(schedule) == 0
    (fate,) = (each for each in prune.preview(schedule, Policy(keep_last=1)) if each.backup == wanted)
    assert (fate.delete, fate.reasons) == (False, "a restore from it waits or runs")
    QueuedJob.objects.filter(queue="restore").update(status="completed")
    assert prune.prune(schedule) == 1
    assert remaining() == {newest.id}


# Several storages --------------------------------------------------------------------------------


@pytest.fixture
def second(user: User, tmp_path: Path) -> Storage:
    return folder(user, tmp_path / "second", "second")


def test_each_storage_keeps_by_its_own_rules(
    make_schedule: MakeSchedule, backup: Backup, storage: Storage, second: Storage
) -> None:
    schedule = make_schedule(keep_last=3)
    ScheduleStorage.objects.create(schedule=schedule, storage=storage, position=0)
    ScheduleStorage.objects.create(schedule=schedule, storage=second, position=1, keep_last=1)
    made = [backup(schedule, ago(days=days), storages=[storage, second]) for days in (5, 4, 3, 2, 1)]
    assert prune.prune(schedule) == 6
    assert objects(storage) == {str(each.id) for each in made[2:]}
    assert objects(second) == {str(made[4].id)}
    assert remaining() == {each.id for each in made[2:]}


def test_the_newest_in_each_storage_stays_however_old(
    make_schedule: MakeSchedule, backup: Backup, storage: Storage, second: Storage
) -> None:
    schedule = make_schedule(keep_days=1)
    old, older = backup(schedule, ago(days=8), storages=[second]), backup(schedule, ago(days=9))
    new = backup(schedule, ago(hours=1))
    prune.prune(schedule)
    assert objects(second) == {str(old.id)}
    assert objects(storage) == {str(new.id)}
    assert older.id not in remaining()


def test_the_only_source_of_a_copy_stays_for_a_week(
    make_schedule: MakeSchedule, backup: Backup, second: Storage
) -> None:
    schedule = make_schedule(keep_last=1)
    source, newest = backup(schedule, ago(days=2)), backup(schedule, ago(days=1))
    pending = {"storage_key": "shop/later.dump", "is_first": False, "next_attempt_at": Now()}
    BackupCopy.objects.create(backup=source, storage=second, state="writing", **pending)
    assert prune.prune(schedule) == 0
    BackupCopy.objects.update(created_at=Now() - timedelta(days=8))
    assert prune.prune(schedule) == 2, "nor can what was never copied be made any more"
    assert remaining() == {newest.id}


# Failed runs -------------------------------------------------------------------------------------


def test_failed_and_cancelled_runs_have_their_own_limit(make_schedule: MakeSchedule, backup: Backup) -> None:
    schedule, other = make_schedule(keep_failed=2), make_schedule("other")
    stays = [
        backup(schedule, ago(days=9)),
        backup(schedule, ago(days=8), status="failed", pinned=True),
        backup(schedule, ago(days=2), status="failed"),
        backup(schedule, ago(days=1), status="cancelled"),
        backup(other, ago(days=9), status="failed"),
        backup(None, ago(days=9), status="failed"),
    ]
    for days in (5, 4, 3):
        backup(schedule, ago(days=days), status="failed")
    assert len(prune.old_failed(schedule)) == 3
    assert prune.prune(schedule) == 3
    assert remaining() == {each.id for each in stays}


def test_the_monitor_is_told_of_a_failed_run_before_it_goes(
    make_schedule: MakeSchedule, backup: Backup
) -> None:
    schedule = make_schedule(keep_failed=0, ping_failure_url="https://monitor.example.com/fail")
    backup(schedule, ago(minutes=1), status="failed")
    backup(schedule, ago(hours=2), status="failed")
    assert prune.prune(schedule) == 1
    assert len(remaining()) == 1


# When --------------------------------------------------------------------------------------------


def test_it_runs_after_each_backup_each_copy_and_once_a_day(
    make_schedule: MakeSchedule, backup: Backup, second: Storage
) -> None:
    schedule = make_schedule(keep_last=1)

    def is_due() -> bool:
        return prune.due().filter(id=schedule.id).exists()

    assert is_due()
    prune.prune_due()
    made = backup(schedule, ago(minutes=2))
    assert not is_due()
    later(hours=1)
    assert is_due()
    prune.prune_due()
    later(seconds=30)
    assert not is_due()
    store(made, second, completed_at=ago(seconds=1))
    assert is_due()
    BackupCopy.objects.update(completed_at=ago(days=3))
    BackupJob.objects.update(completed_at=ago(days=3))
    later(hours=23)
    assert not is_due()
    later(hours=2)
    assert is_due()


def test_trouble_of_one_schedule_stops_no_other(make_schedule: MakeSchedule, backup: Backup) -> None:
    broken, sound = make_schedule("broken", keep_last=1, timezone="Mars/Base"), make_schedule(keep_last=1)
    made = [backup(each, ago(days=days)) for each in (broken, sound) for days in (2, 1)]
    assert prune.prune_due() == 1
    assert "Mars/Base" in str(fresh(broken).retention_error)
    assert remaining() == {made[0].id, made[1].id, made[3].id}
    Schedule.objects.update(timezone="UTC")
    later(minutes=16)
    assert prune.prune_due() == 1
    assert fresh(broken).retention_error is None


def test_it_is_a_duty_of_every_worker(settings: Any) -> None:
    duties = {path: pace for path, pace, _ in settings.UPKEEP_DUTIES}
    for path in ("jobs.deleting.retry", "jobs.trash.empty_due", "schedules.prune.prune_due"):
        assert duties[path] == "slow"
    assert duties["jobs.sweeping.sweep_due"] == "sweeps", "a listing without an end holds up nothing else"


# Pinned in between -------------------------------------------------------------------------------


def test_what_is_pinned_after_the_decision_stays(
    make_schedule: MakeSchedule, backup: Backup, storage: Storage
) -> None:
    schedule = make_schedule(keep_last=1)
    old, _ = backup(schedule, ago(days=2)), backup(schedule, ago(days=1))
    trash.pin(old, True, by=old.user)
    assert deleting.mark_surplus(schedule.id, storage.id, [old.id]) == []
    with pytest.raises(ServiceError, match="is pinned"):
        trash.put(old, by=old.user)
