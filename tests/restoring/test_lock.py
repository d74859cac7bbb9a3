"""One writer at a time on a target, whatever it is and through whichever login; nobody waits in a slot."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.db.models.functions import Now
from django.utils import timezone
from psycopg import sql

from jobs.models import BackupJob, QueuedJob
from jobs.models.history import HISTORY
from jobs.processors.at_target import lock
from jobs.queue.claim import claim
from jobs.restoring import MigrationOrder, enqueue_migration
from jobs.worker.runner import JobRun
from tests import servers
from tests.processors.conftest import Source
from tests.restoring.conftest import Restores, number
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

ORDERS = "CREATE TABLE orders (n int)"
ADD = {"data_only": True}
WAITING = """
SELECT application_name FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'
AND application_name LIKE 'pgbr/%%'
"""


@pytest.fixture
def backup(restores: Restores, shop: Source) -> BackupJob:
    return restores.backups.take(shop.url, {}, name="shop")


@contextmanager
def gate(server: servers.TestServer, name: str) -> Iterator[None]:
    """While inside, whoever wants to write into `orders` waits."""
    with psycopg.connect(server.superuser_url(name)) as holder:
        holder.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        yield


def start(*queues: str) -> list[threading.Thread]:
    """Whatever is due, all at once."""
    runs = [JobRun(job) for queue in queues for job in claim(queue, 50, "tests")]
    threads = [threading.Thread(target=run.run) for run in runs]
    for thread in threads:
        thread.start()
    return threads


def writer(server: servers.TestServer, name: str) -> uuid.UUID:
    """The job that waits at the gate."""

    def found() -> str | None:
        with psycopg.connect(server.superuser_url()) as session:
            row = session.execute(WAITING, [name]).fetchone()
        return row[0] if row else None

    return uuid.UUID(until(found, "a job comes to the gate").removeprefix("pgbr/"))


def assert_waits(job: uuid.UUID, for_job: uuid.UUID) -> None:
    """Handed back with the reason, the attempt refunded, in nobody's slot, and not due at once."""
    until(lambda: QueuedJob.objects.filter(id=job, status="pending").exists(), "it is handed back")
    queued = QueuedJob.objects.get(id=job)
    assert (queued.attempts, queued.stalls, queued.locked_by) == (0, 0, None)
    assert f"job {for_job} is writing into" in (queued.last_error or "")
    assert timedelta(seconds=2) < queued.run_at - timezone.now() < timedelta(seconds=60)
    assert HISTORY[queued.queue].objects.get(id=job).status == "pending"


def finish(*jobs: uuid.UUID) -> None:
    for job in jobs:
        QueuedJob.objects.filter(id=job).update(run_at=Now())
        for thread in start("restore", "migration"):
            thread.join(60)
        queued = QueuedJob.objects.get(id=job)
        assert (queued.status, queued.last_error, queued.attempts) == ("completed", None, 1)


def test_two_into_one_target_take_turns_and_one_into_another_is_not_delayed(
    restores: Restores, shop: Source, backup: BackupJob
) -> None:
    server = servers.get(17)
    name, other = restores.target(server, ORDERS), restores.target(server, ORDERS)
    at = restores.at(server, name)
    together = {restores.order(at, backup, "existing", name, ADD) for _ in range(2)}
    with gate(server, name):
        threads = start("restore")
        first = writer(server, name)
        (second,) = together - {first}
        assert_waits(second, first)
        elsewhere = restores.order(restores.at(server, other), backup, "existing", other, ADD)
        migration = enqueue_migration(MigrationOrder(shop.url, at, "replace", name), by=restores.backups.user)
        threads += start("restore", "migration")
        assert_waits(migration, first)
        until(lambda: QueuedJob.objects.get(id=elsewhere).status == "completed", "the other one is done")
        assert QueuedJob.objects.get(id=first).status == "active"
    for thread in threads:
        thread.join(60)
    finish(first, second)
    assert number(server, name, "SELECT count(*) FROM orders") == 100
    finish(migration)
    assert number(server, name, "SELECT count(*) FROM orders") == 50


@pytest.fixture
def confined(restores: Restores) -> Iterator[str]:
    """A login that may enter no database from which orders are given."""
    server, role = servers.get(17), f"confined {uuid.uuid4().hex[:8]}"
    name = sql.Identifier(role)
    server.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret' IN ROLE app").format(name))
    for place in ("postgres", "template1"):
        # As if it lacked CONNECT there, which can only be taken from all.
        bars = sql.SQL("ALTER ROLE {} IN DATABASE {} SET session_preload_libraries = 'bars'")
        server.execute(bars.format(name, sql.Identifier(place)))
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url(place, role, "secret"))
    yield role
    server.execute(sql.SQL("DROP ROLE {}").format(name))


@pytest.mark.parametrize("confined_first", [True, False])
def test_logins_that_meet_only_in_the_target_itself_take_turns_too(
    restores: Restores, backup: BackupJob, confined: str, confined_first: bool
) -> None:
    server = servers.get(17)
    name = restores.target(server, ORDERS)
    logins = [
        restores.backups.register(server.url(name, confined, "secret")),
        restores.at(server, name),
    ]
    if not confined_first:
        logins.reverse()
    with gate(server, name):
        first = restores.order(logins[0], backup, "existing", name, ADD)
        threads = start("restore")
        assert writer(server, name) == first
        second = restores.order(logins[1], backup, "existing", name, ADD)
        threads += start("restore")
        until(lambda: QueuedJob.objects.filter(id=second, status="pending").exists(), "it is handed back")
        assert "is writing into" in (QueuedJob.objects.get(id=second).last_error or "")
    for thread in threads:
        thread.join(60)
    finish(first, second)
    assert number(server, name, "SELECT count(*) FROM orders") == 100


def test_the_lock_of_a_machine_that_vanished_is_taken_from_it(
    restores: Restores, backup: BackupJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "DESERTED_SECONDS", 0.3)
    server, gone = servers.get(17), uuid.uuid4()
    name = restores.target(server, ORDERS)
    url = server.url("postgres", servers.RESTORER)
    with psycopg.connect(url, autocommit=True, application_name=f"pgbr/{gone}") as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [lock.key_of(name)])
        job = restores.order(restores.at(server, name), backup, "existing", name, ADD)
        time.sleep(0.5)
        for thread in start("restore"):
            thread.join(60)
        assert_waits(job, gone)
        finish(job)
        with pytest.raises(psycopg.OperationalError):
            holder.execute("SELECT 1")


def test_a_migration_that_reads_from_a_target_goes_on_and_one_that_is_over_is_ended(
    restores: Restores, shop: Source, backup: BackupJob
) -> None:
    server = servers.get(17)
    name = restores.target(server, ORDERS)
    at, url = restores.at(server, name), server.url(name, servers.RESTORER)
    migration = enqueue_migration(MigrationOrder(at, shop.url, "replace", name), by=restores.backups.user)
    queued = QueuedJob.objects.filter(id=migration)
    with psycopg.connect(url, autocommit=True, application_name=f"pgbr/{migration}") as reader:
        queued.update(status="active", claim_id=uuid.uuid4(), locked_by="another", heartbeat_at=Now())
        finish(restores.order(at, backup, "existing", name, ADD))
        assert reader.execute("SELECT count(*) FROM orders").fetchone() == (50,)
        queued.update(status="failed", completed_at=Now())
        finish(restores.order(at, backup, "existing", name, ADD))
        with pytest.raises(psycopg.OperationalError):
            reader.execute("SELECT 1")
