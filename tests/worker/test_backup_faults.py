"""Real dumps under real signals: no job is lost, none runs twice in silence, nothing is left lying about."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from jobs.models import BackupJob, Database, Storage, TimelineLine, WorkerProcess
from tests import servers
from tests.conftest import StartWorker
from tests.proxy import Proxy
from tests.waiting import until
from tests.worker.conftest import StartBackup
from tests.workers import RunningWorker

pytestmark = pytest.mark.django_db(transaction=True)


def scratch() -> list[str]:
    return [path.name for path in Path(settings.SCRATCH_FOLDER).glob("*")]


def dumps(job_id: object) -> list[int]:
    """Living pg_dump processes of a job, by the application name in their environment."""
    return tools(job_id, b"pg_dump")


def tools(job_id: object, name: bytes = b"pg_") -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            is_tool = entry.name.isdigit() and name in (entry / "cmdline").read_bytes()
            if is_tool and f"pgbr/{job_id}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_killed_in_mid_dump_another_worker_finishes_and_nothing_is_left(
    slow_backup: StartBackup, start_worker: StartWorker, storage: Storage | None
) -> None:
    backup = slow_backup(4, storage)
    first = start_worker("--queue", "backup")
    backup.wait_until_dumping()
    first.kill_all()
    until(lambda: not dumps(backup.id), "pg_dump died with its worker")
    start_worker("--queue", "backup")
    backup.wait_for("completed")
    assert BackupJob.objects.filter(id=backup.id).count() == 1
    assert (backup.queued.stalls, backup.queued.attempts) == (1, 1)
    backup.assert_whole()
    until(lambda: not scratch(), "the killed worker's scratch is removed")


def test_killed_twice_fails_for_good_in_both_rows_with_the_reason(
    slow_backup: StartBackup, start_worker: StartWorker, storage: Storage | None
) -> None:
    backup = slow_backup(60, storage)
    for _ in range(2):
        worker = start_worker("--queue", "backup")
        backup.wait_until_dumping()
        worker.kill_all()
        BackupJob.objects.filter(id=backup.id).update(progress=None)
    start_worker("--queue", "restore")
    backup.wait_for("failed")
    assert backup.row.status == "failed"
    assert "Stalled 2 times" in (backup.row.error or "")
    assert backup.queued.last_error == backup.row.error
    start_worker("--queue", "migration")  # sweeps once at its start; one that drains may have left before
    until(lambda: not backup.parts() and not backup.objects(), "the sweep clears what the killed ones began")
    until(lambda: not scratch(), "the scratch is removed")


def test_sigterm_with_a_short_grace_puts_the_backup_back_without_a_trace(
    slow_backup: StartBackup, start_worker: StartWorker, storage: Storage | None
) -> None:
    backup = slow_backup(60, storage)
    worker = start_worker("--queue", "backup", SHUTDOWN_GRACE_SECONDS=0.5)
    backup.wait_until_dumping()
    assert worker.terminate() == 0
    assert (backup.queued.status, backup.row.status) == ("pending", "pending")
    assert (backup.queued.attempts, backup.queued.stalls) == (0, 0)
    assert (dumps(backup.id), scratch(), backup.objects(), backup.parts()) == ([], [], set(), [])
    start_worker("--queue", "backup")
    signed_on = until(lambda: WorkerProcess.objects.filter(role="backup").first(), "the next worker is ready")
    backup.wait_for("active")
    claimed = TimelineLine.objects.filter(job_id=backup.id, event="claimed").order_by("id").last()
    assert claimed is not None
    assert (claimed.at - signed_on.started_at).total_seconds() < 1


def test_sigterm_to_every_process_at_once_puts_the_backup_back(
    slow_backup: StartBackup, start_worker: StartWorker
) -> None:
    """As systemd stops a service: pg_dump is told as well, and its end is not the job's failure."""
    backup = slow_backup(60)
    worker = start_worker("--queue", "backup")
    backup.wait_until_dumping()
    tree = worker.pids()
    worker.signal(signal.SIGTERM, dumps(backup.id))
    worker.signal(signal.SIGTERM, tree)
    assert worker.process.wait(30) == 0
    assert (backup.queued.status, backup.row.status) == ("pending", "pending")
    assert (backup.queued.attempts, backup.queued.stalls) == (0, 0)


