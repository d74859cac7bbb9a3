"""Stored artifacts from outside a job: open, delete, test a storage."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, BackupJob, QueuedJob, Storage
from jobs.models.storage import CopyState
from jobs.services import NotFound, ServiceError, record, visible_to
from jobs.storage.base import Store, StoreError
from jobs.storage.keys import globals_key, manifest_key
from jobs.stores import store_for, usable_by

PATIENCE_SECONDS = 5.0  # with a store that is away: somebody waits, and holds a thread of the site


def first_good_copy(backup: BackupJob) -> tuple[Store, BackupCopy]:
    """The copy to read from, the oldest good one. Raises `NotFound`."""
    copy = backup.copies.filter(state=CopyState.GOOD).select_related("storage").order_by("created_at").first()
    if copy is None:
        raise NotFound(f"Backup {backup.id} has no stored copy.")
    return store_for(copy.storage, retry_seconds=PATIENCE_SECONDS), copy


def delete_backup(backup: BackupJob, *, by: User) -> None:
    """Delete every copy's objects, then the history. Raises `NotFound`, or `ServiceError`, having kept the
    row and its remaining copies, when the backup runs, is pinned, or a storage does not delete."""
    if not visible_to(by, BackupJob.objects.filter(id=backup.id)).exists():
        raise NotFound(f"There is no backup {backup.id}.")
    if QueuedJob.objects.filter(id=backup.id, status__in=["pending", "active"]).exists():
        raise ServiceError(f"Backup {backup.id} has not ended yet: cancel it first.")
    if backup.pinned:
        raise ServiceError(f"Backup {backup.id} of {backup.database_name!r} is pinned: unpin it first.")
    for copy in backup.copies.select_related("storage"):
        _delete_copy(copy)
    with transaction.atomic():
        record(by, "delete", backup, database=backup.database_name, storage_key=backup.storage_key)
        backup.delete()


def _delete_copy(copy: BackupCopy) -> None:
    """The manifest goes last: while it is there, what is left can still be told."""
    BackupCopy.objects.filter(id=copy.id).update(state=CopyState.DELETING)
    try:
        store = store_for(copy.storage)
        store.discard(copy.storage_key, copy.upload_token)
        for key in (copy.storage_key, globals_key(copy.storage_key), manifest_key(copy.storage_key)):
            store.delete(key)
    except (StoreError, CannotDecrypt) as error:
        state = copy.state if _is_whole(copy) else CopyState.DELETING
        BackupCopy.objects.filter(id=copy.id).update(state=state, error=str(error))
        raise ServiceError(f"The copy in {copy.storage.name!r} could not be deleted: {error}") from error
    copy.delete()


def _is_whole(copy: BackupCopy) -> bool:
    """Is it still there, so that it can be restored from? A storage that never deletes keeps it."""
    try:
        return store_for(copy.storage).stat(copy.storage_key).size == copy.size
    except (StoreError, CannotDecrypt):
        return False


def probe_storage(storage: Storage, *, by: User) -> dict[str, Any]:
    """Try put, get, list and delete: each None or the reason why not; kept in the row. Raises `NotFound`."""
    if not (by.is_superuser or usable_by(by).filter(id=storage.id).exists()):
        raise NotFound(f"No storage is called {storage.name!r}.")
    try:
        store = store_for(storage, retry_seconds=PATIENCE_SECONDS)
        store.prepare()
        result: dict[str, Any] = asdict(store.probe(storage.prefix))
    except (StoreError, CannotDecrypt) as error:
        result = dict.fromkeys(("put", "get", "list", "delete"), str(error))
    Storage.objects.filter(id=storage.id).update(test_result=result, tested_at=Now())
    record(by, "test", storage)
    return result
