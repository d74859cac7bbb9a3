"""This instance: its configuration, its own database, its keys and its workers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.db.utils import Error

from jobs.crypto import CannotDecrypt
from jobs.doctor.finding import Finding, broken, doubtful, well
from jobs.models import Database, QueuedJob, Storage, WorkerProcess
from jobs.models.base import Queue
from jobs.models.queue import QueueStatus
from jobs.secrets import unseal
from pgbr import embedded

OLDEST_MAJOR = 14
CLOCK_DOUBTFUL, CLOCK_WRONG = timedelta(seconds=5), timedelta(minutes=5)


def examine() -> Iterator[Finding]:
    """What only a database that answers and is migrated can tell."""
    yield clock()
    yield from keys()
    yield from workers()


def configuration() -> Iterator[Finding]:
    messages = checks.run_checks(include_deployment_checks=False)
    for message in messages:
        finding = broken if message.is_serious() else doubtful
        yield finding("configuration", message.msg, message.hint or "")
    if not messages:
        yield well("configuration", f"valid, state in {settings.PGBR_HOME}")


def database() -> Iterator[Finding]:
    """pgbr's own database: does it answer, is it new enough, are its tables there?"""
    problem = _no_answer()
    if problem is not None:
        yield problem
        return
    version = connection.cursor().connection.info.server_version
    kind = "embedded" if settings.EMBEDDED_DATABASE else "from DATABASE_URL"
    if version // 10000 < OLDEST_MAJOR:
        remedy = f"Use PostgreSQL {OLDEST_MAJOR} or newer for DATABASE_URL."
        yield broken("database", f"PostgreSQL {version // 10000}, {kind}", remedy)
        return
    yield well("database", f"PostgreSQL {version // 10000}.{version % 10000}, {kind}")
    yield _migrations()
    yield from _direct()


def _no_answer() -> Finding | None:
    try:
        if settings.EMBEDDED_DATABASE:
            embedded.ensure(settings.PGBR_HOME)
        connection.ensure_connection()
    except embedded.LocalServerError as error:
        remedy = "Mend what it names; `python manage.py embedded_db status` shows where its logs lie."
        return broken("database", str(error), remedy)
    except Error as error:
        if settings.EMBEDDED_DATABASE:
            remedy = "Run `python manage.py embedded_db status`, and look at the log it names."
        else:
            remedy = "Check DATABASE_URL, and that its server runs and lets this machine in."
        return broken("database", " ".join(str(error).split()), remedy)
    return None


def _migrations() -> Finding:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        return broken("migrations", f"{len(missing)} are not applied.", "Run `python manage.py migrate`.")
    return well("migrations", "all applied")


def _direct() -> Iterator[Finding]:
    if not settings.DATABASE_DIRECT_URL:
        return
    try:
        with psycopg.connect(settings.DATABASE_DIRECT_URL, connect_timeout=10):
            yield well("direct connection", "answers")
    except psycopg.Error as error:
        remedy = "Check DATABASE_DIRECT_URL: notifications arrive through it (polling goes on without)."
        yield broken("direct connection", " ".join(str(error).split()), remedy)


def clock() -> Finding:
    """Times in the history are the database's; a storage refuses requests from a clock that is far off."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    apart = abs(datetime.now(UTC) - row[0])
    message = f"{apart.total_seconds():.1f} s from the database's"
    remedy = "Set both machines' clocks by NTP."
    if apart > CLOCK_WRONG:
        return broken("clock", message, remedy)
    return doubtful("clock", message, remedy) if apart > CLOCK_DOUBTFUL else well("clock", message)


def keys() -> Iterator[Finding]:
    """Can everything that was sealed be opened with the keys there are?"""
    problems = list(_cannot_open())
    for problem in problems:
        yield broken("keys", problem, "Add the old key to the end of ENCRYPTION_KEY.")
    if not problems:
        yield well("keys", f"every stored secret opens ({len(settings.ENCRYPTION_KEYS)} in ENCRYPTION_KEY)")


def _cannot_open() -> Iterator[str]:
    for database in Database.objects.all():
        name = f"the database {database.name!r}"
        yield from _trouble(database.sealed_url, f"The URL of {name}")
        yield from _trouble(database.sealed_client_key, f"The client key of {name}")
    for storage in Storage.objects.all():
        yield from _trouble(storage.sealed_secret, f"The secret of storage {storage.name!r}")


def _trouble(sealed: str, what: str) -> Iterator[str]:
    try:
        unseal(sealed, what)
    except CannotDecrypt as error:
        yield str(error)


def workers() -> Iterator[Finding]:
    """Per queue: who takes its jobs? Nobody is trouble only once something waits."""
    heard = Now() - timedelta(seconds=settings.STALE_SECONDS)
    for queue in Queue.values:
        if queue not in settings.PROCESSORS:
            continue
        subject = f"worker ({queue})"
        alive = WorkerProcess.objects.filter(role=queue, heartbeat_at__gt=heard, stopping=False).count()
        waiting = QueuedJob.objects.filter(queue=queue, status=QueueStatus.PENDING, run_at__lte=Now()).count()
        remedy = "Start one: `python manage.py runworker`, or `make run`."
        if alive:
            yield well(subject, f"{alive} running, {waiting} jobs waiting")
        elif waiting:
            yield broken(subject, f"None is running, and {waiting} jobs wait.", remedy)
        else:
            yield doubtful(subject, "None is running; nothing waits for one yet.", remedy)
