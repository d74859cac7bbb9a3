"""The ways to restore and to migrate the same database that are compared, each timed once per call."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from bench.house import LONGEST_JOB, House
from bench.processes import cpu
from bench.ways import Run, timed
from jobs import restoring
from jobs.artifacts import good_copies
from jobs.models import BackupJob, MigrationJob, QueuedJob, RestoreJob
from jobs.targets import conninfo_for
from tests.waiting import until

TARGET = "arrived"


def restore(place: House, backup: BackupJob, flags: Mapping[str, Any], pids: Sequence[int]) -> Run:
    order = restoring.RestoreOrder(place.database, "new", TARGET, {**flags, "analyze": False}, backup)
    return _through_the_queue(
        place, RestoreJob, lambda: restoring.enqueue_restore(order, by=place.user), pids, backup.size or 0
    )


def migration(place: House, pids: Sequence[int]) -> Run:
    order = restoring.MigrationOrder(
        place.database, place.database, "new", TARGET, restore_flags={"analyze": False}
    )
    return _through_the_queue(
        place, MigrationJob, lambda: restoring.enqueue_migration(order, by=place.user), pids, 0
    )


def bare_restore(place: House, backup: BackupJob, jobs: int) -> Run:
    """From the file that pgbr has stored; with one job as a stream."""
    copy = good_copies(backup)[0]
    path = f"{copy.storage.folder}/{copy.storage_key}"

    def work() -> int:
        _statement(place, "CREATE DATABASE {} TEMPLATE template0")
        command = _pg_restore(place)
        if jobs > 1:
            subprocess.run([*command, f"--jobs={jobs}", path], env=place.environment, check=True)
        else:
            with open(path, "rb") as file:
                subprocess.run(command, env=place.environment, stdin=file, check=True)
        return copy.size or 0

    return _dropped_after(place, lambda: timed(work))


def bare_migration(place: House) -> Run:
    def work() -> int:
        _statement(place, "CREATE DATABASE {} TEMPLATE template0")
        dump = [str(place.toolset.tool("pg_dump")), "-Fc", "-Z0"]
        with subprocess.Popen(dump, env=place.environment, stdout=subprocess.PIPE) as child:
            subprocess.run(_pg_restore(place), env=place.environment, stdin=child.stdout, check=True)
        if child.returncode:
            raise SystemExit("pg_dump failed")
        return 0

    return _dropped_after(place, lambda: timed(work))


def _through_the_queue(
    place: House,
    model: type[RestoreJob] | type[MigrationJob],
    enqueue: Callable[[], UUID],
    pids: Sequence[int],
    stored: int,
) -> Run:
    before = cpu(pids)
    job_id = enqueue()
    until(lambda: _ended(job_id), "the job ends", seconds=LONGEST_JOB)
    spent = cpu(pids).since(before)
    row, queued = model.objects.get(id=job_id), QueuedJob.objects.get(id=job_id)
    if row.status != "completed" or row.started_at is None or row.completed_at is None:
        raise SystemExit(f"The {row.queue} is {row.status}: {row.error}")
    run = Run(
        seconds=(row.completed_at - row.started_at).total_seconds(),
        waited=(row.completed_at - queued.created_at).total_seconds(),
        cpu=spent.own,
        tools_cpu=spent.tools,
        stored=stored or getattr(row, "size", 0) or 0,
    )
    return _dropped_after(place, lambda: run)


def _ended(job_id: UUID) -> bool:
    return QueuedJob.objects.values_list("status", flat=True).get(id=job_id) not in {"pending", "active"}


def _pg_restore(place: House) -> list[str]:
    return [str(place.toolset.tool("pg_restore")), "--exit-on-error", f"--dbname={TARGET}"]


def _dropped_after(place: House, work: Callable[[], Run]) -> Run:
    try:
        return work()
    finally:
        _statement(place, "DROP DATABASE IF EXISTS {} WITH (FORCE)")
        _statement(place, "CHECKPOINT")


def _statement(place: House, statement: str) -> None:
    conninfo = conninfo_for(place.database).replace_database("postgres")
    with conninfo.connect(place.scratch, "bench") as session, psycopg.ClientCursor(session) as cursor:
        cursor.execute(sql.SQL(statement).format(sql.Identifier(TARGET)))
