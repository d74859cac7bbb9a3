"""Stored artifacts from outside a job: open one, test a storage. For deleting see `jobs.trash`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.auth.models import User
from django.db.models.functions import Now

from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, BackupJob, Storage
from jobs.processors import copies
from jobs.services import NotFound, record
from jobs.storage.base import Store, StoreError
from jobs.stores import store_for, usable_by

PATIENCE_SECONDS = 5.0  # with a store that is away: somebody waits, and holds a thread of the site


def good_copies(backup: BackupJob) -> list[BackupCopy]:
    """The one to read from in front, the others to fall back on. Raises `NotFound` when there is none."""
    found = copies.good(backup)
    if not found:
        raise NotFound(f"Backup {backup.id} has no stored copy.")
    return found


def opened(copy: BackupCopy) -> Store:
    """Raises `CannotDecrypt`."""
    return store_for(copy.storage, retry_seconds=PATIENCE_SECONDS)


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
