"""A copy is whole and verified, or it is not there; why not is written down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from jobs import ending
from jobs.copying import copy_due
from jobs.copying.lease import take
from jobs.models import BackupCopy, BackupJob, Storage
from jobs.processors import copies
from jobs.storage.base import StoreError
from jobs.storage.local import LocalStore
from jobs.storage.s3 import S3Store
from jobs.stores import store_for
from tests.storage.stores import PART, content

from .conftest import GLOBALS, MakeBackup, due, file_of, objects, planned, read

pytestmark = pytest.mark.django_db


def assert_good(copy: BackupCopy) -> None:
    copy.refresh_from_db()
    backup = copy.backup
    assert (copy.state, copy.error, copy.attempts) == ("good", None, 0)
    assert (copy.size, copy.sha256) == (backup.size, backup.sha256)
    assert (copy.claim_id, copy.next_attempt_at, copy.upload_token) == (None, None, "")
    assert copy.verified_at is not None
    first = backup.copies.get(is_first=True)
    for suffix in ("", ".globals.sql", ".json"):
        assert read(copy, suffix) == read(first, suffix)


def failure(copy: BackupCopy, attempts: int = 1) -> str:
    copy.refresh_from_db()
    assert (copy.state, copy.attempts, copy.claim_id) == ("failed", attempts, None)
    assert copy.next_attempt_at is not None
    assert copy.next_attempt_at > timezone.now()
    return copy.error or ""


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


# Sources -----------------------------------------------------------------------------------------


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
    file_of(source).write_bytes(content(100))
    copy_due()
    said = failure(copy)
    assert "No copy of the backup can be read" in said
    assert "100 bytes lie there, 3000 were stored" in said
    assert objects(nas) == set()


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


# What lies there already -------------------------------------------------------------------------


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


def test_an_empty_file_is_nobodys(stored: MakeBackup, nas: Storage) -> None:
    """File systems without hard links: the name was taken, then the worker died."""
    copy, store = planned(stored(), nas), store_for(nas)
    store.prepare()
    store.put_bytes(copy.storage_key, b"")
    assert copy_due() == 1
    assert_good(copy)


# Failures and time -------------------------------------------------------------------------------


def test_a_storage_in_trouble_is_not_tried_for_every_copy_and_holds_up_no_other(
    stored: MakeBackup, nas: Storage, other: Storage
) -> None:
    Path(nas.folder).write_text("in the way")
    backups = [stored() for _ in range(3)]
    away, fine = [planned(b, nas) for b in backups], [planned(b, other) for b in backups]
    assert copy_due() == 3
    for copy in fine:
        assert_good(copy)
    rows = [BackupCopy.objects.get(id=copy.id) for copy in away]
    assert sorted(row.attempts for row in rows) == [0, 0, 1]
    assert {row.state for row in rows} == {"writing", "failed"}
    assert all(str(nas.folder) in (row.error or "") for row in rows)
    assert take() is None
    Path(nas.folder).unlink()
    due(*away)
    assert copy_due() == 3
    for copy in away:
        assert_good(copy)


def test_it_is_tried_for_ever_but_slowly(stored: MakeBackup, nas: Storage) -> None:
    Path(nas.folder).write_text("in the way")
    copy = planned(stored(), nas)
    pauses = []
    for attempt in range(1, 9):
        copy_due()
        failure(copy, attempt)
        assert copy.next_attempt_at is not None
        pauses.append(round((copy.next_attempt_at - timezone.now()).total_seconds(), -1))
        due(copy)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_defect_is_that_copys_trouble_alone(
    stored: MakeBackup, nas: Storage, other: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, honest = stored(), LocalStore.prepare

    def broken(self: LocalStore) -> None:
        if "nas" in self.name:
            raise KeyError("oops")
        honest(self)

    monkeypatch.setattr(LocalStore, "prepare", broken)
    copy, fine = planned(backup, nas), planned(backup, other)
    assert copy_due() == 1
    assert "A defect in pgbr (KeyError: 'oops')" in failure(copy)
    assert_good(fine)


def test_a_worker_that_ends_gives_the_copy_back_at_once(
    stored: MakeBackup, nas: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = planned(stored(content(5_000_000)), nas)
    during(monkeypatch, ending.begin)
    assert copy_due() == 0
    copy.refresh_from_db()
    assert (copy.state, copy.claim_id, copy.attempts, objects(nas)) == ("writing", None, 0, set())
    ending._ending.clear()
    assert copy_due() == 1


# Gone meanwhile ----------------------------------------------------------------------------------


def during(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Do it once, when the first chunk of a source has been read."""
    honest, done = LocalStore.read, list[bool]()

    def read(self: LocalStore, key: str, *of: Any, **more: Any) -> Iterator[bytes]:
        for chunk in honest(self, key, *of, **more):
            yield chunk
            if not done:
                done.append(True)
                act()

    monkeypatch.setattr(LocalStore, "read", read)


