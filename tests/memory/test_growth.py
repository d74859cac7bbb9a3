"""A worker's memory stays flat however large the database is; `python -m bench.memory` shows it at 2 GB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from django.contrib.auth.models import User

from bench import data
from bench.processes import GROWTH_LIMIT, MB, at_rest, own_processes, watched
from jobs import services
from jobs.models import BackupJob, Database, Storage, WorkerProcess
from jobs.stores import default_storage
from tests.conftest import StartWorker
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

MEGABYTES = 200  # some 70 MB stored: many times what is ever held in memory
PROCESSES = 4  # beside the supervisor


@pytest.fixture(scope="module")
def large_database(servers: ModuleType) -> Iterator[str]:
    server = servers.get(17)
    url = server.create_database("large")
    data.fill(url, MEGABYTES)
    yield url
    server.drop_database("large")


@pytest.fixture(params=["folder", "S3"])
def storage(request: pytest.FixtureRequest, user: User) -> Storage:
    if request.param == "folder":
        return default_storage()
    chosen: Storage = request.getfixturevalue("s3_storage")
    return chosen


def test_a_worker_grows_by_at_most_60_mb_during_a_backup(
    large_database: str,
    storage: Storage,
    make_database: Callable[..., Database],
    user: User,
    start_worker: StartWorker,
) -> None:
    database = make_database(large_database)
    worker = start_worker()
    until(lambda: WorkerProcess.objects.count() == PROCESSES, "all of the worker has signed on")
    pids = own_processes(worker.pid)
    idle = at_rest(pids)
    with watched(pids) as watch:
        job_id = services.enqueue_backup(database, {}, by=user, storage=storage)
        until(lambda: BackupJob.objects.filter(id=job_id, completed_at__isnull=False), "it ends", seconds=120)
    row = BackupJob.objects.get(id=job_id)
    assert row.status == "completed", row.error
    assert (row.size or 0) > GROWTH_LIMIT * MB, "too small to show anything"
    assert watch.samples > 5
    assert watch.highest.total - idle.total <= GROWTH_LIMIT, (idle, watch.highest)
