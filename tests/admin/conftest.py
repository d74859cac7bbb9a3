"""Two accounts with a database, a stored backup and a waiting job each: what is ada's is not eve's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.models.storage import CopyState, StorageKind
from jobs.secrets import seal
from jobs.services import enqueue_backup
from jobs.storage.keys import globals_key, manifest_key
from jobs.storage.local import LocalStore

BACKEND = "django.contrib.auth.backends.ModelBackend"
PASSWORD = "hunter2-hunter2"
CONTENT = b"0123456789" * 1000


def browser(user: User, **options: Any) -> Client:
    """Logged in as `user`."""
    client = Client(**options)
    client.force_login(user, backend=BACKEND)
    return client


@dataclass
class Belongings:
    """What one account has."""

    user: User
    client: Client
    database: Database
    storage: Storage
    backup: BackupJob
    waiting: QueuedJob

    @property
    def copy(self) -> BackupCopy:
        return self.backup.copies.get()

    def stored(self) -> list[str]:
        return [info.key for info in LocalStore(self.storage.folder).list()]


MakeBelongings = Callable[[User], Belongings]


@pytest.fixture
def belongings_of(tmp_path: Path) -> MakeBelongings:
    def make(user: User) -> Belongings:
        name = user.get_username()
        database = Database.objects.create(
            user=user,
            name=f"shop-{name}",
            sealed_url=seal(f"postgresql://app:{PASSWORD}@db.{name}.test/shop"),
        )
        folder = tmp_path / name
        storage = Storage.objects.create(
            user=user, name=f"store-{name}", kind=StorageKind.FOLDER, folder=str(folder)
        )
        return Belongings(
            user,
            browser(user),
            database,
            storage,
            stored_backup(database, storage),
            QueuedJob.objects.get(id=enqueue_backup(database, {}, by=user)),
        )

    return make


def stored_backup(
    database: Database, storage: Storage, content: bytes = CONTENT, **columns: Any
) -> BackupJob:
    """A completed backup whose artifact, manifest and globals really lie in the storage's folder."""
    sha256, start = hashlib.sha256(content).hexdigest(), Now()
    backup = BackupJob.objects.create(
        user=database.user, database=database, database_name=database.name, status="completed",
        storage_key="pending", size=len(content), sha256=sha256, started_at=start, completed_at=start,
        **columns,
    )  # fmt: skip
    key = f"{database.name}/20260102T030405Z_{database.name}_{backup.id.hex[:8]}-abcd.dump"
    BackupJob.objects.filter(id=backup.id).update(storage_key=key)
    BackupCopy.objects.create(
        backup=backup,
        storage=storage,
        state=CopyState.GOOD,
        storage_key=key,
        size=len(content),
        sha256=sha256,
    )
    store = LocalStore(storage.folder)
    store.prepare()
    store.put_bytes(key, content)
    store.put_bytes(manifest_key(key), b"{}")
    store.put_bytes(globals_key(key), b"--")
    backup.refresh_from_db()
    return backup


@pytest.fixture
def ada(user: User, belongings_of: MakeBelongings) -> Belongings:
    return belongings_of(user)


@pytest.fixture
def eve(other_user: User, belongings_of: MakeBelongings) -> Belongings:
    return belongings_of(other_user)


@pytest.fixture
def root(superuser: User) -> Client:
    return browser(superuser)
