"""Two storages may be one place under two names. What lies there under both is one object, no second copy:
whoever took it for one would delete the backup with it."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, Storage
from jobs.models.storage import StorageKind
from jobs.storage.base import PROBE_NAME, Store, StoreError
from jobs.stores import store_for

PATIENCE_SECONDS = 5.0


class Foreign(StoreError):
    """Under the copy's key lies something that is not the copy, and that stays."""


@dataclass(frozen=True)
class Place:
    """Where a copy lies, or is to lie."""

    storage: Storage
    key: str

    def is_surely(self, other: Place) -> bool:
        """By what the rows say, without a look."""
        if self.storage.kind == StorageKind.FOLDER == other.storage.kind:
            return _path(self) == _path(other)
        return _bucket(self) == _bucket(other)

    def shows(self, store: Store, key: str) -> bool:
        """Is what is put beside the object `key` in that store found beside this one, too? It may be away for
        good or keep its objects to itself: then it is taken for another place. Raises a transient
        `StoreError`."""
        probe, content = f"{key}{PROBE_NAME}", secrets.token_bytes(16)
        store.put_bytes(probe, content, overwrite=True)
        try:
            mine = store_for(self.storage, retry_seconds=PATIENCE_SECONDS)
            return b"".join(mine.read(f"{self.key}{PROBE_NAME}", 0, len(content) + 1)) == content
        except (StoreError, CannotDecrypt) as error:
            if getattr(error, "transient", False):
                raise
            return False
        finally:
            with suppress(StoreError):
                store.delete(probe)


def one_place(name: str, other: Place) -> Foreign:
    return Foreign(
        f"{name} and the storage {other.storage.name!r} are one place, which has the backup already. "
        "Take one of them out of the schedule, or give it another prefix."
    )


def others(copy: BackupCopy) -> list[Place]:
    """Of the other copies of its backup, whatever their state."""
    rows = BackupCopy.objects.filter(backup_id=copy.backup_id).exclude(id=copy.id).select_related("storage")
    return [Place(row.storage, row.storage_key) for row in rows]


def _path(place: Place) -> Path:
    return Path(place.storage.folder or settings.BACKUP_FOLDER, place.key).resolve()


def _bucket(place: Place) -> tuple[str, str, str, str]:
    row = place.storage
    return row.kind, row.endpoint.rstrip("/").lower(), row.bucket, place.key
