"""The worker as real processes under real signals, with processors that do nothing."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable

import pytest
from django.db import connection

from jobs.models import BackupJob, QueuedJob, TimelineLine, WorkerProcess
from jobs.queue.cancel import cancel
from tests.conftest import Enqueue, StartWorker
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

Runs = Callable[[], list[tuple[uuid.UUID, str]]]


def status(job: QueuedJob) -> str:
    return QueuedJob.objects.get(id=job.id).status


def history(job: QueuedJob) -> str | None:
    return BackupJob.objects.filter(id=job.id).values_list("status", flat=True).first()


def ready(role: str = "backup") -> bool:
    return WorkerProcess.objects.filter(role=role).exists()


def many(enqueue: Enqueue, count: int, **payload: object) -> None:
    user = enqueue(payload=payload).user
    QueuedJob.objects.bulk_create(
        [QueuedJob(queue="backup", user=user, payload=payload) for _ in range(count - 1)]
    )


def test_drain_works_off_every_queue_and_exits_zero(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    jobs = [enqueue(queue=queue) for queue in ("backup", "restore", "migration") for _ in range(7)]
    worker = start_worker("--drain", noop=True)
    assert worker.process.wait(60) == 0, worker.text()
    assert {status(job) for job in jobs} == {"completed"}
    assert sorted(job for job, _ in runs()) == sorted(job.id for job in jobs)
    assert not WorkerProcess.objects.exists()


def test_drain_exits_zero_also_when_a_job_fails(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    job = enqueue(payload={"fail": "out of luck"})
    assert start_worker("--drain", "--queue", "backup", noop=True).process.wait(60) == 0
    row = BackupJob.objects.get(id=job.id)
    assert (row.status, row.error) == ("failed", "out of luck")


def test_only_the_named_queue_is_served_and_the_process_signs_on(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    restore, backup = enqueue(queue="restore"), enqueue()
    start_worker("--queue", "backup", "--concurrency", "3", noop=True)
    until(lambda: status(backup) == "completed", "the backup ran")
    assert status(restore) == "pending"
    assert WorkerProcess.objects.get(role="backup").concurrency == 3
    until(lambda: ready("upkeep"), "upkeep signs on")
    assert not ready("restore")


def test_concurrency_holds_and_a_notification_starts_a_job_without_waiting_for_the_poll(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    start_worker("--concurrency", "2", noop=True, POLL_SECONDS=3600)
    until(ready, "the worker is ready")
    many(enqueue, 6, seconds=0.4)
    seen = set()

    def watched() -> bool:
        seen.add(QueuedJob.objects.filter(status="active").count())
        return QueuedJob.objects.filter(status="completed").count() == 6

    until(watched, "all six ran")
    assert max(seen) == 2


def test_without_the_trigger_the_poll_finds_every_job(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE job_queue DISABLE TRIGGER job_queue_notify")
    try:
        start_worker("--queue", "backup", noop=True, POLL_SECONDS=1)
        until(ready, "the worker is ready")
        jobs = [enqueue() for _ in range(4)]
        until(lambda: {status(job) for job in jobs} == {"completed"}, "the poll finds them", seconds=10)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE job_queue ENABLE TRIGGER job_queue_notify")
    late = [
        (row.locked_at - row.created_at).total_seconds() for row in QueuedJob.objects.all() if row.locked_at
    ]
    assert max(late) < 2


def test_sigterm_lets_a_running_job_finish_within_the_grace(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    worker = start_worker("--queue", "backup", noop=True)
    running, waiting = (
        enqueue(payload={"seconds": 2}),
        enqueue(payload={"seconds": 0}, run_at="2100-01-01T00:00Z"),
    )
    until(lambda: history(running) == "running", "the job runs")
    assert worker.terminate() == 0
    assert (status(running), status(waiting)) == ("completed", "pending")


def test_sigterm_with_a_short_grace_hands_back_and_the_next_worker_starts_it_at_once(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    worker = start_worker("--queue", "backup", noop=True, SHUTDOWN_GRACE_SECONDS=0.5)
    job = enqueue(payload={"seconds": 3600})
    until(lambda: history(job) == "running", "the job runs")
    assert worker.terminate() == 0
    row = QueuedJob.objects.get(id=job.id)
    assert (row.status, row.attempts, row.stalls, history(job)) == ("pending", 0, 0, "pending")
    start_worker("--queue", "backup", noop=True)
    until(lambda: status(job) == "active", "the next worker has it")
    events = TimelineLine.objects.filter(job_id=job.id).values_list("event", flat=True)
    assert list(events) == ["enqueued", "claimed", "handed_back", "claimed"]


def test_cancel_ends_a_running_job_within_seconds(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    start_worker("--queue", "backup", noop=True, HEARTBEAT_SECONDS=30, STALE_SECONDS=90)
    job = enqueue(payload={"seconds": 3600})
    until(lambda: history(job) == "running", "the job runs")
    cancel(job.id, "enough")
    until(lambda: status(job) == "cancelled", "the notification reaches the worker", seconds=5)
    assert history(job) == "cancelled"


def test_a_killed_queue_process_is_replaced_and_its_job_taken_up_again(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    worker = start_worker("--queue", "backup", noop=True, HEARTBEAT_SECONDS=1000, STALE_SECONDS=3600)
    job = enqueue(payload={"seconds": 1})
    until(lambda: history(job) == "running", "the job runs")
    first = worker.child("backup")
    os.kill(first, signal.SIGKILL)
    until(lambda: status(job) == "completed", "the new process has run it, with no stale period between")
    row = QueuedJob.objects.get(id=job.id)
    assert (row.stalls, row.attempts, BackupJob.objects.filter(id=job.id).count()) == (1, 1, 1)
    assert worker.child("backup") != first
    assert worker.process.poll() is None


def test_children_end_when_their_supervisor_is_killed(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    worker = start_worker("--queue", "backup", noop=True)
    until(lambda: ready() and ready("upkeep"), "the worker is ready")
    children = worker.pids()[1:]
    worker.process.kill()
    worker.process.wait()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), "the orphans leave")
    assert not WorkerProcess.objects.exists()


def test_a_frozen_process_loses_its_job_and_writes_nothing_when_it_wakes(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    first = start_worker("--queue", "backup", noop=True)
    job = enqueue(payload={"seconds": 4})
    until(lambda: history(job) == "running", "the job runs")
    frozen = first.pids()
    first.signal(signal.SIGSTOP, frozen)
    start_worker("--queue", "backup", noop=True)
    until(lambda: QueuedJob.objects.get(id=job.id).stalls == 1, "the job is taken back")
    owner = until(lambda: QueuedJob.objects.get(id=job.id).locked_by, "the second worker has it")
    first.signal(signal.SIGCONT, frozen)
    until(lambda: "claim lost" in first.text(), "the first worker sees that it lost the job")
    until(lambda: status(job) == "completed", "the second worker finishes")
    assert TimelineLine.objects.get(job_id=job.id, event="completed").worker == owner
    assert [worker for _, worker in runs()][1] == owner


def test_a_worker_at_the_default_stays_under_fifteen_connections(
    enqueue: Enqueue, start_worker: StartWorker, runs: Runs
) -> None:
    for queue in ("backup", "restore", "migration"):
        for _ in range(5):
            enqueue(queue=queue, payload={"seconds": 5})
    start_worker(noop=True)
    until(lambda: QueuedJob.objects.filter(status="active").count() == 15, "fifteen jobs run")
    most = 0

    def watched() -> bool:
        nonlocal most
        with connection.cursor() as cursor:
            cursor.execute(
                """SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()"""
            )
            most = max(most, cursor.fetchone()[0])
        return QueuedJob.objects.filter(status="completed").count() == 15

    until(watched, "all ran")
    assert 0 < most < 15
