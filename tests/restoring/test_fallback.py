"""Any good copy will do: one that is away or damaged is passed over as long as nothing was touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db.models.functions import Now

from jobs.copying import copy_due
from jobs.models import BackupCopy, BackupJob, RestoreJob, Storage
from jobs.processors.stored import Changed, all_of, globals_of
from jobs.restoring import contents_of
from jobs.storage.keys import moved_key
from tests import sample, servers
from tests.processors.conftest import Backups, Source

from .conftest import Restores, completed

STREAMED: dict[str, object] = {"jobs": 1}
STAGED: dict[str, object] = {"jobs": 2}


@pytest.fixture
def other(backups: Backups) -> Storage:
    folder = str(backups.root / "other")
    return Storage.objects.create(user=backups.user, name="other", kind="folder", folder=folder)


@pytest.fixture
def backup(backups: Backups, shop: Source, other: Storage) -> BackupJob:
    """With two copies; the first is the one that is read."""
    row = backups.take(shop.url, {"compress": "none"})
    key = moved_key(row.storage_key or "", other.prefix)
    BackupCopy.objects.create(
        backup=row, storage=other, storage_key=key, is_first=False, next_attempt_at=Now()
    )
    assert copy_due() == 1
    return row


def first(backup: BackupJob) -> BackupCopy:
    return backup.copies.select_related("storage").get(is_first=True)


def path_of(copy: BackupCopy) -> Path:
    path = Path(copy.storage.folder, copy.storage_key)
    path.chmod(0o600)
    return path


def change_the_head(path: Path) -> None:
    path.write_bytes(b"?" + path.read_bytes()[1:])


def change_a_row(path: Path) -> None:
    content = path.read_bytes()
    assert content.count(b"\x0049\n") == 1
    path.write_bytes(content.replace(b"\x0049\n", b"\x0048\n"))


def restore(restores: Restores, backup: BackupJob, flags: dict[str, object]) -> RestoreJob:
    name = restores.name()
    return restores.take(restores.at(servers.get(17), name), backup, "new", name, flags)


def assert_restored(row: RestoreJob, shop: Source) -> None:
    completed(row)
    assert sample.rows(servers.get(17), row.target_name) == sample.rows(shop.server, shop.name)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: os.truncate(path, 100), change_the_head])
def test_one_that_cannot_be_read_is_passed_over_with_a_warning(
    restores: Restores, backup: BackupJob, shop: Source, damage: Callable[[Path], None]
) -> None:
    damage(path_of(first(backup)))
    assert contents_of(backup, by=backup.user).format == "custom"
    row = restore(restores, backup, STREAMED)
    assert_restored(row, shop)
    assert any("'local folder'" in warning and "cannot be read" in warning for warning in row.warnings)


def test_of_a_staged_restore_one_that_is_not_what_was_stored_is_passed_over(
    restores: Restores, backup: BackupJob, shop: Source
) -> None:
    change_a_row(path_of(first(backup)))
    row = restore(restores, backup, STAGED)
    assert_restored(row, shop)
    assert any("is not what was stored" in warning for warning in row.warnings)
    assert first(backup).state == "failed"


def test_one_found_damaged_while_it_streams_is_not_taken_again(
    restores: Restores, backup: BackupJob, shop: Source
) -> None:
    change_a_row(path_of(first(backup)))
    failed = restore(restores, backup, STREAMED)
    assert failed.status == "failed"
    assert "is not what was stored" in (failed.error or "")
    assert first(backup).state == "failed"
    assert_restored(restore(restores, backup, STREAMED), shop)
    BackupCopy.objects.filter(backup=backup).update(next_attempt_at=Now())
    assert copy_due() == 1  # made anew from the other one
    assert first(backup).state == "good"


def test_the_roles_come_from_the_copy_that_has_them_as_they_were_stored(backup: BackupJob) -> None:
    stored = all_of(backup)
    whole = stored[0].globals_sql()
    path = path_of(first(backup))
    path.with_name(f"{path.name}.globals.sql").write_text("-- others")
    with pytest.raises(Changed, match="the roles are not created"):
        stored[0].globals_sql()
    assert globals_of(stored) == whole


def test_with_no_copy_left_the_reasons_are_told(restores: Restores, backup: BackupJob) -> None:
    for copy in backup.copies.select_related("storage"):
        path_of(copy).unlink()
    row = restore(restores, backup, STREAMED)
    assert row.status == "failed"
    assert f"No copy of the backup {backup.id} can be read" in (row.error or "")
