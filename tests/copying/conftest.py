"""Backups as they lie in a first storage, and others to copy them to."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django.fixtures import Settings

from jobs import ending
from jobs.models import BackupCopy, BackupJob, Database, Storage
from jobs.processors.manifest import as_bytes
from jobs.secrets import seal
from jobs.storage.keys import globals_key, manifest_key, moved_key, object_key
from jobs.storage.local import LocalStore
from jobs.stores import default_storage, store_for
from tests.storage.stores import content

GLOBALS = b"CREATE ROLE app;\n"
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _own_folder(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.BACKUP_FOLDER = tmp_path / "backups"
    settings.SCRATCH_FOLDER = tmp_path / "scratch"
    monkeypatch.setattr("jobs.copying.sources.PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr("jobs.copying.duty.PATIENCE_SECONDS", 0.2)
    ending._ending.clear()


@pytest.fixture
def database(user: User) -> Database:
    url = "postgresql://app:secret@db.example.com/shop"
    return Database.objects.create(user=user, name="shop", sealed_url=seal(url))


@pytest.fixture
def first(db: None) -> Storage:
    return default_storage()


@pytest.fixture
def nas(user: User, tmp_path: Path) -> Storage:
    return Storage.objects.create(user=user, name="nas", kind="folder", folder=str(tmp_path / "nas"))


@pytest.fixture
def other(user: User, tmp_path: Path) -> Storage:
    folder = str(tmp_path / "other")
    return Storage.objects.create(user=user, name="other", kind="folder", folder=folder, prefix="off/site")


MakeBackup = Callable[..., BackupJob]


@pytest.fixture
def stored(database: Database, first: Storage) -> MakeBackup:
    """`stored(data=…, **columns)`: a completed backup with its three objects in the first storage."""

    def make(data: bytes = content(3000), **columns: Any) -> BackupJob:
        job_id = uuid.uuid4()
        key = object_key("", database.name, START, job_id, uuid.uuid4(), "dump")
        sha256 = hashlib.sha256(data).hexdigest()
        manifest = {"job_id": str(job_id), "globals_sha256": hashlib.sha256(GLOBALS).hexdigest(), "é": [1.5]}
        store = store_for(first)
        store.prepare()
        for name, held in ((key, data), (globals_key(key), GLOBALS), (manifest_key(key), as_bytes(manifest))):
            store.put_bytes(name, held)
        same = {"storage_key": key, "size": len(data), "sha256": sha256}
        backup = BackupJob.objects.create(
            id=job_id, user=database.user, database=database, database_name=database.name,
            status="completed", manifest=manifest, started_at=Now(), completed_at=Now(), **same, **columns,
        )  # fmt: skip
        BackupCopy.objects.create(backup=backup, storage=first, state="good", has_globals=True, **same)
        return backup

    return make


def planned(backup: BackupJob, storage: Storage) -> BackupCopy:
    return BackupCopy.objects.create(
        backup=backup,
        storage=storage,
        storage_key=moved_key(backup.storage_key or "", storage.prefix),
        is_first=False,
        next_attempt_at=Now(),
    )


def objects(storage: Storage) -> set[str]:
    return {info.key for info in store_for(storage).list("")}


def read(copy: BackupCopy, suffix: str = "") -> bytes:
    return b"".join(store_for(copy.storage).read(copy.storage_key + suffix))


def file_of(copy: BackupCopy) -> Path:
    """Writable, to be damaged."""
    path = Path(copy.storage.folder or default_folder()) / copy.storage_key
    path.chmod(0o600)
    return path


def default_folder() -> str:
    from django.conf import settings

    return str(settings.BACKUP_FOLDER)


def due(*copies: BackupCopy) -> None:
    """As if their next try, or the end of their lease, had come."""
    BackupCopy.objects.filter(id__in=[copy.id for copy in copies]).update(next_attempt_at=Now())


def assert_good(copy: BackupCopy) -> None:
    copy.refresh_from_db()
    backup = copy.backup
    assert (copy.state, copy.error, copy.attempts) == ("good", None, 0)
    assert (copy.size, copy.sha256) == (backup.size, backup.sha256)
    assert (copy.claim_id, copy.next_attempt_at, copy.upload_token) == (None, None, "")
    assert copy.verified_at is not None
    assert copy.has_globals
    first = backup.copies.get(is_first=True)
    for suffix in ("", ".globals.sql", ".json"):
        assert read(copy, suffix) == read(first, suffix)


def failure(copy: BackupCopy, attempts: int = 1) -> str:
    copy.refresh_from_db()
    assert (copy.state, copy.attempts, copy.claim_id) == ("failed", attempts, None)
    assert copy.next_attempt_at is not None
    assert copy.next_attempt_at > timezone.now()
    return copy.error or ""


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
