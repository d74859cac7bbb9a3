from __future__ import annotations

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from jobs.models import QueuedJob, TimelineLine
from jobs.queue import sql
from jobs.queue.claim import claim
from tests.conftest import Enqueue

pytestmark = pytest.mark.django_db(transaction=True)


def analyse() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE job_queue")


def bulk(first: QueuedJob, count: int) -> None:
    QueuedJob.objects.bulk_create(
        [QueuedJob(id=uuid.uuid4(), queue=first.queue, user=first.user, payload={}) for _ in range(count)]
    )


@pytest.mark.parametrize("known", [1, 2, 5, 50])
@pytest.mark.parametrize("slots", [1, 3])
def test_claims_no_more_than_asked_whatever_the_planner_knows(
    enqueue: Enqueue, known: int, slots: int
) -> None:
    """Statistics of a nearly empty table led a plain subselect to run once per candidate (trap 1)."""
    first = enqueue()
    bulk(first, known - 1)
    analyse()
    bulk(first, 50)
    assert len(claim("backup", slots, "w")) == slots
    assert QueuedJob.objects.filter(status="active").count() == slots


def test_a_claim_fills_in_who_when_and_a_fresh_id(enqueue: Enqueue) -> None:
    job = enqueue(payload={"flags": {"format": "tar"}})
    (taken,) = claim("backup", 5, "host:1:aa")
    row = QueuedJob.objects.get(id=job.id)
    assert (row.status, row.locked_by, row.attempts, row.claim_id) == (
        "active",
        "host:1:aa",
        1,
        taken.claim_id,
    )
    assert row.locked_at == row.heartbeat_at
    assert taken.payload == {"flags": {"format": "tar"}}
    assert (
        TimelineLine.objects.filter(job_id=job.id, event="claimed", worker="host:1:aa", attempt=1).count()
        == 1
    )


def test_oldest_due_first_and_only_of_its_queue(enqueue: Enqueue) -> None:
    now = timezone.now()
    late = enqueue(run_at=now - timedelta(minutes=1))
    early = enqueue(run_at=now - timedelta(hours=1))
    enqueue(run_at=now + timedelta(hours=1))
    enqueue(queue="restore")
    assert [job.id for job in claim("backup", 9, "w")] == [early.id, late.id]


def test_no_slots_claim_nothing(enqueue: Enqueue) -> None:
    enqueue()
    assert claim("backup", 0, "w") == []


def test_eight_claimers_at_once_share_the_jobs_without_overlap(enqueue: Enqueue) -> None:
    bulk(enqueue(), 199)
    taken: list[uuid.UUID] = []
    largest: list[int] = []

    def take(name: str) -> None:
        try:
            while jobs := claim("backup", 7, name):
                taken.extend(job.id for job in jobs)
                largest.append(len(jobs))
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=[f"w{n}"]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 200
    assert max(largest) == 7


def plan(statement: str, parameters: dict[str, str | int]) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}", parameters)
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.fixture
def many_finished(enqueue: Enqueue) -> None:
    first = enqueue()
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO job_queue (id, queue, user_id, payload, status, attempts, max_attempts, stalls,
                completed_at)
            SELECT gen_random_uuid(), 'backup', %s, '{}', 'completed', 1, 1, 0, now() - n * interval '1 s'
            FROM generate_series(1, 20000) AS n""",
            [first.user_id],
        )
    bulk(first, 20)
    claim("backup", 5, "w")
    analyse()


@pytest.mark.usefixtures("many_finished")
def test_claim_reap_and_purge_use_their_partial_indexes() -> None:
    assert "job_queue_claim" in plan(sql.CLAIM, {"queue": "backup", "slots": 5, "worker": "w"})
    assert "job_queue_reap" in plan(sql.STALE, {"stale": 90, "batch": 50})
    assert "job_queue_purge" in plan(sql.PURGE, {"days": 7, "batch": 1000})
