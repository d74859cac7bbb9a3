"""Backups as a worker runs them, but in this process, and databases to back up."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django.fixtures import Settings

from jobs import services
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.queue.claim import claim
from jobs.queue.connections import borrowed
from jobs.secrets import seal
from jobs.stores import default_storage, store_for
from jobs.worker.runner import JobRun
from tests import s3server, sample, servers

from .restoring import toolset


@pytest.fixture(scope="session")
def tool_folders() -> list[str]:
    return [str(toolset(major).bin) for major in servers.MAJORS]


@dataclass(frozen=True)
class Source:
    """A database to back up; `name` as its server knows it."""

    server: servers.TestServer
    name: str
    url: str


MakeSource = Callable[..., Source]


@pytest.fixture(scope="session")
def make_source() -> Iterator[MakeSource]:
    """`make_source(major, statements=…)`: an empty database if no statements are given."""
    made: list[Source] = []

    def make(major: int = 17, statements: str = "", name: str = "") -> Source:
        server = servers.get(major)
        name = f"{name or 'source'} {uuid.uuid4().hex[:8]}"
        made.append(Source(server, name, sample.make(server, name, statements or "SELECT 1")))
        return made[-1]

    yield make
    for source in made:
        source.server.drop_database(source.name)


@pytest.fixture(scope="session")
def samples(make_source: MakeSource) -> Callable[[int], Source]:
    """The sample database of a major, made once; tests leave it as it is."""
    made: dict[int, Source] = {}

    def get(major: int) -> Source:
        if major not in made:
            made[major] = make_source(major, sample.DDL, "-Samplé \"'\\")
        return made[major]

    return get


@dataclass
class Backups:
    """Enqueues, runs in a thread of this process as a worker does, and tells what has come of it."""

    user: User
    root: Path
    runs: list[JobRun] = field(default_factory=list)

    def register(self, url: str, name: str = "", **columns: Any) -> Database:
        name = name or f"shop-{Database.objects.count()}"
        return Database.objects.create(user=self.user, name=name, sealed_url=seal(url), **columns)

    def take(
        self, url: str, flags: Mapping[str, Any], storage: Storage | None = None, **columns: Any
    ) -> BackupJob:
        """The finished row of a backup of a database that is registered for it."""
        return self.of(self.register(url, **columns), flags, storage)

    def of(self, database: Database, flags: Mapping[str, Any], storage: Storage | None = None) -> BackupJob:
        job_id = services.enqueue_backup(database, flags, by=self.user, storage=storage)
        return self.finish(job_id)

    def finish(self, job_id: uuid.UUID) -> BackupJob:
        self.start().join(120)
        queued, row = QueuedJob.objects.get(id=job_id), BackupJob.objects.get(id=job_id)
        assert (queued.status, queued.last_error) == (row.status, row.error)
        assert row.completed_at is not None, row.status
        return row

    def start(self) -> threading.Thread:
        """Claim what is due and run it."""
        runs = [JobRun(job) for job in claim("backup", 50, "tests")]
        self.runs += runs

        def work() -> None:
            for run in runs:
                run.run()

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def artifact(self, row: BackupJob) -> bytes:
        return self.read(row, row.storage_key or "")

    def read(self, row: BackupJob, key: str) -> bytes:
        copy = BackupCopy.objects.select_related("storage").get(backup=row)
        return b"".join(store_for(copy.storage).read(key))

    def scratch(self) -> list[str]:
        return [path.name for path in (self.root / "scratch").glob("*")]

    def files(self) -> set[str]:
        """Everything in the default folder, unfinished writes too."""
        found = (self.root / "backups").rglob("*")
        return {str(path.relative_to(self.root / "backups")) for path in found if path.is_file()}

    def assert_whole(self, row: BackupJob) -> None:
        """Completed, and artifact, manifest and globals are the only objects of its storage that it left."""
        assert (row.status, row.error) == ("completed", None)
        copy = BackupCopy.objects.select_related("storage").get(backup=row)
        assert (copy.state, copy.size, copy.sha256) == ("good", row.size, row.sha256)
        found = {info.key for info in store_for(copy.storage).list("") if str(row.id)[:8] in info.key}
        expected = {row.storage_key, f"{row.storage_key}.json"}
        assert found == (expected | {f"{row.storage_key}.globals.sql"} if copy.has_globals else expected)
        assert self.scratch() == []


@pytest.fixture
def backups(
    transactional_db: None, user: User, settings: Settings, tmp_path: Path, tool_folders: list[str]
) -> Iterator[Backups]:
    settings.PGBR_PG_BIN = tool_folders
    settings.BACKUP_FOLDER = tmp_path / "backups"
    settings.SCRATCH_FOLDER = tmp_path / "scratch"
    settings.STORAGE_RETRY_SECONDS = 20
    yield Backups(user, tmp_path)
    in_a_thread(_close_borrowed)


def _close_borrowed() -> None:
    with borrowed():
        connection.close()


def in_a_thread(work: Callable[[], object]) -> None:
    """Borrowing a connection takes the thread's own away, which here is the test's."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.fixture
def folder(backups: Backups) -> Storage:
    """The default storage: a folder of this test's own."""
    return default_storage()


@pytest.fixture
def weed(s3_storage: Storage) -> s3server.S3Server:
    return s3server.shared()
