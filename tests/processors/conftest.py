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
from django.db import connection, connections
from pytest_django.fixtures import Settings

from jobs import services
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage
from jobs.queue.claim import claim
from jobs.queue.connections import borrowed
from jobs.secrets import seal
from jobs.stores import default_storage, store_for
from jobs.worker.runner import JobRun
from tests import s3server, sample, servers
from tests.waiting import until

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
        return self.finish(self.order(database, flags, storage))

    def order(
        self, database: Database, flags: Mapping[str, Any] | None = None, storage: Storage | None = None
    ) -> uuid.UUID:
        return services.enqueue_backup(database, flags or {}, by=self.user, storage=storage)

    def finish(self, job_id: uuid.UUID) -> BackupJob:
        """Run what is due; the job's final row, which its queue row agrees with."""
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

    def until_dumping(self, job_id: uuid.UUID) -> None:
        def dumping() -> bool:
            row = BackupJob.objects.filter(id=job_id).first()
            assert row is None or row.status in {"pending", "running"}, row.error
            return row is not None and row.progress is not None

        until(dumping, "the dump says how far it is")

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
    in_a_thread(close_borrowed)


def close_borrowed() -> None:
    with borrowed():
        connection.close()


def in_a_thread(work: Callable[[], object]) -> None:
    """Borrowing a connection takes the thread's own away, which here is the test's."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@pytest.fixture
def folder(backups: Backups) -> Storage:
    """The default storage: a folder of this test's own."""
    return default_storage()


@pytest.fixture
def weed(s3_storage: Storage) -> s3server.S3Server:
    return s3server.shared()


NOISE_BYTES = 12_000_000


@pytest.fixture(scope="session")
def noise(make_source: MakeSource) -> Source:
    """A database of NOISE_BYTES that no codec makes smaller: more than one part of a multipart upload."""
    rows, row = NOISE_BYTES // 10_000, 10_000 // 1_000
    return make_source(
        17,
        f"""CREATE EXTENSION pgcrypto; CREATE TABLE noise (n int, bytes bytea);
        ALTER TABLE noise ALTER bytes SET STORAGE EXTERNAL;
        INSERT INTO noise SELECT n, (SELECT string_agg(gen_random_bytes(1000), '')
        FROM generate_series(1, {row}) AS i WHERE n > 0) FROM generate_series(1, {rows}) AS n""",
    )


Fail = Callable[..., BackupJob]


@pytest.fixture(scope="session")
def shop(make_source: MakeSource) -> Source:
    return make_source(17, "CREATE TABLE orders AS SELECT generate_series(1, 50) AS n")


@pytest.fixture
def fails(backups: Backups, shop: Source) -> Iterator[Fail]:
    """Run the job and see that it failed, saying all of `words`. Around it all, an earlier good backup stays
    as it is, nothing is left behind, and the next job of the same process completes."""
    earlier = backups.take(shop.url, {}, name="earlier")
    artifact, files = backups.artifact(earlier), backups.files()

    def run(job_id: uuid.UUID, *words: str) -> BackupJob:
        row = backups.finish(job_id)
        assert row.status == "failed", row.error
        assert [word for word in words if word not in (row.error or "")] == [], row.error
        assert "defect" not in (row.error or "")
        assert (row.storage_key, row.size, row.sha256) == (None, None, None)
        return row

    yield run
    assert backups.files() == files
    assert backups.scratch() == []
    assert BackupCopy.objects.exclude(backup=earlier).count() == 0
    assert backups.artifact(earlier) == artifact
    backups.assert_whole(backups.take(shop.url, {}, name="next"))


def ordered(
    database: Database, flags: dict[str, Any] | None = None, storage: Storage | None = None
) -> uuid.UUID:
    return services.enqueue_backup(database, flags or {}, by=database.user, storage=storage)
