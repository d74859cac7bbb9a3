"""The demo's way: register, back up through the queue, restore the artifact with bare pg_restore."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User

from jobs import databases, scratch, services
from jobs.artifacts import first_good_copy
from jobs.management.demo.sample import COPY, SOURCE, DemoFailed, Server, connect
from jobs.models import BackupJob, Database
from jobs.models.history import Status
from jobs.pgtools import binaries, process
from jobs.pgtools.toolset import Toolset
from jobs.targets import conninfo_for

NAME = "demo"
WORKER_SECONDS = 300
TAIL_LINES = 15


def account() -> User:
    """Who the demo's objects belong to: an account of its own, which nobody can log in with."""
    user = User.objects.filter(username=NAME).first()
    return user or User.objects.create_user(NAME, password=None, is_active=False)


def registered(user: User, server: Server) -> Database:
    """The sample database as registered, with this run's password. Checked by a login."""
    url = server.of_role(SOURCE).url
    database = Database.objects.filter(user=user, name=NAME).first()
    if database is None:
        database = databases.register(user, NAME, url, by=user)
    else:
        databases.set_connection(database, url)
        database.save()
    databases.check(database)
    return database


def back_up(database: Database, user: User) -> BackupJob:
    """Enqueue a backup and have a real worker do what is due. Raises DemoFailed unless it completed."""
    job_id = services.enqueue_backup(database, {}, by=user)
    log = _run_worker()
    backup = _ended(job_id, log)
    if backup.status != Status.COMPLETED:
        raise DemoFailed(f"The backup {job_id} {backup.status}: {backup.error}")
    return backup


def restore(backup: BackupJob, database: Database, server: Server) -> Toolset:
    """Put the stored artifact into the copy, checking its size and SHA-256 on the way; the tools used."""
    store, copy = first_good_copy(backup)
    tools = binaries.choose(_major(server), _toolsets())
    digest, size = hashlib.sha256(), 0
    with scratch.folder(NAME) as folder:
        target = conninfo_for(database).replace_database(COPY)
        environment = target.environment(folder, "pgbr demo") | tools.environment()
        argv = [str(tools.tool("pg_restore")), "--exit-on-error", "--no-password", f"--dbname={COPY}"]
        with process.spawn(argv, environment, cwd=folder, stdin=True, stdout=False) as child:
            for chunk in store.read(copy.storage_key):
                digest.update(chunk)
                size += len(chunk)
                _feed(child, chunk)
            child.stdin.close()
            child.check()
    if (size, digest.hexdigest()) != (backup.size, backup.sha256):
        raise DemoFailed(f"{copy.storage_key} is not what was recorded: {size} bytes, {digest.hexdigest()}.")
    return tools


def _feed(child: process.Child, chunk: bytes) -> None:
    rest = memoryview(chunk)
    try:
        while rest:
            rest = rest[child.stdin.write(rest) :]
    except BrokenPipeError:
        child.check()
        raise


def _run_worker() -> str:
    """`runworker --drain` in processes of its own; the end of its log. Raises DemoFailed if it failed."""
    command = [
        sys.executable,
        str(settings.BASE_DIR / "manage.py"),
        "runworker",
        "--drain",
        "--queue",
        "backup",
    ]
    with tempfile.TemporaryFile() as log:
        worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            code = worker.wait(WORKER_SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            if worker.poll() is None:
                worker.terminate()
                worker.wait()
        log.seek(0)
        tail = "\n".join(log.read().decode(errors="replace").splitlines()[-TAIL_LINES:])
    if code != 0:
        raise DemoFailed(f"The worker did not end well (exit {code}):\n{tail}")
    return tail


def _ended(job_id: UUID, log: str) -> BackupJob:
    backup = BackupJob.objects.filter(id=job_id).first()
    if backup is None or backup.status in (Status.PENDING, Status.RUNNING):
        state = backup.status if backup else "not started"
        raise DemoFailed(f"The worker ended, but backup {job_id} is {state}. Its last words:\n{log}")
    return backup


def _toolsets() -> list[Toolset]:
    return binaries.discover([Path(path) for path in settings.PGBR_PG_BIN], settings.PGTOOLS_FOLDER)


def _major(server: Server) -> int:
    with connect(server.superuser) as session:
        return session.info.server_version // 10000
