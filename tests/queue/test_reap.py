from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from jobs.models import BackupJob, QueuedJob, TimelineLine
from jobs.queue import finish
from jobs.queue.claim import claim
from jobs.queue.reap import Quiet, quiet, reap_stale
from jobs.queue.rows import ClaimLost, Job, rows
from tests.conftest import Enqueue
from tests.processors_for_tests import STORED
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _short_stale_period(settings: Settings) -> None:
    settings.STALE_SECONDS = 1
    quiet.until = 0.0
    until(
        lambda: rows("SELECT pg_postmaster_start_time() < now() - interval '1 s' AS old", {})[0]["old"],
        "the server has run for one stale period",
    )


def silent(enqueue: Enqueue, **columns: Any) -> Job:
    """A started job whose worker was last heard of an hour ago."""
    row = enqueue(**columns)
    (job,) = claim("backup", 1, "host:1:aa")
    finish.start(job)
    QueuedJob.objects.filter(id=row.id).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    return job


def test_a_stalled_job_waits_again_with_its_attempt_refunded(enqueue: Enqueue) -> None:
    job = silent(enqueue)
    assert reap_stale() == 1
    queued, row = QueuedJob.objects.get(id=job.id), BackupJob.objects.get(id=job.id)
    assert (queued.status, queued.attempts, queued.stalls, queued.claim_id) == ("pending", 0, 1, None)
    assert (row.status, row.error, row.completed_at) == ("pending", None, None)
    assert "host:1:aa" in TimelineLine.objects.get(job_id=job.id, event="stalled").detail


def test_second_stall_fails_the_job_with_the_reason(enqueue: Enqueue) -> None:
    job = silent(enqueue, stalls=1)
    assert reap_stale() == 1
    queued, row = QueuedJob.objects.get(id=job.id), BackupJob.objects.get(id=job.id)
    assert (queued.status, queued.stalls, row.status) == ("failed", 2, "failed")
    assert row.error == queued.last_error
    assert "Stalled 2 times" in (row.error or "")


def test_a_stalled_out_job_that_never_started_gets_a_history_row(enqueue: Enqueue) -> None:
    row = enqueue(stalls=1, payload={"database_name": "shop"})
    claim("backup", 1, "w")
    QueuedJob.objects.filter(id=row.id).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    reap_stale()
    assert BackupJob.objects.get(id=row.id).database_name == "shop"


def test_a_stalled_job_that_was_to_be_cancelled_is_cancelled(enqueue: Enqueue) -> None:
    job = silent(enqueue, cancel_requested_at=timezone.now())
    reap_stale()
    assert QueuedJob.objects.get(id=job.id).status == BackupJob.objects.get(id=job.id).status == "cancelled"


def test_a_job_with_a_heartbeat_is_left_alone(enqueue: Enqueue) -> None:
    enqueue()
    claim("backup", 1, "w")
    assert reap_stale() == 0


def test_a_zombie_writes_nothing_after_the_reaper_even_when_its_own_process_claims_again(
    enqueue: Enqueue,
) -> None:
    zombie = silent(enqueue)
    reap_stale()
    (owner,) = claim("backup", 1, "host:1:aa")
    finish.start(owner)
    assert (owner.worker, owner.attempts) == (zombie.worker, zombie.attempts)
    with pytest.raises(ClaimLost):
        finish.complete(zombie, **STORED)
    with pytest.raises(ClaimLost):
        finish.progress(zombie, progress={"share": 1})
    assert BackupJob.objects.get(id=owner.id).status == "running"
    finish.complete(owner, **STORED)


def test_nothing_is_reaped_for_one_stale_period_after_an_outage(enqueue: Enqueue) -> None:
    silent(enqueue)
    quiet.after_reconnect()
    assert reap_stale() == 0
    until(lambda: reap_stale() == 1, "the quiet period ends")


def test_nothing_is_reaped_while_the_server_is_younger_than_a_stale_period(
    enqueue: Enqueue, settings: Settings
) -> None:
    settings.STALE_SECONDS = 1800
    job = silent(enqueue)
    assert reap_stale() == 0
    assert QueuedJob.objects.get(id=job.id).status == "active"


def test_quiet_lasts_one_stale_period(settings: Settings) -> None:
    calm = Quiet()
    assert not calm
    settings.STALE_SECONDS = 100
    calm.after_reconnect()
    assert calm
