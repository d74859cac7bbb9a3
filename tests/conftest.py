"""Fixtures for the whole suite: real servers, real processes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

from jobs.models import Database, QueuedJob, Storage
from jobs.models.activity import TimelineEvent
from jobs.queue.timeline import note
from jobs.secrets import seal
from tests import s3server, slow
from tests import servers as test_servers
from tests.environment import STATE
from tests.workers import RunningWorker


def pytest_configure() -> None:
    settings.BACKUP_FOLDER, settings.SCRATCH_FOLDER = STATE / "backups", STATE / "scratch"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # many users are made here


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if slow.is_slow(item.path):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("ada", password="correct horse battery", is_staff=True)


@pytest.fixture
def other_user(db: None) -> User:
    return User.objects.create_user("eve", password="correct horse battery", is_staff=True)


@pytest.fixture
def superuser(db: None) -> User:
    return User.objects.create_superuser("root", password="correct horse battery")


Enqueue = Callable[..., QueuedJob]


@pytest.fixture
def enqueue(user: User) -> Enqueue:
    """Put a row into job_queue: `enqueue(queue="backup", payload={…}, **columns)`."""

    def put(queue: str = "backup", payload: Any = None, **columns: Any) -> QueuedJob:
        job = QueuedJob.objects.create(
            id=uuid.uuid4(), queue=queue, user=user, payload={} if payload is None else payload, **columns
        )
        note(job.id, TimelineEvent.ENQUEUED)
        job.refresh_from_db()
        return job

    return put


@pytest.fixture
def make_database(user: User) -> Callable[..., Database]:
    def make(url: str, name: str = "shop", **columns: Any) -> Database:
        return Database.objects.create(user=user, name=name, sealed_url=seal(url), **columns)

    return make


@pytest.fixture
def runs(transactional_db: None) -> Iterator[Callable[[], list[tuple[uuid.UUID, str]]]]:
    """The table into which the no-op processor writes; what it holds, in order."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE runs (n bigserial PRIMARY KEY, job uuid, worker text)")

    def read() -> list[tuple[uuid.UUID, str]]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT job, worker FROM runs ORDER BY n")
            return list(cursor.fetchall())

    yield read
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE runs")


StartWorker = Callable[..., RunningWorker]


@pytest.fixture
def start_worker(transactional_db: None, tmp_path: Path) -> Iterator[StartWorker]:
    """Start real `manage.py runworker` processes on the test database: `start_worker(*arguments, **env)`."""
    started: list[RunningWorker] = []

    def start(*arguments: str, noop: bool = False, **environment: Any) -> RunningWorker:
        log = tmp_path / f"worker-{len(started)}.log"
        worker = RunningWorker(log, list(arguments), noop=noop, environment=environment)
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill_all()


@pytest.fixture
def s3_storage(user: User) -> Storage:
    """A storage row of the user's on the run's SeaweedFS, in a bucket of its own."""
    server = s3server.shared()
    return Storage.objects.create(
        user=user,
        name="bucket",
        endpoint=server.endpoint,
        bucket=server.new_bucket(),
        access_key_id=server.access_key,
        sealed_secret=seal(server.secret_key),
    )


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    """Servers of several majors: `servers.get(17)`."""
    return test_servers
