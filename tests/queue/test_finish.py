from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest
from django.contrib.auth.models import User

from jobs.models import BackupJob, QueuedJob, RestoreJob, TimelineLine
from jobs.queue import finish
from jobs.queue.claim import claim
from jobs.queue.heartbeat import beat
from jobs.queue.rows import AlreadyEnded, ClaimLost, Job
from tests.conftest import Enqueue
from tests.processors_for_tests import STORED
from tests.workers import database_url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job(enqueue: Enqueue) -> Job:
    enqueue(payload={"database_name": "shop", "flags": {"format": "tar"}})
    return claim("backup", 1, "w")[0]


def both(job: Job) -> tuple[str, str]:
    return QueuedJob.objects.get(id=job.id).status, BackupJob.objects.get(id=job.id).status


def test_the_history_row_is_there_before_the_work(job: Job, user: User) -> None:
    finish.start(job)
    row = BackupJob.objects.get(id=job.id)
    assert (row.status, row.user, row.database_name, row.flags) == (
        "running",
        user,
        "shop",
        {"format": "tar"},
    )
    assert row.started_at is not None


def test_completion_writes_both_rows(job: Job) -> None:
    finish.start(job)
    finish.complete(job, **STORED)
    assert both(job) == ("completed", "completed")
    assert BackupJob.objects.get(id=job.id).completed_at is not None


def test_failure_writes_both_rows_and_the_reason(job: Job) -> None:
    finish.start(job)
    finish.fail(job, "the disk is full", log="pg_dump: …")
    assert both(job) == ("failed", "failed")
    assert (
        QueuedJob.objects.get(id=job.id).last_error
        == BackupJob.objects.get(id=job.id).error
        == "the disk is full"
    )


def test_a_failure_with_attempts_left_waits_longer_each_time(enqueue: Enqueue) -> None:
    row = enqueue(max_attempts=3)
    waits = []
    for _ in range(2):
        QueuedJob.objects.filter(id=row.id).update(run_at=row.created_at)
        (job,) = claim("backup", 1, "w")
        finish.start(job)
        finish.fail(job, "no route")
        queued = QueuedJob.objects.get(id=row.id)
        assert (queued.status, BackupJob.objects.get(id=row.id).status) == ("pending", "pending")
        waits.append((queued.run_at - queued.created_at).total_seconds())
    assert 29 < waits[0] < 100 < waits[1]
    QueuedJob.objects.filter(id=row.id).update(run_at=row.created_at)
    finish.fail(claim("backup", 1, "w")[0], "no route")
    assert QueuedJob.objects.get(id=row.id).status == "failed"


def test_handing_back_refunds_the_attempt_and_resets_the_history(job: Job) -> None:
    finish.start(job)
    finish.progress(job, progress={"share": 0.5})
    finish.hand_back(job, "shutting down")
    queued, row = QueuedJob.objects.get(id=job.id), BackupJob.objects.get(id=job.id)
    assert (queued.status, queued.attempts, queued.claim_id, queued.locked_by) == ("pending", 0, None, None)
    assert (row.status, row.progress, row.error, row.completed_at) == ("pending", None, None, None)
    again = claim("backup", 1, "w2")[0]
    finish.start(again)
    assert BackupJob.objects.filter(id=job.id).count() == 1


def test_nothing_can_be_written_without_the_claim(job: Job) -> None:
    finish.start(job)
    stranger = replace(job, claim_id=uuid.uuid4())
    writes: tuple[Callable[[], None], ...] = (
        lambda: finish.start(stranger),
        lambda: finish.progress(stranger, progress={"share": 1}),
        lambda: finish.complete(stranger, **STORED),
        lambda: finish.fail(stranger, "no"),
        lambda: finish.cancelled(stranger, "no"),
        lambda: finish.hand_back(stranger, "no"),
    )
    for write in writes:
        with pytest.raises(ClaimLost):
            write()
    assert both(job) == ("active", "running")
    assert BackupJob.objects.get(id=job.id).progress is None
    assert beat([stranger.claim_id]) == {}


def test_a_verdict_repeated_after_a_lost_answer_is_recognised(job: Job) -> None:
    finish.start(job)
    finish.complete(job, **STORED)
    with pytest.raises(AlreadyEnded):
        finish.complete(job, **STORED)
    assert TimelineLine.objects.filter(job_id=job.id, event="completed").count() == 1


def test_a_verdict_that_cannot_be_written_leaves_both_rows_as_they_were(job: Job) -> None:
    finish.start(job)
    with pytest.raises(Exception, match="backup_jobs_completed_is_stored"):
        finish.complete(job)
    assert both(job) == ("active", "running")


def test_a_payload_of_any_shape_still_gets_its_history(enqueue: Enqueue) -> None:
    for payload in ([1, 2], "text", {"database_id": 7, "flags": "x", "database_name": ["a"]}, {}):
        row = enqueue(queue="restore", payload=payload)
        (job,) = claim("restore", 1, "w")
        finish.fail(job, "this is no payload")
        assert RestoreJob.objects.get(id=row.id).status == "failed"


def test_the_owner_is_told_of_start_and_end_with_ids_only(job: Job, user: User) -> None:
    with psycopg.connect(database_url(), autocommit=True) as listening:
        listening.execute("LISTEN pgbr_events")
        finish.start(job)
        finish.fail(job, "x" * 20_000)
        notes = [json.loads(note.payload) for note in listening.notifies(timeout=5, stop_after=2)]
    assert notes == [
        {"queue": "backup", "event": event, "id": str(job.id), "user": user.pk}
        for event in ("progress", "failed")
    ]