def test_a_closed_terminal_stops_the_worker_as_sigterm_does(
    slow_backup: StartBackup, start_worker: StartWorker
) -> None:
    backup = slow_backup(60)
    worker = start_worker("--queue", "backup", SHUTDOWN_GRACE_SECONDS=0.5)
    backup.wait_until_dumping()
    ours = [pid for pid in worker.pids() if pid not in dumps(backup.id)]  # it has a group of its own
    worker.signal(signal.SIGHUP, ours)
    assert worker.process.wait(30) == 0
    assert (backup.queued.status, backup.queued.attempts, backup.queued.stalls) == ("pending", 0, 0)


def frozen_and_taken_away(
    slow_backup: StartBackup, start_worker: StartWorker, second_queue: str
) -> tuple[RunningWorker, list[int]]:
    backup = slow_backup(6)
    first = start_worker("--queue", "backup", STALE_SECONDS=2)
    backup.wait_until_dumping()
    old_dumps, tree = dumps(backup.id), first.pids()
    assert old_dumps
    first.signal(signal.SIGSTOP, tree)
    start_worker("--queue", second_queue, STALE_SECONDS=2)
    until(lambda: backup.queued.stalls == 1, "the job is taken back")
    if second_queue == "backup":
        backup.wait_for("active")
    first.signal(signal.SIGCONT, tree)
    until(lambda: not any(alive(pid) for pid in old_dumps), "the zombie's pg_dump is gone")
    backup.wait_for("completed")
    assert "claim lost" in first.text()
    assert TimelineLine.objects.filter(job_id=backup.id, event="completed").count() == 1
    winner = TimelineLine.objects.filter(job_id=backup.id, event="claimed").order_by("id").last()
    assert winner is not None
    assert TimelineLine.objects.get(job_id=backup.id, event="completed").worker == winner.worker
    backup.assert_whole()
    return first, old_dumps


def test_a_frozen_worker_that_wakes_finds_its_job_with_another(
    slow_backup: StartBackup, start_worker: StartWorker
) -> None:
    frozen_and_taken_away(slow_backup, start_worker, "backup")


def test_a_frozen_worker_that_claims_its_own_lost_job_again_runs_it_once(
    slow_backup: StartBackup, start_worker: StartWorker
) -> None:
    """The second worker only reaps; the first one, awake again, claims the job under a new claim id."""
    frozen_and_taken_away(slow_backup, start_worker, "restore")


def test_cancel_ends_the_dump_and_removes_what_it_wrote(
    slow_backup: StartBackup, start_worker: StartWorker, storage: Storage | None
) -> None:
    from jobs import services

    backup = slow_backup(60, storage)
    start_worker("--queue", "backup", HEARTBEAT_SECONDS=30, STALE_SECONDS=90)
    backup.wait_until_dumping()
    asked = timezone.now()
    services.cancel_job(backup.id, by=backup.queued.user)
    backup.wait_for("cancelled", seconds=10)
    assert backup.row.status == "cancelled"
    assert ((backup.row.completed_at or asked) - asked).total_seconds() < 8
    assert (dumps(backup.id), scratch(), backup.objects(), backup.parts()) == ([], [], set(), [])


@pytest.mark.parametrize("answers", [0, 3])
def test_cancel_does_not_wait_for_a_server_that_does_not_answer(
    make_database: Callable[..., Database], start_worker: StartWorker, answers: int
) -> None:
    """Neither while it logs in nor when the server falls silent under its questions."""
    from jobs import services

    server = servers.get(17)
    with Proxy(("127.0.0.1", server.port)) as proxy:
        proxy.stall_after(answers)
        url = server.superuser_url().replace(f":{server.port}/", f":{proxy.port}/")
        database = make_database(url)
        job = services.enqueue_backup(database, {}, by=database.user)
        start_worker("--queue", "backup")
        until(lambda: proxy.stalled, "the server has fallen silent")
        until(lambda: BackupJob.objects.filter(id=job, status="running").exists(), "the job runs")
        services.cancel_job(job, by=database.user)
        until(lambda: BackupJob.objects.get(id=job).status == "cancelled", "it is cancelled", seconds=8)
        until(lambda: not scratch(), "no scratch is left")


def test_a_killed_queue_process_takes_its_dump_with_it_and_the_next_one_finishes(
    slow_backup: StartBackup, start_worker: StartWorker
) -> None:
    backup = slow_backup(4)
    worker = start_worker("--queue", "backup")
    backup.wait_until_dumping()
    running = dumps(backup.id)
    os.kill(worker.child("backup"), signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in running), "pg_dump died with its process")
    backup.wait_for("completed")
    backup.assert_whole()
