"""Statements that got through while their answers did not, and verdicts that meet a cancel."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from jobs.models import BackupJob, QueuedJob, TimelineLine
from jobs.queue import cancel, finish, reap
from jobs.queue.claim import claim
from jobs.queue.rows import AlreadyEnded, ClaimLost
from tests.conftest import Enqueue
from tests.processors_for_tests import STORED

pytestmark = pytest.mark.django_db(transaction=True)


def test_jobs_of_a_claim_without_an_answer_go_back_and_count_no_stall(enqueue: Enqueue) -> None:
    enqueue(), enqueue()
    (known,) = claim("backup", 1, "w")
    (unknown,) = claim("backup", 1, "w")
    enqueue()
    (of_another,) = claim("backup", 1, "w2")
    assert finish.hand_back_unanswered("w", [known.claim_id]) == 1
    row = QueuedJob.objects.get(id=unknown.id)
    assert (row.status, row.attempts, row.stalls) == ("pending", 0, 0)
    active = QueuedJob.objects.filter(status="active").values_list("id", flat=True)
    assert set(active) == {known.id, of_another.id}


def test_a_cancel_during_the_hand_back_is_honoured(enqueue: Enqueue) -> None:
    row = enqueue()
    (job,) = claim("backup", 1, "w")
    finish.start(job)
    assert cancel.cancel(row.id, "Cancelled by ada.") == "requested"
    finish.hand_back(job, "The worker was shut down; the job starts again.")
    assert QueuedJob.objects.get(id=row.id).status == "cancelled"
    assert BackupJob.objects.get(id=row.id).status == "cancelled"
    with pytest.raises(AlreadyEnded):
        finish.hand_back(job, "again, since the answer was lost")


def test_a_cancelled_job_that_fails_is_not_tried_again(enqueue: Enqueue) -> None:
    row = enqueue(max_attempts=3)
    (job,) = claim("backup", 1, "w")
    finish.start(job)
    cancel.cancel(row.id, "Cancelled by ada.")
    finish.fail(job, "no route")
    assert QueuedJob.objects.get(id=row.id).status == "failed"


def test_the_reapers_verdict_is_not_taken_for_ones_own(enqueue: Enqueue, settings: Settings) -> None:
    """It ends the job under the claim of the worker that went silent, which may wake up and be done."""
    settings.STALL_LIMIT = 1
    enqueue()
    (job,) = claim("backup", 1, "w")
    finish.start(job)
    assert reap.take_back("w") == 1
    for write in (finish.start, lambda job: finish.complete(job, **STORED)):
        with pytest.raises(ClaimLost):
            write(job)
    assert TimelineLine.objects.filter(job_id=job.id, event="completed").count() == 0


@pytest.mark.parametrize("payload", ['{"n": 1' + "0" * 5000 + "}", "[" * 5000 + "]" * 5000])
def test_a_payload_that_python_cannot_read_stops_nobody(enqueue: Enqueue, payload: str) -> None:
    poison, sound = enqueue(), enqueue()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE job_queue SET payload = %s::jsonb WHERE id = %s", [payload, poison.id])
    jobs = {job.id: job for job in claim("backup", 2, "w")}
    assert jobs[poison.id].payload is None
    assert reap.take_back("w") == 2
    assert cancel.cancel(poison.id, "Cancelled by ada.") == "cancelled"
    again = claim("backup", 2, "w")
    assert [job.id for job in again] == [sound.id]
    finish.fail(replace(again[0]), "no")


def test_a_verdict_may_quote_anything(enqueue: Enqueue) -> None:
    enqueue()
    (job,) = claim("backup", 1, "w")
    finish.start(job)
    finish.fail(job, "bad\0name \ud800", log="line\0", warnings=["\udcff"])
    row = BackupJob.objects.get(id=job.id)
    assert (row.error, row.log, row.warnings) == ("bad\ufffdname ?", "line\ufffd", ["?"])
