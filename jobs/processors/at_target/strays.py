"""Sessions in a target that write there without the right to, for others have lost it or never had it."""

from __future__ import annotations

from uuid import UUID

from jobs.models import MigrationJob, QueuedJob, RestoreJob
from jobs.processors.at_target import sessions
from jobs.processors.at_target.sessions import Session
from jobs.queue.connections import borrowed

WRITERS = """
SELECT pid, application_name FROM pg_catalog.pg_stat_activity
WHERE datname = %s AND application_name LIKE 'pgbr/%%' AND usename = current_user
"""


def end(session: Session, name: str, own: str) -> None:
    """In the database called `name`, whose lock is held: all but those with the application name `own`.

    Helpers of a parallel pg_restore outlive a killed worker for as long as their statement takes. With the
    lock ours, no restore or migration may be writing here any more; backups and migrations may be reading.
    """
    for pid, application in session.execute(WRITERS, [name]).fetchall():
        if application != own and _is_writer(application):
            session.execute(sessions.END, [pid])


def _is_writer(application: str) -> bool:
    try:
        job_id = UUID(application.removeprefix("pgbr/"))
    except ValueError:
        return False
    with borrowed():
        if RestoreJob.objects.filter(id=job_id).exists():
            return True
        under_way = QueuedJob.objects.filter(id=job_id, status="active").exists()
        return MigrationJob.objects.filter(id=job_id).exists() and not under_way
