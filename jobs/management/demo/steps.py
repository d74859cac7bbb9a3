"""The demo's way: register, back up and restore, both through the queue."""

from __future__ import annotations

import time
from uuid import UUID

from django.contrib.auth.models import User

from jobs import databases, restoring, services
from jobs.management import listing
from jobs.management.demo import sample
from jobs.management.demo.sample import COPY, SOURCE, DemoFailed, Server
from jobs.management.demo.worker import DemoWorker
from jobs.models import BackupJob, Database, RestoreJob
from jobs.models.history import Status
from jobs.restoring import RestoreOrder

NAME = "demo"
LONGEST_SECONDS = 300
LOOK_SECONDS = 0.1


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


def back_up(database: Database, user: User, worker: DemoWorker) -> BackupJob:
    """Raises DemoFailed unless it completed."""
    job_id = services.enqueue_backup(database, {}, by=user)
    _wait(job_id, user, worker)
    return BackupJob.objects.get(id=job_id)


def restore(
    backup: BackupJob, database: Database, user: User, server: Server, worker: DemoWorker
) -> RestoreJob:
    """Into the copy, which is made or replaced. Raises DemoFailed unless it completed."""
    mode = "replace" if sample.is_there(server, COPY) else "new"
    order = RestoreOrder(database=database, mode=mode, target_name=COPY, flags={}, backup=backup)
    job_id = restoring.enqueue_restore(order, by=user)
    _wait(job_id, user, worker)
    for row in restoring.kept(user):
        restoring.drop_kept(row, by=user)
    sample.close_to_public(server, COPY)
    return RestoreJob.objects.get(id=job_id)


def _wait(job_id: UUID, user: User, worker: DemoWorker) -> None:
    until = time.monotonic() + LONGEST_SECONDS
    while not (view := listing.find(user, job_id)).ended:
        worker.check()
        if time.monotonic() > until:
            raise DemoFailed(f"After {LONGEST_SECONDS} s the {view.queue} {job_id} is {view.status} still.")
        time.sleep(LOOK_SECONDS)
    if view.status != Status.COMPLETED:
        raise DemoFailed(f"The {view.queue} {job_id} {view.status}: {view.error}")
