"""Restores and migrations as a worker runs them, in this process, and databases to restore into."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
import pytest

from jobs.models import BackupJob, Database, MigrationJob, QueuedJob, RestoreJob, Upload
from jobs.queue.claim import claim
from jobs.restoring import MigrationOrder, RestoreOrder, enqueue_migration, enqueue_restore
from jobs.worker.runner import JobRun
from tests import sample, servers
from tests.processors.conftest import Backups, Source
from tests.processors.conftest import backups as backups
from tests.processors.conftest import folder as folder
from tests.processors.conftest import in_a_thread as in_a_thread
from tests.processors.conftest import make_source as make_source
from tests.processors.conftest import samples as samples
from tests.processors.conftest import shop as shop
from tests.processors.conftest import tool_folders as tool_folders
from tests.processors.conftest import weed as weed


@dataclass
class Restores:
    """Orders restores, runs them, and looks at what has come of it."""

    backups: Backups
    made: list[tuple[servers.TestServer, str]] = field(default_factory=list)

    def name(self, word: str = "copy") -> str:
        return f"{word} {uuid.uuid4().hex[:8]}"

    def at(
        self, server: servers.TestServer, name: str, user: str = servers.RESTORER, **columns: Any
    ) -> Database:
        """A registration of a database that need not exist; its login may create databases."""
        self.made.append((server, name))
        return self.backups.register(server.url(name, user), name=f"at-{uuid.uuid4().hex[:8]}", **columns)

    def target(self, server: servers.TestServer, statements: str = "", name: str = "") -> str:
        """A database that exists; its name."""
        name = name or self.name("target")
        url = server.create_database(name)
        self.made.append((server, name))
        if statements:
            with psycopg.connect(url, autocommit=True) as session:
                session.execute(statements.encode())
        return name

    def order(
        self,
        database: Database,
        source: BackupJob | Upload,
        mode: str,
        name: str,
        flags: Mapping[str, Any] | None = None,
    ) -> uuid.UUID:
        order = RestoreOrder(
            database,
            mode,
            name,
            flags or {},
            backup=source if isinstance(source, BackupJob) else None,
            upload=source if isinstance(source, Upload) else None,
        )
        return enqueue_restore(order, by=self.backups.user)

    def take(self, *arguments: Any, **keywords: Any) -> RestoreJob:
        """The finished row of a restore."""
        return self.finish(self.order(*arguments, **keywords))

    def finish(self, job_id: uuid.UUID) -> RestoreJob:
        self.run("restore").join(120)
        row = RestoreJob.objects.get(id=job_id)
        queued = QueuedJob.objects.get(id=job_id)
        assert (queued.status, queued.last_error) == (row.status, row.error)
        assert row.completed_at is not None, (row.status, queued.last_error)
        return row

    def migrate(self, order: MigrationOrder) -> MigrationJob:
        job_id = enqueue_migration(order, by=self.backups.user)
        self.run("migration").join(120)
        row = MigrationJob.objects.get(id=job_id)
        assert row.completed_at is not None, (row.status, QueuedJob.objects.get(id=job_id).last_error)
        return row

    def run(self, queue: str) -> threading.Thread:
        """Claim what is due and run it."""
        runs = [JobRun(job) for job in claim(queue, 50, "tests")]

        def work() -> None:
            for run in runs:
                run.run()

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def upload(self, content: bytes, name: str = "dump") -> Upload:
        from jobs.uploads import receive

        return receive(self.backups.user, name, iter([content]), len(content))


Row = TypeVar("Row", RestoreJob, MigrationJob)


def completed(row: Row) -> Row:
    assert (row.status, row.error) == ("completed", None)
    return row


def databases(server: servers.TestServer) -> set[str]:
    with psycopg.connect(server.superuser_url(), autocommit=True) as session:
        return {name for (name,) in session.execute("SELECT datname FROM pg_database").fetchall()}


def stray(server: servers.TestServer) -> set[str]:
    """Databases that only exist while one is being restored, of this test's jobs."""
    ours = {job_id.hex for job_id in QueuedJob.objects.values_list("id", flat=True)}
    return {name for name in databases(server) if name.startswith("pgbr_") and name[5:37] in ours}


def number(server: servers.TestServer, name: str, query: str) -> Any:
    with psycopg.connect(server.superuser_url(name), autocommit=True) as session:
        row = session.execute(query.encode()).fetchone()
    return row[0] if row else None


def database_facts(server: servers.TestServer, name: str) -> tuple[object, ...]:
    """What is the database's own: owner, encoding, locale, settings."""
    with psycopg.connect(server.superuser_url(), autocommit=True) as session:
        return (
            session.execute(
                """SELECT pg_get_userbyid(datdba), pg_encoding_to_char(encoding), datcollate, datctype,
            (SELECT setconfig FROM pg_db_role_setting WHERE setdatabase = d.oid AND setrole = 0)
            FROM pg_database d WHERE datname = %s""",
                [name],
            ).fetchone()
            or ()
        )


@dataclass
class Failing:
    """A restore that has to fail, and that nothing is left of: the target as it was, no database of pgbr's,
    an empty scratch folder."""

    restores: Restores
    server: servers.TestServer
    before: str = "CREATE TABLE precious AS SELECT n FROM generate_series(1, 9) AS n"

    def target(self, mode: str) -> str:
        if mode == "new":
            return self.restores.name()
        return self.restores.target(self.server, "" if mode == "empty" else self.before)

    def take(
        self,
        source: BackupJob | Upload,
        mode: str,
        flags: Mapping[str, Any],
        *words: str,
        name: str = "",
        user: str = servers.RESTORER,
    ) -> RestoreJob:
        """The row, whose error holds all of `words`."""
        name = name or self.target(mode)
        at = self.restores.at(self.server, name, user)
        state = self._state(name)
        row = self.restores.take(at, source, mode, name, flags)
        self.require(row, *words)
        assert self._state(name) == state
        return row

    def require(self, row: RestoreJob | MigrationJob, *words: str) -> None:
        assert row.status == "failed", row.warnings
        assert [word for word in words if word not in (row.error or "")] == [], row.error
        assert "defect" not in (row.error or "")
        assert stray(self.server) == set()
        assert self.restores.backups.scratch() == []

    def _state(self, name: str) -> object:
        if name not in databases(self.server):
            return None
        oid = number(self.server, "postgres", f"SELECT oid FROM pg_database WHERE datname = '{name}'")
        return oid, sample.rows(self.server, name)


@pytest.fixture
def failing(restores: Restores) -> Failing:
    return Failing(restores, servers.get(17))


@pytest.fixture
def restores(backups: Backups) -> Iterator[Restores]:
    made = Restores(backups)
    yield made
    for server, name in set(made.made):
        _drop(server, name)


def _drop(server: servers.TestServer, name: str) -> None:
    for found in databases(server):
        if found == name or found.startswith((f"{name}_before_", f"{name}_undone_")):
            server.drop_database(found)


def same(server: servers.TestServer, source: Source, name: str) -> None:
    """The same rows and the same definitions."""
    assert sample.rows(server, name) == sample.rows(source.server, source.name)
    assert sample.definitions(server, name) == sample.definitions(source.server, source.name)