def gone(how: str, copy: BackupCopy) -> None:
    if how == "deleted":
        BackupJob.objects.filter(id=copy.backup_id).delete()
    elif how == "trashed":
        BackupJob.objects.filter(id=copy.backup_id).update(trashed_at=timezone.now())
    else:
        BackupCopy.objects.filter(id=copy.id).update(state="deleting")


@pytest.mark.parametrize("how", ["deleted", "trashed", "being deleted"])
@pytest.mark.parametrize("late", [False, True])
def test_a_backup_that_goes_in_the_middle_leaves_no_object(
    stored: MakeBackup, nas: Storage, monkeypatch: pytest.MonkeyPatch, how: str, late: bool
) -> None:
    """`late`: when all bytes were sent and the object is there, but not the verdict."""
    copy = planned(stored(content(3_000_000)), nas)
    if late:
        honest = LocalStore.put_bytes

        def put(self: LocalStore, key: str, *of: Any, **more: Any) -> None:
            honest(self, key, *of, **more)
            gone(how, copy)

        monkeypatch.setattr(LocalStore, "put_bytes", put)
    else:
        during(monkeypatch, lambda: gone(how, copy))
    assert copy_due() == 0
    assert objects(nas) == set()
    assert [path for path in Path(nas.folder).rglob("*") if path.is_file()] == []
    left = BackupCopy.objects.filter(id=copy.id).values_list("state", flat=True)
    assert list(left) == (["deleting"] if how == "being deleted" else [])


def test_one_that_another_took_over_is_left_to_it(
    stored: MakeBackup, nas: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one slept past its lease: the second has made the copy when it wakes up."""
    copy = planned(stored(content(3_000_000)), nas)
    taken = []

    def overtake() -> None:
        due(copy)
        taken.append(copy_due())

    during(monkeypatch, overtake)
    assert copy_due() == 0
    assert taken == [1]
    assert_good(copy)
    assert len(objects(nas)) == 3


@pytest.mark.django_db(transaction=True)
def test_of_many_copiers_each_copy_is_made_once(stored: MakeBackup, nas: Storage, other: Storage) -> None:
    rows = [planned(backup, storage) for backup in (stored(), stored()) for storage in (nas, other)]
    made: list[int] = []

    def copier() -> None:
        made.append(copy_due())
        connections.close_all()

    threads = [threading.Thread(target=copier) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(made) == 4
    for copy in rows:
        assert_good(copy)


def test_a_store_error_while_clearing_away_keeps_the_row(
    stored: MakeBackup, nas: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = planned(stored(), nas)
    honest = LocalStore.put_bytes

    def put(self: LocalStore, key: str, *of: Any, **more: Any) -> None:
        honest(self, key, *of, **more)
        gone("trashed", copy)

    def refuse(self: LocalStore, key: str) -> None:
        raise StoreError("read-only by now")

    monkeypatch.setattr(LocalStore, "put_bytes", put)
    monkeypatch.setattr(LocalStore, "delete", refuse)
    assert copy_due() == 0
    assert BackupCopy.objects.filter(id=copy.id).exists()  # whoever empties the trash finds the objects by it
