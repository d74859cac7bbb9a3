"""A copy is whole and verified, or it is not there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs.copying import copy_due
from jobs.copying.lease import take
from jobs.models import BackupCopy, BackupJob, Storage
from jobs.processors import copies
from jobs.storage.local import LocalStore
from jobs.storage.s3 import S3Store
from jobs.stores import store_for
from tests.storage.stores import PART, content

from .conftest import GLOBALS, MakeBackup, assert_good, due, failure, file_of, objects, planned, read

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("size", [1000, 3 * PART])
@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_copy_is_the_same_under_the_other_prefix_with_its_companions(
    stored: MakeBackup, request: pytest.FixtureRequest, kind: str, size: int
) -> None:
    storage = request.getfixturevalue("other" if kind == "folder" else "s3_storage")
    copy = planned(stored(content(size)), storage)
    assert copy_due() == 1
    assert_good(copy)
    assert read(copy, ".globals.sql") == GLOBALS
    assert copy.storage_key.startswith("off/site/shop/2026" if kind == "folder" else "shop/2026")
    assert len(objects(storage)) == 3
    assert copy_due() == 0


def test_from_a_bucket_into_a_folder(stored: MakeBackup, s3_storage: Storage, nas: Storage) -> None:
    backup = stored(content(2 * PART))
    bucket, copy = planned(backup, s3_storage), planned(backup, nas)
    BackupCopy.objects.filter(id=copy.id).update(next_attempt_at=None)
    copy_due()
    file_of(backup.copies.get(is_first=True)).unlink()
    due(copy)
    copy_due()
    copy.refresh_from_db()
    assert copy.state == "good"
    assert read(copy) == read(bucket)


def test_a_folder_is_read_back_and_a_lie_is_found(
    stored: MakeBackup, nas: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, honest = planned(stored(), nas), LocalStore.read

    def lying(self: LocalStore, key: str, *of: Any, **more: Any) -> Iterator[bytes]:
        wrong = "nas" in self.name and key == copy.storage_key
        return iter([b"x" * 3000]) if wrong else honest(self, key, *of, **more)

    monkeypatch.setattr(LocalStore, "read", lying)
    copy_due()
    assert "other bytes came back" in failure(copy)
    assert objects(nas) == set()


def test_a_bucket_whose_etag_proves_it_is_not_read_back(
    stored: MakeBackup, s3_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = planned(stored(content(2 * PART)), s3_storage)
    monkeypatch.setattr(S3Store, "read", None)
    copy_due()
    monkeypatch.undo()
    assert_good(copy)


def test_the_newest_backup_comes_first(stored: MakeBackup, nas: Storage) -> None:
    rows = [planned(stored(), nas) for _ in range(3)]
    hour = timedelta(hours=1)
    for age, copy in zip((2, 0, 1), rows, strict=True):
        BackupJob.objects.filter(id=copy.backup_id).update(completed_at=timezone.now() - age * hour)
    order = [lease.copy_id for _ in range(3) if (lease := take())]
    assert order == [rows[1].id, rows[2].id, rows[0].id]
    assert take() is None


def test_one_take_takes_one(stored: MakeBackup, nas: Storage) -> None:
    """Whatever the planner believes about the table."""
    backup = stored()
    planned(backup, nas)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE backup_copies, backup_jobs")
    for number in range(50):
        backup.storage_key = f"shop/{number}.dump"
        planned(backup, nas)
    assert take() is not None
    assert BackupCopy.objects.filter(claim_id__isnull=False).count() == 1


def test_what_has_no_end_or_is_in_the_trash_is_not_copied(stored: MakeBackup, nas: Storage) -> None:
    planned(stored(trashed_at=timezone.now()), nas)
    planned(BackupJob.objects.create(user=stored().user, status="failed", storage_key="shop/x.dump"), nas)
    assert (copy_due(), Path(nas.folder).exists()) == (0, False)


# Sources ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["truncated", "changed"])
def test_a_damaged_source_is_said_to_be_and_another_good_copy_is_used(
    stored: MakeBackup, first: Storage, nas: Storage, other: Storage, damage: str
) -> None:
    backup = stored()
    good, copy = planned(backup, nas), planned(backup, other)
    BackupCopy.objects.filter(id=copy.id).update(next_attempt_at=None)
    assert copy_due() == 1
    whole = read(good)
    source = backup.copies.get(is_first=True)
    file_of(source).write_bytes(whole[:-1] if damage == "truncated" else b"?" + whole[1:])
    due(copy)
    assert copy_due() == 1
    copy.refresh_from_db()
    assert (copy.state, read(copy)) == ("good", whole)
    source.refresh_from_db()
    assert (source.state, "changed or cut short" in (source.error or "")) == ("failed", True)
    due(source)
    assert copy_due() == 1
    assert_good(source)  # made anew, since its manifest shows whose the damaged one was
    assert read(source) == whole


def test_without_a_whole_source_nothing_is_made_and_the_reason_is_told(
    stored: MakeBackup, nas: Storage
) -> None:
    backup = stored()
    copy, source = planned(backup, nas), backup.copies.get(is_first=True)
    whole = read(source)
    file_of(source).write_bytes(content(100))
    copy_due()
    said = failure(copy)
    assert "No copy of the backup can be read" in said
    assert "100 bytes lie there, 3000 were stored" in said
    assert objects(nas) == set()
    due(copy)
    copy_due()
    assert "no good copy" in failure(copy, 2)
    assert copy.next_attempt_at is not None
    assert copy.next_attempt_at - timezone.now() < timedelta(hours=1)  # the source may be whole after all
    file_of(source).write_bytes(whole)
    due(source, copy)
    assert copy_due() == 2
    assert_good(copy)


def test_a_single_copy_that_was_damaged_is_good_again_once_it_is_whole(stored: MakeBackup) -> None:
    copy = stored().copies.get()
    copies.mark_damaged(copy.id, "a false alarm")
    due(copy)
    assert copy_due() == 1
    assert_good(copy)
    whole = read(copy)
    copies.mark_damaged(copy.id, "a true one")
    file_of(copy).write_bytes(whole[1:])
    due(copy)
    assert copy_due() == 0
    assert "no good copy" in failure(copy)
    assert read(copy) == whole[1:]  # with nothing better at hand it stays
    assert copy.next_attempt_at is not None
    assert copy.next_attempt_at - timezone.now() > timedelta(hours=20)


# What lies there already --------------------------------------------------------------------------


def test_a_whole_object_that_lies_there_is_taken_as_the_copy(stored: MakeBackup, nas: Storage) -> None:
    backup = stored()
    copy, store = planned(backup, nas), store_for(nas)
    store.prepare()
    store.put_bytes(copy.storage_key, content(3000))
    inode = file_of(copy).stat().st_ino
    assert copy_due() == 1
    assert_good(copy)
    assert file_of(copy).stat().st_ino == inode


@pytest.mark.parametrize("beside", [{}, {".json": b"{}"}])
def test_a_strangers_object_stays_and_is_named(
    stored: MakeBackup, nas: Storage, beside: dict[str, bytes]
) -> None:
    copy, store = planned(stored(), nas), store_for(nas)
    store.prepare()
    for suffix, data in ({"": b"somebody's"} | beside).items():
        store.put_bytes(copy.storage_key + suffix, data)
    copy_due()
    assert "nothing shows that pgbr wrote it" in failure(copy)
    assert read(copy) == b"somebody's"
    store.delete(copy.storage_key)
    store.delete(f"{copy.storage_key}.json")
    due(copy)
    assert copy_due() == 1
    assert_good(copy)


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_one_place_under_two_names_is_no_second_copy(
    stored: MakeBackup, first: Storage, nas: Storage, request: pytest.FixtureRequest, kind: str
) -> None:
    """Or whoever deletes the one would delete the other."""
    backup = stored()
    if kind == "s3":
        bucket = request.getfixturevalue("s3_storage")
        planned(backup, bucket)
        assert copy_due() == 1
        same = {"endpoint": f"{bucket.endpoint}/", "bucket": bucket.bucket, "kind": "s3"}
        same |= {"access_key_id": bucket.access_key_id, "sealed_secret": bucket.sealed_secret}
    else:
        Path(nas.folder).symlink_to(first.folder)
        same = {}
    Storage.objects.filter(id=nas.id).update(**same)
    copy = planned(backup, nas)
    assert copy_due() == 0
    assert "are one place" in failure(copy)
    Storage.objects.filter(id=nas.id).update(prefix="again")
    BackupCopy.objects.filter(id=copy.id).update(storage_key=f"again/{copy.storage_key}")
    due(copy)
    assert copy_due() == 1


def test_an_empty_file_is_nobodys(stored: MakeBackup, nas: Storage) -> None:
    """File systems without hard links: the name was taken, then the worker died."""
    copy, store = planned(stored(), nas), store_for(nas)
    store.prepare()
    store.put_bytes(copy.storage_key, b"")
    assert copy_due() == 1
    assert_good(copy)
