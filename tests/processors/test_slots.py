"""At most so many dumps at once on one server."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db.models.functions import Now
from django.utils import timezone

from jobs.backoff import pause_while_waiting
from jobs.models import BackupJob, QueuedJob
from jobs.processors import slots
from tests.servers import TestServer
from tests.waiting import until

from .conftest import Backups, Source

# A dump waits at a locked table, what is asked before a dump does not wait at a partitioned one.
DDL = "CREATE TABLE gate (n int) PARTITION BY RANGE (n); CREATE TABLE orders AS SELECT 1 AS n"
WAITS_AT_THE_GATE = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
HOLDERS = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = %s"


@pytest.fixture(scope="module")
def one(make_source: Callable[..., Source]) -> Source:
    return make_source(17, DDL)


@pytest.fixture(scope="module")
def another(make_source: Callable[..., Source]) -> Source:
    return make_source(17, DDL)


@pytest.fixture
def admin(one: Source) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(one.server.superuser_url(), autocommit=True) as session:
        yield session


@contextmanager
def dumping(backups: Backups, source: Source, job_id: uuid.UUID) -> Iterator[None]:
    """While inside, the job's pg_dump is under way; on leaving it is let go on and ends."""
    with psycopg.connect(source.server.superuser_url(source.name)) as holder:
        holder.execute("LOCK TABLE gate IN ACCESS EXCLUSIVE MODE")
        thread = backups.start()
        until(lambda: _waits(source.server, job_id), "pg_dump waits at the gate")
        yield
        holder.commit()
    thread.join(60)


def _waits(server: TestServer, job_id: uuid.UUID) -> bool:
    with psycopg.connect(server.superuser_url()) as session:
        return session.execute(WAITS_AT_THE_GATE, [f"pgbr/{job_id}"]).fetchone() is not None


def due_now(job_id: uuid.UUID) -> None:
    QueuedJob.objects.filter(id=job_id).update(run_at=Now())


def assert_waits(job_id: uuid.UUID, reason: str) -> None:
    """Handed back with the reason, the attempt refunded, and not due at once."""
    queued = QueuedJob.objects.get(id=job_id)
    assert (queued.status, queued.attempts, queued.locked_by) == ("pending", 0, None), queued.last_error
    assert reason in (queued.last_error or "")
    assert timedelta(seconds=2) < queued.run_at - timezone.now() < timedelta(seconds=60)
    assert BackupJob.objects.get(id=job_id).status == "pending"


def test_two_dumps_on_one_server_take_turns_and_another_server_is_not_delayed(
    backups: Backups, one: Source, another: Source, make_source: Callable[..., Source]
) -> None:
    elsewhere = make_source(18, DDL)
    first, second, third = (
        backups.order(backups.register(source.url, max_parallel=1)) for source in (one, another, elsewhere)
    )
    QueuedJob.objects.exclude(id=first).update(run_at=Now() + timedelta(hours=1))
    with dumping(backups, one, first):
        due_now(second)
        due_now(third)
        backups.start().join(60)
        assert BackupJob.objects.get(id=third).status == "completed"
        assert_waits(second, f"1 dump is running on 127.0.0.1:{one.server.port}, at most 1 at once")
        assert BackupJob.objects.get(id=first).status == "running"
    backups.assert_whole(BackupJob.objects.get(id=first))
    due_now(second)
    backups.assert_whole(backups.finish(second))


def test_dumps_without_a_limit_neither_wait_nor_count(backups: Backups, one: Source, another: Source) -> None:
    first = backups.order(backups.register(one.url))
    with dumping(backups, one, first):
        assert backups.take(another.url, {}, max_parallel=1).status == "completed"
        assert backups.take(another.url, {}).status == "completed"


def test_a_lower_limit_counts_the_dumps_of_a_higher_one(
    backups: Backups, one: Source, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("SELECT pg_advisory_lock(%s, 2)", [slots.CLASS])  # the first of two has ended since
    job_id = backups.order(backups.register(one.url, max_parallel=1))
    backups.start().join(60)
    assert_waits(job_id, "1 dump is running")
    assert admin.execute(HOLDERS, [slots.CLASS]).fetchall() == [(admin.info.backend_pid,)]
    backups.assert_whole(backups.take(one.url, {}, max_parallel=2))


def test_a_lock_whose_session_breaks_does_not_harm_the_dump(
    backups: Backups, one: Source, admin: psycopg.Connection[Any]
) -> None:
    job_id = backups.order(backups.register(one.url, max_parallel=1))
    with dumping(backups, one, job_id):
        ((pid,),) = admin.execute(HOLDERS, [slots.CLASS]).fetchall()
        admin.execute("SELECT pg_terminate_backend(%s)", [pid])
        until(lambda: not admin.execute(HOLDERS, [slots.CLASS]).fetchall(), "the lock is gone")
    backups.assert_whole(BackupJob.objects.get(id=job_id))


def test_the_slot_of_an_earlier_claim_of_the_job_is_freed(backups: Backups, one: Source) -> None:
    job_id = backups.order(backups.register(one.url, max_parallel=1))
    zombie = psycopg.connect(one.server.url("postgres"), application_name=f"pgbr/{job_id}")
    zombie.execute("SELECT pg_advisory_lock(%s, 1)", [slots.CLASS])

    def ended() -> bool:
        due_now(job_id)
        backups.start().join(60)
        return QueuedJob.objects.get(id=job_id).status == "completed"

    until(ended, "the job has its slot")
    with pytest.raises(psycopg.OperationalError):
        zombie.execute("SELECT 1")
    zombie.close()


def test_where_all_would_meet_is_closed_to_the_login(
    backups: Backups, one: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "MEETING_PLACE", "no such place")
    row = backups.take(one.url, {}, max_parallel=1)
    backups.assert_whole(row)
    (warning,) = [words for words in row.warnings if "no such place" in words]
    assert f'counted dumps of "{one.name}" alone' in warning
    with psycopg.connect(one.url) as holder:
        holder.execute("SELECT pg_advisory_lock(%s, 1)", [slots.CLASS])
        job_id = backups.order(backups.register(one.url, max_parallel=1))
        backups.start().join(60)
        assert_waits(job_id, "1 dump is running")


@pytest.mark.parametrize(("waited", "pause"), [(-3.0, 5.0), (0.0, 5.0), (300.0, 30.0), (1e9, 60.0)])
def test_the_longer_it_waits_the_less_often_it_asks(waited: float, pause: float) -> None:
    assert pause_while_waiting(timezone.now() - timedelta(seconds=waited)) == pytest.approx(pause, abs=0.5)
