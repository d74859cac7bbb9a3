"""Completed backups of schedules as their workers leave them, with their objects in storages."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Now
from pytest_django.fixtures import Settings

from jobs.models import BackupCopy, BackupJob, Database, Storage
from jobs.models.instance import instance_key
from jobs.storage.keys import globals_key, manifest_key
from jobs.stores import store_for
from schedules.models import Schedule

Backup = Callable[..., BackupJob]


@pytest.fixture(autouse=True)
def _patient(settings: Settings) -> None:
    settings.STORAGE_RETRY_SECONDS = 0


@pytest.fixture
def storage(user: User, tmp_path: Path) -> Storage:
    return folder(user, tmp_path / "nas")


def folder(user: User, path: Path, name: str = "nas") -> Storage:
    path.mkdir()
    return Storage.objects.create(user=user, name=name, kind="folder", folder=str(path))


@pytest.fixture
def backup(database: Database, storage: Storage) -> Backup:
    """`backup(schedule, ago(days=3), status=…, storages=[…], **columns)`: failed ones have no copy."""

    def make(schedule: Schedule | None, at: datetime, **columns: Any) -> BackupJob:
        stored_in = columns.pop("storages", [storage])
        status = columns.setdefault("status", "completed")
        row = {"user": database.user, "database": database, "database_name": database.name} | columns
        row |= {"started_at": at, "completed_at": at, "schedule_id": schedule and schedule.id}
        if status != "completed":
            return _at(at, BackupJob.objects.create(**row))
        made = _at(at, _completed(row))
        for place in stored_in:
            store(made, place)
        return made

    return make


def _completed(row: dict[str, Any]) -> BackupJob:
    job_id = uuid.uuid4()
    content = b"PGDMP of " + job_id.bytes
    stored = {"storage_key": f"shop/{job_id}.dump", "size": len(content)}
    return BackupJob.objects.create(id=job_id, sha256=hashlib.sha256(content).hexdigest(), **stored, **row)


def _at(moment: datetime, backup: BackupJob) -> BackupJob:
    BackupJob.objects.filter(id=backup.id).update(created_at=moment)
    return backup


def store(backup: BackupJob, storage: Storage, **columns: Any) -> BackupCopy:
    """Its three objects, and the row of its copy there."""
    key = str(backup.storage_key)
    place = store_for(storage, retry_seconds=0)
    manifest = {"job_id": str(backup.id), "instance": str(instance_key()), "artifact": {"key": key}}
    place.put_bytes(key, content_of(backup))
    place.put_bytes(globals_key(key), b"-- roles")
    place.put_bytes(manifest_key(key), json.dumps(manifest).encode())
    row = {"is_first": not backup.copies.exists(), "size": backup.size, "sha256": backup.sha256} | columns
    row = {"completed_at": backup.completed_at, "verified_at": Now(), "state": "good"} | row
    return BackupCopy.objects.create(backup=backup, storage=storage, storage_key=key, **row)


def content_of(backup: BackupJob) -> bytes:
    return b"PGDMP of " + backup.id.bytes


def objects(storage: Storage) -> set[str]:
    """The backups whose artifact lies there, by their ids."""
    found = store_for(storage, retry_seconds=0).list("")
    return {Path(info.key).stem for info in found if info.key.endswith(".dump")}


def remaining() -> set[uuid.UUID]:
    return set(BackupJob.objects.values_list("id", flat=True))


def later(**how_long: float) -> None:
    """As if so much time had passed since the last prune and for all that waits."""
    time = timedelta(**how_long)
    Schedule.objects.update(pruned_at=F("pruned_at") - time)
    BackupCopy.objects.update(
        next_attempt_at=F("next_attempt_at") - time, delete_after=F("delete_after") - time
    )
