"""Random faults, from a seed, for as long as SOAK_SECONDS says; then nothing may be lost or left."""

from __future__ import annotations

import hashlib
import os
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from jobs import scratch, services
from jobs.models import BackupCopy, BackupJob, Database, QueuedJob, Storage, TimelineLine
from jobs.processors import copies
from jobs.stores import default_storage, store_for
from tests import s3server
from tests.chaos.faults import House
from tests.waiting import until
from tests.worker.conftest import DATA_BYTES
from tests.worker.test_backup_faults import dumps

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]

SECONDS = float(os.environ.get("SOAK_SECONDS", "900"))
SEED = int(os.environ.get("SOAK_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
JOBS, FAULTS = 8, 10  # of one round
OURS = ("A defect in pgbr", "terminated by user")  # no fault of this test is a reason to fail with these
UNFINISHED = {"status__in": ["pending", "active"]}


def test_soak(
    slow_source: str, make_database: Callable[..., Database], s3_storage: Storage, tmp_path: Path
) -> None:
    dice = random.Random(SEED)  # noqa: S311 - to be repeated, not to be secret
    house = House(tmp_path, dice, slow_source)
    Storage.objects.filter(id=s3_storage.id).update(endpoint=house.store.url)
    stores = [default_storage(), Storage.objects.get(id=s3_storage.id)]
    databases = [
        make_database(slow_source, name=f"soak-{seconds}", bandwidth_limit=DATA_BYTES // seconds)
        for seconds in (1, 2, 4, 8)
    ]
    ids: list[uuid.UUID] = []
    deadline = time.monotonic() + SECONDS
    rounds = 0
    print(f"SOAK_SEED={SEED}")
    try:
        while time.monotonic() < deadline:
            house.done.clear()
            house.fill()
            ids += [
                services.enqueue_backup(
                    dice.choice(databases),
                    {"compress": "none"},
                    by=databases[0].user,
                    storage=dice.choice(stores),
                )
                for _ in range(JOBS)
            ]
            _trouble(house, ids)
            check(ids, stores, slow_source)
            rounds += 1
            print(f"round {rounds}: {' '.join(house.done)}", flush=True)
            print(
                Counter((row.status, (row.error or "")[:60]) for row in BackupJob.objects.all()), flush=True
            )
    except BaseException:
        print(
            f"in round {rounds + 1}: {' '.join(house.done)}; SOAK_SEED={SEED}; logs in {tmp_path}", flush=True
        )
        raise
    finally:
        house.close()


def _trouble(house: House, ids: list[uuid.UUID]) -> None:
    for _ in range(FAULTS):
        house.pause(1.5)
        house.anything()
        connection.close()  # it may have died with the server
        if house.dice.random() < 0.2:
            _cancel_any(house.dice, ids)
        house.fill()
    house.heal()
    connection.close()
    house.fill()


def _cancel_any(dice: random.Random, ids: list[uuid.UUID]) -> None:
    row = QueuedJob.objects.filter(id=dice.choice(ids[-JOBS:])).select_related("user").get()
    with suppress(services.ServiceError):  # it has ended already
        services.cancel_job(row.id, by=row.user)


def check(ids: list[uuid.UUID], stores: list[Storage], source: str) -> None:
    until(lambda: not QueuedJob.objects.filter(**UNFINISHED).exists(), "every job has ended", seconds=120)
    until(lambda: not any(dumps(job) for job in ids), "no pg_dump is left")
    until(lambda: not sessions(source), "no session is left at the source")
    _swept()
    assert sorted(BackupJob.objects.values_list("id", flat=True)) == sorted(ids)
    for queued in QueuedJob.objects.all():
        row = BackupJob.objects.get(id=queued.id)
        assert (row.status, row.error) == (queued.status, queued.last_error if row.error else row.error)
        assert row.completed_at is not None
        assert row.error or row.status == "completed"
        assert not any(words in (row.error or "") for words in OURS), row.error
        ends = TimelineLine.objects.filter(
            job_id=row.id, event__in=["completed", "failed", "cancelled"]
        ).values_list("event", flat=True)
        assert list(ends) == [row.status]
    for storage in stores:
        good = BackupJob.objects.filter(status="completed", copies__storage=storage)
        expected = {f"{row.storage_key}{end}" for row in good for end in ("", ".json", ".globals.sql")}
        assert {info.key for info in store_for(storage).list("")} == expected
        for row in good.order_by("-completed_at")[: 2 * JOBS]:
            assert stored(storage, row) == (row.sha256, row.size)
    assert (
        BackupCopy.objects.filter(state="good").count()
        == BackupJob.objects.filter(status="completed").count()
    )
    assert not BackupCopy.objects.exclude(state="good").exists()
    assert not [str(path) for path in Path(settings.BACKUP_FOLDER).rglob("*.part")]
    assert not s3server.shared().open_uploads(stores[1].bucket)


def _swept() -> None:
    """The sweeps, which a worker runs once a minute, until they have nothing to do."""

    def clean() -> bool:
        copies.sweep_unfinished()
        scratch.sweep_orphans()
        left = list(Path(settings.SCRATCH_FOLDER).iterdir())
        return not left and not BackupCopy.objects.filter(state="writing").exists()

    until(clean, "the sweeps have cleared all away", seconds=90)


def sessions(source: str) -> list[str]:
    with psycopg.connect(source, autocommit=True) as session:
        found = session.execute(
            "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'pgbr/%'"
            " AND datname = current_database()"
        )
        return [name for (name,) in found]


def stored(storage: Storage, row: BackupJob) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for chunk in store_for(storage).read(row.storage_key or ""):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
