"""A pgbr of its own for a measurement: state folder, embedded database, source server, S3 server, worker.

Importing this starts the embedded database in a temporary folder, and has to come before Django's settings
are read. All of it is gone when the process ends.
"""

# ruff: noqa: E402 - the settings need the database that has just been started

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import tests.environment

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgbr.settings")

import django

django.setup()

from django.contrib.auth.models import User
from django.core.management import call_command
from psycopg import sql

from bench import data
from jobs import services, trash
from jobs.databases import register
from jobs.models import BackupJob, Database, QueuedJob, Storage, WorkerProcess
from jobs.pgtools.binaries import choose
from jobs.pgtools.toolset import Toolset
from jobs.processors.source import toolsets
from jobs.secrets import seal
from jobs.stores import default_storage
from jobs.targets import conninfo_for
from tests import s3server, servers
from tests.waiting import until
from tests.workers import RunningWorker

# The application's role creates what is restored, and puts the disk to rest between two runs.
BENCH_RIGHTS = sql.SQL("ALTER ROLE app CREATEDB SUPERUSER")
ROLES = {"backup", "restore", "migration", "upkeep"}
LONGEST_JOB = 3600.0
# As in production; the worker of the tests is given short ones.
TIMINGS = {"HEARTBEAT_SECONDS": 15, "STALE_SECONDS": 90, "POLL_SECONDS": 5, "SHUTDOWN_GRACE_SECONDS": 30}


@dataclass(frozen=True)
class House:
    """`size`: of the source database in bytes. `environment`: how a tool reaches it. `scratch` lies on the
    same disk as the folder that backups go to."""

    user: User
    database: Database
    size: int
    toolset: Toolset
    environment: dict[str, str]
    s3: s3server.S3Server
    folder: Storage
    bucket: Storage
    scratch: Path

    @contextmanager
    def worker(self) -> Iterator[RunningWorker]:
        """A fresh one; inside, each of its processes has signed on."""
        WorkerProcess.objects.all().delete()
        worker = RunningWorker(self.scratch / "worker.log", [], noop=False, environment=TIMINGS)
        try:
            until(lambda: _signed_on() == ROLES, "it signs on")
            yield worker
        finally:
            worker.terminate()

    def back_up(self, storage: Storage) -> tuple[QueuedJob, BackupJob]:
        """Through the queue; both rows of the completed job."""
        job_id = services.enqueue_backup(self.database, {}, by=self.user, storage=storage)
        until(lambda: _status(job_id) not in {"pending", "active"}, "the backup ends", seconds=LONGEST_JOB)
        queued, row = QueuedJob.objects.get(id=job_id), BackupJob.objects.get(id=job_id)
        if row.status != "completed":
            raise SystemExit(f"The backup is {row.status}: {row.error}")
        return queued, row

    def delete(self, backup: BackupJob) -> None:
        trash.for_good(backup, by=self.user)


@contextmanager
def house(major: int, megabytes: int) -> Iterator[House]:
    """Everything there and at rest, with a database of that size on a server of that major."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all of it is stopped and removed
    call_command("migrate", verbosity=0)
    user = User.objects.create_superuser("bench")
    with ExitStack() as stack:
        server = servers.private(major)
        stack.callback(servers.discard, server)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=tests.environment.HOME)))
        url = server.create_database("source")
        server.execute(BENCH_RIGHTS)
        size = data.fill(url, megabytes)
        database = register(user, "source", url, by=user)
        toolset = choose(major, toolsets())
        s3 = s3server.shared()
        yield House(
            user=user,
            database=database,
            size=size,
            toolset=toolset,
            environment=conninfo_for(database).environment(scratch, "bench") | toolset.environment(),
            s3=s3,
            folder=default_storage(),
            bucket=Storage.objects.create(
                name="bucket",
                endpoint=s3.endpoint,
                bucket=s3.new_bucket(),
                access_key_id=s3.access_key,
                sealed_secret=seal(s3.secret_key),
            ),
            scratch=scratch,
        )


def _signed_on() -> set[str]:
    return set(WorkerProcess.objects.values_list("role", flat=True))


def _status(job_id: UUID) -> str:
    return QueuedJob.objects.values_list("status", flat=True).get(id=job_id)
