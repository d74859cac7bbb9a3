"""Rows and objects as a finished backup leaves them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from jobs.models import BackupCopy, BackupJob, Database, Storage
from jobs.secrets import seal
from jobs.storage.keys import globals_key, manifest_key
from jobs.stores import default_storage, store_for

CONTENT = b"PGDMP and so on"
URL = "postgresql://app:secret@db.example.com/shop"


@pytest.fixture(autouse=True)
def _own_folder(settings: Settings, tmp_path: Path) -> None:
    settings.BACKUP_FOLDER = tmp_path / "backups"
    settings.SCRATCH_FOLDER = tmp_path / "scratch"
    settings.STORAGE_RETRY_SECONDS = 1


@pytest.fixture
def database(user: User) -> Database:
    return Database.objects.create(user=user, name="shop", sealed_url=seal(URL))


FinishedBackup = Callable[..., BackupJob]


@pytest.fixture
def finished_backup(database: Database) -> FinishedBackup:
    """A completed backup with its three objects in a storage (the default one)."""

    def make(storage: Storage | None = None, **columns: Any) -> BackupJob:
        storage = storage or default_storage()
        job_id = uuid.uuid4()
        key, digest = f"shop/{job_id}.dump", hashlib.sha256(CONTENT).hexdigest()
        store = store_for(storage)
        store.prepare()
        for name in (key, manifest_key(key), globals_key(key)):
            store.put_bytes(name, CONTENT)
        stored = {"storage_key": key, "size": len(CONTENT), "sha256": digest}
        row = BackupJob.objects.create(
            id=job_id, user=database.user, database=database, database_name=database.name, status="completed",
            **stored, **columns,
        )  # fmt: skip
        BackupCopy.objects.create(backup=row, storage=storage, state="good", has_globals=True, **stored)
        return row

    return make


def keys(storage: Storage) -> list[str]:
    return [info.key for info in store_for(storage).list("")]
