"""Twenty workers on two thousand jobs."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable

import pytest

from jobs.models import BackupJob, QueuedJob, TimelineLine
from tests.conftest import Enqueue, StartWorker
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS, JOBS, CONCURRENCY = 20, 2000, 3
ARGUMENTS = ["--queue", "backup", "--concurrency", str(CONCURRENCY)]


def test_twenty_workers_run_two_thousand_jobs_exactly_once_each(
    enqueue: Enqueue, start_worker: StartWorker, runs: Callable[[], list[tuple[uuid.UUID, str]]]
) -> None:
    user = enqueue().user
    workers = [
        start_worker(*ARGUMENTS, noop=True, HEARTBEAT_SECONDS=5, STALE_SECONDS=60) for _ in range(WORKERS)
    ]
    QueuedJob.objects.bulk_create([QueuedJob(queue="backup", user=user, payload={}) for _ in range(JOBS - 1)])
    most: Counter[str] = Counter()

    def watched() -> bool:
        active = QueuedJob.objects.filter(status="active").values_list("locked_by", flat=True)
        for worker, count in Counter(active).items():
            most[str(worker)] = max(most[str(worker)], count)
        return not QueuedJob.objects.filter(status__in=["pending", "active"]).exists()

    until(watched, "all jobs have ended", seconds=180)
    ran = [job for job, _ in runs()]
    assert len(ran) == len(set(ran)) == JOBS
    assert QueuedJob.objects.filter(status="completed", attempts=1, stalls=0).count() == JOBS
    assert BackupJob.objects.filter(status="completed").count() == JOBS
    assert TimelineLine.objects.filter(event="claimed").count() == JOBS
    assert max(most.values()) <= CONCURRENCY
    for worker in workers:
        worker.kill_all()
