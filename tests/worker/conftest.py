"""A database whose dump takes as long as a test needs, and looking at what is left afterwards."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from jobs import services
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.stores import default_storage, store_for
from tests import s3server, servers
from tests.waiting import until
from tests.worker.paused import shop as shop

DATA_BYTES = 6_000_000  # incompressible


@pytest.fixture(scope="session")
def slow_source() -> Iterator[str]:
    """The URL of a database of 6 MB that no codec makes smaller."""
    server = servers.get(17)
    name = f"slow_{uuid.uuid4().hex[:8]}"
    url = server.create_database(name)
    with psycopg.connect(url) as session:
        session.execute("CREATE TABLE noise (n int, bytes bytea)")
        session.execute("ALTER TABLE noise ALTER bytes SET STORAGE EXTERNAL")
        session.execute(
            """INSERT INTO noise SELECT n, (
                SELECT string_agg(decode(md5(random()::text || n || i), 'hex'), '')
                FROM generate_series(1, 625) AS i
            ) FROM generate_series(1, %s) AS n""",
            [DATA_BYTES // 10_000],
        )
    yield url
    server.drop_database(name)


@dataclass
class SlowBackup:
    """One backup that takes about `seconds`, and what it leaves behind."""

    id: uuid.UUID
    storage: Storage
    before: set[str]

    @property
    def queued(self) -> QueuedJob:
        return QueuedJob.objects.get(id=self.id)

    @property
    def row(self) -> BackupJob:
        return BackupJob.objects.get(id=self.id)

    def wait_until_dumping(self) -> None:
        until(
            lambda: (
                BackupJob.objects.filter(id=self.id, status="running", progress__bytes__gt=0).exists()
                or self.queued.status not in {"pending", "active"}
            ),
            "the dump runs",
        )
        assert self.row.status == "running", self.row.error

    def wait_for(self, status: str, seconds: float = 60) -> None:
        until(lambda: self.queued.status == status, f"the job is {status}", seconds=seconds)

    def objects(self) -> set[str]:
        """Every object that came to the storage since the backup was asked for."""
        return {info.key for info in store_for(self.storage).list("")} - self.before

    def parts(self) -> list[str]:
        """Unfinished writes: part files, or multipart uploads."""
        if self.storage.kind == "s3":
            return s3server.shared().open_uploads(self.storage.bucket)
        return [str(path) for path in Path(settings.BACKUP_FOLDER).rglob("*.part")]

    def stored(self) -> tuple[str, int]:
        """SHA-256 and size of the artifact as it lies in the storage."""
        digest, size = hashlib.sha256(), 0
        for chunk in store_for(self.storage).read(self.row.storage_key or ""):
            digest.update(chunk)
            size += len(chunk)
        return digest.hexdigest(), size

    def assert_whole(self) -> None:
        """Completed with one history row, one good copy and nothing else in the storage."""
        row = self.row
        assert (row.status, row.error) == ("completed", None)
        assert self.stored() == (row.sha256, row.size)
        assert BackupCopy.objects.get(backup_id=self.id).state == "good"
        key = row.storage_key
        assert self.objects() == {key, f"{key}.json", f"{key}.globals.sql"}
        assert self.parts() == []


StartBackup = Callable[..., SlowBackup]


@pytest.fixture
def slow_backup(slow_source: str, make_database: Callable[..., Database]) -> StartBackup:
    """`slow_backup(seconds, storage=None)` enqueues one; `seconds` by way of the bandwidth limit."""

    def start(seconds: float, storage: Storage | None = None) -> SlowBackup:
        number = Database.objects.count()
        database = make_database(
            slow_source, name=f"slow-{number}", bandwidth_limit=int(DATA_BYTES / seconds)
        )
        chosen = storage or default_storage()
        store_for(chosen).prepare()
        before = {info.key for info in store_for(chosen).list("")}
        job_id = services.enqueue_backup(database, {"compress": "none"}, by=database.user, storage=storage)
        return SlowBackup(job_id, chosen, before)

    return start


@pytest.fixture(params=["folder", "s3"])
def storage(request: pytest.FixtureRequest) -> Storage | None:
    """None for the default folder, or a bucket."""
    return request.getfixturevalue("s3_storage") if request.param == "s3" else None
