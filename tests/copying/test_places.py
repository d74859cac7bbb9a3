"""One place under two names that the rows do not tell to be the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.copying import copy_due
from jobs.models import BackupCopy, BackupJob, Storage
from jobs.storage.keys import moved_key
from jobs.stores import store_for

from .conftest import MakeBackup, assert_good, default_folder, due, failure, objects, planned, read

pytestmark = pytest.mark.django_db


def moved_to(storage: Storage, backup: BackupJob) -> None:
    """Its first copy lies there instead."""
    first, target = backup.copies.get(is_first=True), store_for(storage)
    target.prepare()
    key = moved_key(first.storage_key, storage.prefix)
    for end in ("", ".globals.sql", ".json"):
        target.put_bytes(key + end, read(first, end))
    BackupCopy.objects.filter(id=first.id).update(storage=storage, storage_key=key)


def test_a_folder_in_the_folder_of_another_storage_is_no_second_place(
    stored: MakeBackup, nas: Storage
) -> None:
    backups = Path(default_folder())
    Storage.objects.filter(id=nas.id).update(folder=str(backups.parent), prefix=backups.name)
    nas.refresh_from_db()
    backup = stored()
    copy = planned(backup, nas)
    assert copy.storage_key != backup.storage_key
    copy_due()
    assert "are one place" in failure(copy)
    assert read(backup.copies.get(is_first=True))


@pytest.fixture
def alias(s3_storage: Storage) -> Storage:
    """The same bucket by another name of its server."""
    columns = {name: getattr(s3_storage, name) for name in ("bucket", "access_key_id", "sealed_secret")}
    endpoint = s3_storage.endpoint.replace("127.0.0.1", "localhost")
    return Storage.objects.create(user=s3_storage.user, name="alias", endpoint=endpoint, **columns)


def test_a_bucket_by_another_name_of_its_server_is_no_second_place(
    stored: MakeBackup, s3_storage: Storage, alias: Storage
) -> None:
    backup = stored()
    moved_to(s3_storage, backup)
    copy = planned(backup, alias)
    before = objects(s3_storage)
    copy_due()
    assert "are one place" in failure(copy)
    assert objects(s3_storage) == before


def test_two_copies_in_one_place_are_one(stored: MakeBackup, s3_storage: Storage, alias: Storage) -> None:
    backup = stored()
    one = planned(backup, s3_storage)
    copy_due()
    assert_good(one)
    other = planned(backup, alias)
    copy_due()
    assert "'alias' and the storage 'bucket' are one place" in failure(other)


def test_what_was_found_is_a_copy_where_the_other_place_has_no_such_object(
    stored: MakeBackup, nas: Storage, s3_storage: Storage
) -> None:
    backup = stored()
    copy = planned(backup, s3_storage)
    copy_due()
    assert_good(copy)
    BackupCopy.objects.filter(id=copy.id).update(state="writing", completed_at=None)
    due(copy)
    before = objects(s3_storage)
    copy_due()
    assert_good(copy)
    assert objects(s3_storage) == before
