"""Copies without their object, and those that are there again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from jobs.copying.lease import briefly
from jobs.models import BackupCopy, Storage
from jobs.models.storage import CopyState
from jobs.storage.base import ObjectMissing, Store
from jobs.sweeping.report import Swept

GONE = "The object is gone"


def look_for_lost(storage: Storage, store: Store, seen: set[UUID], swept: Swept) -> None:
    """Good copies that were not `seen`: one is lost once the store says so of it. Raises `StoreError`."""
    with briefly():
        good = BackupCopy.objects.filter(storage=storage, state=CopyState.GOOD)
        ids = [each for each in good.values_list("id", flat=True) if each not in seen]
    for copy_id in ids:
        with briefly():
            copy = good.filter(id=copy_id).first()
        if copy is not None and (problem := _problem(store, copy)):
            _lose(copy, problem, swept)


def look_again(storage: Storage, store: Store, swept: Swept) -> None:
    """At those that were lost: a disk may be mounted again. Raises `StoreError`."""
    with briefly():
        copies = list(_lost(storage))
    for copy in copies:
        if _problem(store, copy) is None:
            with briefly():
                found = _lost(storage).filter(id=copy.id).update(state=CopyState.GOOD, error=None)
            if found:
                swept.back.add(copy.storage_key, copy.size or 0, "there again", backup=str(copy.backup_id))


def with_lost() -> QuerySet[BackupCopy, Any]:
    """The storages that have lost something, by their ids."""
    return _all_lost().values("storage_id")


def _lost(storage: Storage) -> QuerySet[BackupCopy]:
    return _all_lost().filter(storage=storage)


def _all_lost() -> QuerySet[BackupCopy]:
    gone = BackupCopy.objects.filter(state=CopyState.FAILED, error__startswith=GONE)
    return gone.filter(size__isnull=False, next_attempt_at=None)


def _lose(copy: BackupCopy, problem: str, swept: Swept) -> None:
    """Not to be copied anew unasked: a disk that is not mounted must not be filled."""
    columns = {"state": CopyState.FAILED, "claim_id": None, "next_attempt_at": None, "error": problem}
    with briefly():
        found = BackupCopy.objects.filter(id=copy.id, state=CopyState.GOOD).update(**columns)
    if found:
        swept.lost.add(copy.storage_key, copy.size or 0, problem, backup=str(copy.backup_id))


def _problem(store: Store, copy: BackupCopy) -> str | None:
    try:
        size = store.stat(copy.storage_key).size
    except ObjectMissing:
        return f"{GONE} from its storage: deleted past pgbr, or a disk that is not mounted."
    if size != copy.size:
        return f"{GONE}: {size} bytes lie there, {copy.size} were stored."
    return None
