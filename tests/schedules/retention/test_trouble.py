"""Deleting that does not work: told, tried again, and never a reason for anything else to fail."""

from __future__ import annotations

import logging
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

from jobs import deleting, trash
from jobs.models import BackupCopy, BackupJob, Storage
from jobs.models.storage import CopyState
from jobs.processors.stored import of_backup
from jobs.secrets import seal
from jobs.storage.base import FOREVER
from jobs.storage.local import LocalStore
from jobs.storage.s3 import S3Store
from jobs.stores import store_for
from schedules import prune
from schedules.models import Schedule
from schedules.retention import Policy
from tests import s3server
from tests.schedules.conftest import MakeSchedule, ago, clock, fresh
from tests.waiting import until

from .conftest import Backup, content_of, later, objects, remaining

pytestmark = pytest.mark.django_db


def test_a_store_that_is_away_gets_its_deletions_later(
    make_schedule: MakeSchedule,
    backup: Backup,
    s3_storage: Storage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(deleting, "PATIENCE_SECONDS", 0)
    schedule, server = make_schedule(keep_last=1), s3server.shared()
    made = [backup(schedule, ago(days=days), storages=[s3_storage]) for days in (3, 2, 1)]
    server.kill()
    try:
        with caplog.at_level(logging.WARNING):
            assert prune.prune_due() == 0
    finally:
        server.restart()
    assert "the store does not answer" in str(fresh(schedule).retention_error)
    assert "could not delete" in caplog.text
    assert len(remaining()) == 3
    assert b"".join(of_backup(made[2]).read()) == content_of(made[2])
    later(minutes=20)
    assert deleting.retry() == 2
    assert remaining() == {made[2].id}
    prune.prune_due()
    assert fresh(schedule).retention_error is None


def test_a_folder_that_was_replaced_keeps_its_copies(
    make_schedule: MakeSchedule, backup: Backup, storage: Storage
) -> None:
    schedule = make_schedule(keep_last=1)
    old, new = backup(schedule, ago(days=2)), backup(schedule, ago(days=1))
    shutil.move(storage.folder, f"{storage.folder}-elsewhere")
    Path(storage.folder).write_text("a file, by mistake")
    assert prune.prune(schedule) == 0
    assert "could not be deleted, which is tried again" in str(fresh(schedule).retention_error)
    Path(storage.folder).unlink()
    shutil.move(f"{storage.folder}-elsewhere", storage.folder)
    later(minutes=20)
    assert prune.prune_due() == 1
    assert objects(storage) == {str(new.id)}
    assert fresh(schedule).retention_error is None
    assert old.id not in remaining()


def login(storage: Storage, who: s3server.Identity) -> None:
    Storage.objects.filter(id=storage.id).update(
        access_key_id=who.access_key, sealed_secret=seal(who.secret_key)
    )


def test_what_a_storage_refuses_to_delete_stays_good_and_is_tried_with_growing_pauses(
    make_schedule: MakeSchedule, backup: Backup, s3_storage: Storage
) -> None:
    schedule = make_schedule(keep_last=1)
    old, new = (backup(schedule, ago(days=days), storages=[s3_storage]) for days in (2, 1))
    login(s3_storage, s3server.NO_DELETE)
    pauses = []
    for _ in range(3):
        assert prune.prune(schedule) == 0
        copy = old.copies.get()
        pauses.append((copy.next_attempt_at - clock()).total_seconds())  # type: ignore[operator]
        assert copy.state == CopyState.GOOD
        assert "s3:DeleteObject" in str(fresh(schedule).retention_error)
        assert b"".join(of_backup(old).read()) == content_of(old)
        assert prune.prune(schedule) == 0
        assert old.copies.get().attempts == copy.attempts, "it is not due"
        later(seconds=pauses[-1] + 1)
    assert pauses == [pytest.approx(seconds, abs=10) for seconds in (60, 120, 240)]
    (fate,) = (each for each in prune.preview(schedule, Policy(keep_last=1)) if each.backup == old)
    assert fate.delete
    login(s3_storage, s3server.FULL)
    assert prune.prune(schedule) == 1
    assert remaining() == {new.id}
    assert fresh(schedule).retention_error is None


def test_what_could_not_be_deleted_and_is_to_stay_after_all_is_no_trouble_any_more(
    make_schedule: MakeSchedule, backup: Backup, s3_storage: Storage
) -> None:
    schedule = make_schedule(keep_last=1)
    old, _ = (backup(schedule, ago(days=days), storages=[s3_storage]) for days in (2, 1))
    login(s3_storage, s3server.NO_DELETE)
    prune.prune(schedule)
    assert fresh(schedule).retention_error
    Schedule.objects.update(keep_last=2)
    prune.prune(schedule)
    assert fresh(schedule).retention_error is None
    copy = old.copies.get()
    assert (copy.state, copy.error, copy.next_attempt_at) == (CopyState.GOOD, None, None)


def test_a_process_that_stood_still_deletes_nothing_that_is_kept_by_now(
    backup: Backup, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one was told by the storage that it refuses, and somebody took the backup back."""
    kept = backup(None, ago(days=1))

    def meanwhile(*_: object) -> None:
        BackupCopy.objects.update(state=CopyState.GOOD)
        trash.take_back(kept, by=kept.user)

    monkeypatch.setattr(LocalStore, "locked_until", meanwhile)
    trash.for_good(kept, by=kept.user)
    assert objects(storage) == {str(kept.id)}
    assert b"".join(of_backup(kept).read()) == content_of(kept)


# Locks -------------------------------------------------------------------------------------------


@pytest.fixture
def locking(s3_storage: Storage) -> Storage:
    """In a bucket whose objects can be locked."""
    bucket = f"{s3_storage.bucket}-locking"
    s3server.shared().client().create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    Storage.objects.filter(id=s3_storage.id).update(bucket=bucket)
    s3_storage.refresh_from_db()
    return s3_storage


def lock(backup: BackupJob, ends: datetime) -> None:
    copy = backup.copies.get()
    s3server.shared().client().put_object_retention(
        Bucket=copy.storage.bucket,
        Key=copy.storage_key,
        Retention={"Mode": "GOVERNANCE", "RetainUntilDate": ends},
        BypassGovernanceRetention=True,
    )


def test_a_locked_object_is_shown_and_not_tried_before(
    make_schedule: MakeSchedule, backup: Backup, locking: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = make_schedule(keep_last=1)
    old, free, new = (backup(schedule, ago(days=days), storages=[locking]) for days in (3, 2, 1))
    ends = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)
    lock(old, ends)
    assert prune.prune(schedule) == 1
    assert free.id not in remaining()
    copy = old.copies.get()
    assert (copy.state, copy.locked_until, copy.error) == (CopyState.GOOD, ends, None)
    assert fresh(schedule).retention_error is None
    (fate,) = (each for each in prune.preview(schedule, Policy(keep_last=1)) if each.backup == old)
    assert fate.reasons == f"locked until {ends:%Y-%m-%d %H:%M} UTC"
    assert b"".join(of_backup(old).read()) == content_of(old)
    with monkeypatch.context() as patch:
        patch.setattr(S3Store, "locked_until", must_not_be_asked)
        patch.setattr(S3Store, "delete", must_not_be_asked)
        later(days=2.9)
        assert prune.prune_due() == 0
    lock(old, datetime.now(UTC) + timedelta(seconds=2))
    later(days=0.2)
    until_unlocked(locking, copy.storage_key)
    assert prune.prune(schedule) == 1
    assert remaining() == {new.id}


def must_not_be_asked(*_: object) -> None:
    raise AssertionError("the storage was asked before the lock is over")


def until_unlocked(storage: Storage, key: str) -> None:
    store = store_for(storage)
    until(lambda: store.locked_until(key) is None, "the lock is over")


def test_a_legal_hold_has_no_date_and_is_asked_about_each_day(
    make_schedule: MakeSchedule, backup: Backup, locking: Storage
) -> None:
    schedule = make_schedule(keep_last=1)
    old, new = (backup(schedule, ago(days=days), storages=[locking]) for days in (2, 1))
    hold(old, "ON")
    assert prune.prune(schedule) == 0
    assert old.copies.get().locked_until == FOREVER
    (fate,) = (each for each in prune.preview(schedule, Policy(keep_last=1)) if each.backup == old)
    assert fate.reasons == "locked by a legal hold"
    hold(old, "OFF")
    assert prune.prune(schedule) == 0
    later(days=1.1)
    assert prune.prune_due() == 1
    assert remaining() == {new.id}


def hold(backup: BackupJob, status: Literal["ON", "OFF"]) -> None:
    copy = backup.copies.get()
    s3server.shared().client().put_object_legal_hold(
        Bucket=copy.storage.bucket, Key=copy.storage_key, LegalHold={"Status": status}
    )


def test_what_is_locked_waits_in_the_trash(backup: Backup, locking: Storage) -> None:
    deleted = backup(None, ago(days=1), storages=[locking])
    lock(deleted, datetime.now(UTC) + timedelta(days=1))
    assert not trash.for_good(deleted, by=deleted.user)
    assert trash.empty_due() == 0
    assert b"".join(of_backup(deleted).read()) == content_of(deleted)
    trash.take_back(deleted, by=deleted.user)
    assert BackupJob.objects.get().trashed_at is None
