from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import BackupJob, QueuedJob, TimelineLine
from jobs.queue.cancel import cancel
from jobs.queue.claim import claim
from jobs.queue.heartbeat import beat
from jobs.queue.purge import purge_finished
from tests.conftest import Enqueue

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_waiting_job_is_cancelled_at_once_with_its_history(enqueue: Enqueue) -> None:
    job = enqueue(payload={"database_name": "shop"})
    assert cancel(job.id, "by ada") == "cancelled"
    row = BackupJob.objects.get(id=job.id)
    assert (QueuedJob.objects.get(id=job.id).status, row.status, row.error) == (
        "cancelled",
        "cancelled",
        "by ada",
    )
    assert claim("backup", 1, "w") == []


def test_a_running_job_is_asked_to_end_through_the_heartbeat(enqueue: Enqueue) -> None:
    enqueue()
    (job,) = claim("backup", 1, "w")
    assert beat([job.claim_id]) == {job.claim_id: False}
    assert cancel(job.id, "by ada") == "requested"
    assert beat([job.claim_id]) == {job.claim_id: True}
    assert TimelineLine.objects.filter(job_id=job.id, event="cancel_requested").count() == 1


def test_cancelling_what_ended_or_never_was_changes_nothing(enqueue: Enqueue) -> None:
    job = enqueue(status="completed")
    assert cancel(job.id, "late") == ""
    assert cancel(uuid.uuid4(), "nobody") == ""


def test_purge_removes_only_what_finished_long_ago_and_keeps_the_history(enqueue: Enqueue) -> None:
    old, fresh = timezone.now() - timedelta(days=8), timezone.now() - timedelta(days=6)
    gone = enqueue(status="failed", completed_at=old)
    BackupJob.objects.create(id=gone.id, user=gone.user, database_name="shop", status="failed")
    kept = {enqueue(status="completed", completed_at=fresh).id, enqueue(created_at=old, run_at=old).id}
    assert purge_finished() == 1
    assert set(QueuedJob.objects.values_list("id", flat=True)) == kept
    assert BackupJob.objects.filter(id=gone.id).exists()
