"""Storages in trouble, backups that go in the middle, copiers that meet each other."""

from __future__ import annotations

import tracemalloc
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs import deleting, ending, trash
from jobs.copying import copy_due
from jobs.copying.lease import take
from jobs.models import BackupCopy, BackupJob, Storage
from jobs.storage.base import StoreError
from jobs.storage.local import LocalStore
from jobs.stores import store_for
from tests.at_once import at_once
from tests.storage.stores import content
from tests.waiting import until

from .conftest import MakeBackup, assert_good, due, during, failure, objects, planned

pytestmark = pytest.mark.django_db


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


# Gone meanwhile -----------------------------------------------------------------------------------


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


def test_deleted_for_good_in_the_middle_everything_goes(
    stored: MakeBackup, first: Storage, nas: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = stored(content(3_000_000))
    copy = planned(backup, nas)
    during(monkeypatch, lambda: trash.for_good(backup, by=backup.user))
    assert copy_due() == 0
    due(*backup.copies.all())
    deleting.retry()
    assert (objects(first), objects(nas)) == (set(), set())
    assert not BackupJob.objects.filter(id=backup.id).exists()
    assert not BackupCopy.objects.filter(id=copy.id).exists()


@pytest.mark.parametrize("late", [False, True])
def test_one_that_another_took_over_is_left_to_it(
    stored: MakeBackup, nas: Storage, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """The first one slept past its lease: the second has made the copy when it wakes up."""
    copy, honest = planned(stored(content(3_000_000)), nas), LocalStore.put_bytes
    taken: list[int] = []

    def overtake() -> None:
        monkeypatch.undo()
        due(copy)
        taken.append(copy_due())

    def put(self: LocalStore, key: str, *of: Any, **more: Any) -> None:
        honest(self, key, *of, **more)
        if key.endswith(".json"):
            overtake()

    if late:
        monkeypatch.setattr(LocalStore, "put_bytes", put)
    else:
        during(monkeypatch, overtake)
    assert copy_due() == 0
    assert taken == [1]
    assert_good(copy)
    assert len(objects(nas)) == 3


@pytest.mark.parametrize("told", [True, False])
def test_what_a_killed_copier_has_left_is_cleared_away(
    stored: MakeBackup, nas: Storage, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """Whether or not it came to tell its name; nor does every store list what is unfinished."""
    copy, store = planned(stored(), nas), store_for(nas)
    store.prepare()
    left = store.writer(copy.storage_key)
    left.write(b"half of it")
    if told:
        BackupCopy.objects.filter(id=copy.id).update(upload_token=left.token)
        monkeypatch.setattr(LocalStore, "discard_all", lambda *_: None)
    assert copy_due() == 1
    assert_good(copy)
    assert list(Path(nas.folder).rglob("*.part")) == []


@pytest.mark.django_db(transaction=True)
def test_of_many_copiers_each_copy_is_made_once(stored: MakeBackup, nas: Storage, other: Storage) -> None:
    rows = [planned(backup, storage) for backup in (stored(), stored()) for storage in (nas, other)]
    assert sum(at_once(4, copy_due)) == 4
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


# Connections and memory ---------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_lease_is_renewed_and_no_connection_held_while_bytes_flow(
    stored: MakeBackup, nas: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.copying.lease.RENEW_SECONDS", 0.05)
    copy = planned(stored(content(3_000_000)), nas)
    seen: list[bool] = []

    def wait() -> None:
        seen.append(connection.connection is None)
        due(copy)
        until(lambda: (held := until_of(copy)) and held > timezone.now(), "the lease is renewed")

    during(monkeypatch, wait)
    assert copy_due() == 1
    assert seen == [True]
    assert_good(copy)


def until_of(copy: BackupCopy) -> datetime | None:
    return BackupCopy.objects.values_list("next_attempt_at", flat=True).get(id=copy.id)


def test_memory_stays_flat(stored: MakeBackup, nas: Storage) -> None:
    copy = planned(stored(content(50_000_000)), nas)
    tracemalloc.start()
    assert copy_due() == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    copy.refresh_from_db()
    assert copy.state == "good"
    assert peak < 6_000_000
