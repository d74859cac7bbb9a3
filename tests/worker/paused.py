"""Restores and migrations that stop in the middle for as long as a test wants; a witness of who writes."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from psycopg import sql

from jobs.models import BackupJob, MigrationJob, QueuedJob, RestoreJob
from jobs.processors.at_target import names
from jobs.restoring import MigrationOrder, enqueue_migration
from tests import sample, servers
from tests.environment import STATE
from tests.processors.conftest import Backups, Source, close_borrowed, in_a_thread
from tests.restoring.conftest import Restores, _drop, databases, number
from tests.waiting import until

# It stops where it is loaded ("load") or indexed ("index"), but not at home, while a role called so exists.
# What comes after it is more than pipes hold, so that pg_dump waits too.
PAUSE = """
CREATE FUNCTION awake() RETURNS bool LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'wake {home}') $$;
CREATE FUNCTION pause(n int, place text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    IF n = 1 AND pg_catalog.current_database() <> '{home}' AND EXISTS (
        SELECT FROM pg_catalog.pg_roles
        WHERE rolname IN (place || ' {home}', place || ' ' || pg_catalog.current_database())
    ) THEN
        WHILE NOT public.awake() LOOP PERFORM pg_catalog.pg_sleep(0.2); END LOOP;
    END IF;
    RETURN n;
END $$;
"""
GOODS = f"""{PAUSE}
CREATE TABLE goods (id int PRIMARY KEY CHECK (pause(id, 'load') = id), name text);
INSERT INTO goods SELECT n, md5(n::text) FROM generate_series(1, 3000) AS n;
CREATE INDEX waits ON goods (pause(id, 'index'));
CREATE TABLE notes AS SELECT n % 1200 AS n, string_agg(md5(n::text), '') AS text
    FROM generate_series(1, 100000) AS n GROUP BY n % 1200;
"""
# To be loaded into, where it stops with the others.
TABLES = f"""{PAUSE}
CREATE TABLE goods (id int PRIMARY KEY CHECK (pause(id, 'index') = id), name text);
CREATE TABLE notes (n int, text text);
"""
GOODS_BYTES = 3_300_000
EVER = datetime(2000, 1, 1, tzinfo=UTC)
BEFORE = "CREATE TABLE old AS SELECT 1 AS n"
ACTIVITY = """
SELECT application_name, pid, backend_start, datname, state, wait_event, query FROM pg_stat_activity
WHERE application_name = ANY(%s) AND datname IS DISTINCT FROM %s AND backend_type = 'client backend'
"""
WRITES = ("COPY ", "CREATE ", "ALTER ", "DROP ", "INSERT ")


@dataclass(frozen=True)
class Session:
    job: uuid.UUID
    pid: int
    since: datetime
    database: str
    state: str
    waits_for: str | None
    query: str

    @property
    def writes(self) -> bool:
        """Or has just written: a look every few milliseconds misses most statements."""
        return self.query.lstrip().upper().startswith(WRITES)


@dataclass
class Shop:
    """The source, its backup, and the switches for the pause. `jobs`: id -> the database it writes into."""

    server: servers.TestServer
    restores: Restores
    source: Source
    backup: BackupJob
    jobs: dict[uuid.UUID, str] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)

    @cached_property
    def content(self) -> dict[str, tuple[Any, ...]]:
        return sample.rows(self.server, self.source.name)

    def rows(self, name: str) -> dict[str, tuple[Any, ...]]:
        return sample.rows(self.server, name)

    # Jobs ----------------------------------------------------------------------------------------

    def restore(
        self,
        mode: str,
        flags: Mapping[str, Any] | None = None,
        statements: str = "",
        *,
        url: str = "",
    ) -> uuid.UUID:
        name = self.place(mode, statements)
        target = self.restores.backups.register(url or self.server.url(name, servers.RESTORER))
        job = self.restores.order(target, self.backup, mode, name, flags)
        self.jobs[job] = name
        return job

    def migrate(self, mode: str, statements: str = "", *, port: int | None = None) -> uuid.UUID:
        """`port`: another one that leads to the source's server."""
        name = self.place(mode, statements)
        target = self.server.url(name, servers.RESTORER)
        source = self.server.url(self.source.name, servers.RESTORER)
        source = source.replace(f":{self.server.port}/", f":{port or self.server.port}/")
        order = MigrationOrder(source, target, mode, name)
        job = enqueue_migration(order, by=self.restores.backups.user)
        self.jobs[job] = name
        return job

    def place(self, mode: str, statements: str) -> str:
        if mode == "new":
            name = self.restores.name()
            self.restores.made.append((self.server, name))
            return name
        return self.restores.target(self.server, statements.replace("{home}", self.source.name))

    def queued(self, job: uuid.UUID) -> QueuedJob:
        return QueuedJob.objects.get(id=job)

    def row(self, job: uuid.UUID) -> RestoreJob | MigrationJob:
        found = RestoreJob.objects.filter(id=job).first() or MigrationJob.objects.filter(id=job).first()
        assert found is not None
        return found

    def wait_for(self, status: str, *jobs: uuid.UUID, seconds: float = 60) -> None:
        """The rows of all these jobs (default: of all) say so; fails at once when one ends otherwise."""

        wanted = jobs or tuple(self.jobs)

        def others() -> list[tuple[str, str, str, str | None]]:
            found = QueuedJob.objects.filter(id__in=wanted).exclude(status=status)
            rows = [(one.payload["mode"], self.jobs[one.id], one.status, one.last_error) for one in found]
            assert not [row for row in rows if row[2] not in {"pending", "active"}], rows
            return rows

        try:
            until(lambda: not others(), f"the jobs are {status}", seconds=seconds)
        except AssertionError as error:
            raise AssertionError(others()) from error

    # The pause -----------------------------------------------------------------------------------

    def hold(self, place: str, name: str = "") -> None:
        """Whoever comes to that place from now on; with `name` only in that database."""
        self.held.append(f"{place} {name or self.source.name}")
        self.server.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(self.held[-1])))

    def release(self) -> None:
        """Nobody stops any more; who sleeps goes on sleeping."""
        while self.held:
            self.server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(self.held.pop())))

    def wake(self) -> None:
        """Those who sleep go on."""
        self.hold("wake")

    def wait_until_paused(self, *jobs: uuid.UUID) -> None:
        def all_paused() -> bool:
            for queued in QueuedJob.objects.filter(id__in=jobs or self.jobs):
                assert not queued.completed_at, (self.jobs[queued.id], queued.last_error)
            return all(self.sleepers(job) for job in jobs or self.jobs)

        until(all_paused, "the restores are in the middle", seconds=60)

    def sleepers(self, job: uuid.UUID, since: datetime = EVER) -> list[Session]:
        found = self.sessions(job)
        return [session for session in found if session.waits_for == "PgSleep" and session.since >= since]

    def end_sessions(self, job: uuid.UUID, of: str = "true") -> None:
        """Of both sides, as somebody at the server would; `of` is a condition on pg_stat_activity."""
        with self.watch() as session:
            ended = session.execute(
                f"""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE application_name = %s AND {of}""",
                [f"pgbr/{job}"],
            ).fetchall()
        assert ended

    def sessions(self, job: uuid.UUID) -> list[Session]:
        """The job's own on the target's side, whoever holds the job."""
        with self.watch() as session:
            return _sessions(session, [job], self.source.name)

    @contextmanager
    def watch(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with psycopg.connect(self.server.superuser_url(), autocommit=True) as session:
            yield session

    def now(self) -> datetime:
        found = number(self.server, "postgres", "SELECT clock_timestamp()")
        assert isinstance(found, datetime)
        return found

    def temporary(self) -> set[str]:
        """Databases that only exist while these jobs restore."""
        prefixes = tuple(names.temporary_prefix(job) for job in self.jobs)
        return {name for name in databases(self.server) if name.startswith(prefixes)}

    def state(self) -> dict[str, Any]:
        """Every target's content, None where there is none."""
        there = databases(self.server)
        return {name: self.rows(name) if name in there else None for name in self.jobs.values()}

    def no_sessions(self) -> bool:
        return not any(self.sessions(job) for job in self.jobs)


@pytest.fixture
def shop(transactional_db: None, user: User) -> Iterator[Shop]:
    with opened(servers.get(17), user) as shop:
        yield shop


@contextmanager
def opened(server: servers.TestServer, user: User) -> Iterator[Shop]:
    """A shop with a backup of it; nothing of it is on the server afterwards."""
    restores = Restores(Backups(user, STATE))
    home = f"goods {uuid.uuid4().hex[:8]}"
    url = sample.make(server, home, GOODS.replace("{home}", home))
    restores.made.append((server, home))
    backup = restores.backups.take(url, {"compress": "none"}, name=home)
    assert (backup.status, backup.error) == ("completed", None)
    shop = Shop(server, restores, Source(server, home, url), backup)
    try:
        yield shop
    finally:
        in_a_thread(close_borrowed)
        shop.release()
        for name in shop.temporary():
            server.drop_database(name)
        for _, name in restores.made:
            _drop(server, name)


class Witness:
    """Looks at the jobs' sessions all the time; `trouble` tells where a session of before was still there
    when a newer one wrote."""

    def __init__(self, shop: Shop, mark: datetime) -> None:
        self._shop = shop
        self.mark = mark
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.trouble: set[str] = set()
        self.writers: set[uuid.UUID] = set()

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        with self._shop.watch() as session:
            while not self._done.wait(0.002):
                found = _sessions(session, self._shop.jobs, self._shop.source.name)
                old = {one.job: one for one in found if one.since < self.mark}
                for one in found:
                    if one.since >= self.mark and one.writes:
                        self.writers.add(one.job)
                        if one.job in old:
                            self.trouble.add(f"{old[one.job].query} beside {one.query}")


def _sessions(session: psycopg.Connection[Any], jobs: Iterable[uuid.UUID], source: str) -> list[Session]:
    found = session.execute(ACTIVITY, [[f"pgbr/{job}" for job in jobs], source]).fetchall()
    return [
        Session(uuid.UUID(name[5:]), pid, since, database or "", state or "", waits, query)
        for name, pid, since, database, state, waits, query in found
    ]
