"""Artifacts in a storage, with and without rows."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.models import BackupCopy, BackupJob, Storage
from jobs.models.activity import TimelineEvent
from jobs.models.instance import instance_key
from jobs.queue.timeline import note
from jobs.storage.keys import globals_key, manifest_key, object_key
from jobs.stores import store_for

CONTENT = b"PGDMP and so on"
NIGHT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def nas(user: User, tmp_path: Path) -> Storage:
    (tmp_path / "nas").mkdir()
    return Storage.objects.create(user=user, name="nas", kind="folder", folder=str(tmp_path / "nas"))


@dataclass(frozen=True)
class Artifact:
    storage: Storage
    job_id: uuid.UUID
    key: str

    @property
    def is_there(self) -> bool:
        return self.key in keys(self.storage)


def put(storage: Storage, *, age: timedelta = timedelta(days=2), known: bool = True, **told: Any) -> Artifact:
    """An artifact with its manifest, which says what is `told` beyond the truth; no row speaks of it. Its job
    is `known`."""
    job_id = uuid.uuid4()
    key = object_key(storage.prefix, "shop", NIGHT, job_id, uuid.uuid4(), "dump")
    manifest = {"job_id": str(job_id), "instance": str(instance_key()), "artifact": {"key": key}} | told
    store = store_for(storage, retry_seconds=0)
    store.prepare()
    objects = {key: CONTENT, globals_key(key): b"--", manifest_key(key): json.dumps(manifest).encode()}
    for name, content in objects.items():
        store.put_bytes(name, content)
        if storage.folder:
            moment = (datetime.now(UTC) - age).timestamp()
            os.utime(Path(storage.folder) / name, (moment, moment))
    if known:
        note(job_id, TimelineEvent.ENQUEUED)
    return Artifact(storage, job_id, key)


def backup_of(artifact: Artifact, status: str = "completed") -> BackupJob:
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    stored = {"storage_key": artifact.key, "size": len(CONTENT), "sha256": sha256}
    user = artifact.storage.user
    row = {"user": user, "database_name": "shop", "status": status}
    return BackupJob.objects.create(id=artifact.job_id, **row, **stored if status == "completed" else {})


def copy_of(artifact: Artifact, backup: BackupJob | None = None, **columns: Any) -> BackupCopy:
    """A row that speaks of it."""
    row = {"state": "good", "size": len(CONTENT)} | columns
    return BackupCopy.objects.create(
        backup=backup or backup_of(artifact), storage=artifact.storage, storage_key=artifact.key, **row
    )


def keys(storage: Storage) -> list[str]:
    return [info.key for info in store_for(storage, retry_seconds=0).list("")]
