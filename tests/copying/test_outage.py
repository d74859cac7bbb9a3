"""The second storage is away for an hour: no backup fails, the copies catch up, either is good to restore."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F
from django.utils import timezone

from jobs.copying import copy_due
from jobs.models import BackupCopy, BackupJob, Storage
from jobs.secrets import seal
from jobs.services import enqueue_backup
from jobs.stores import store_for
from schedules.copies import plan_missing
from schedules.health import health
from schedules.models import Schedule, ScheduleStorage
from tests import sample, servers
from tests.processors.conftest import Backups, Source
from tests.processors.conftest import backups as backups
from tests.processors.conftest import make_source as make_source
from tests.processors.conftest import shop as shop
from tests.processors.conftest import tool_folders as tool_folders
from tests.restoring.conftest import Restores, completed
from tests.restoring.conftest import restores as restores
from tests.s3server import S3Server

from .conftest import objects

HOUR = timedelta(hours=1)
ROUNDS = 6  # of ten minutes


@pytest.fixture
def away() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def bucket(backups: Backups, away: S3Server) -> Storage:
    return Storage.objects.create(
        user=backups.user,
        name="off site",
        endpoint=away.endpoint,
        bucket=away.new_bucket(),
        access_key_id=away.access_key,
        sealed_secret=seal(away.secret_key),
    )


@pytest.fixture
def schedule(backups: Backups, shop: Source, nas: Storage, bucket: Storage) -> Schedule:
    database = backups.register(shop.url, name="shop")
    made = Schedule.objects.create(
        user=backups.user, database=database, name="nightly", cron_expression="@daily"
    )
    for position, storage in enumerate((nas, bucket)):
        ScheduleStorage.objects.create(schedule=made, storage=storage, position=position)
    return made


def backed_up(backups: Backups, schedule: Schedule, storage: Storage) -> BackupJob:
    slot = timezone.now()
    job_id = enqueue_backup(
        schedule.database, {}, by=backups.user, storage=storage, schedule_id=schedule.id, slot=slot
    )
    return backups.finish(job_id)


def shift(time: timedelta) -> None:
    """As if it had passed."""
    BackupCopy.objects.filter(is_first=False).update(
        created_at=F("created_at") - time, next_attempt_at=F("next_attempt_at") - time
    )


def lagging(schedule: Schedule) -> int:
    return health(Schedule.objects.all())[schedule.id].copies_lagging


def restored(restores: Restores, backup: BackupJob, source: Source) -> None:
    server = servers.get(17)
    name = restores.name()
    completed(restores.take(restores.at(server, name), backup, "new", name))
    assert sample.rows(server, name) == sample.rows(source.server, source.name)


def test_an_hour_without_the_second_storage(
    backups: Backups,
    schedule: Schedule,
    nas: Storage,
    bucket: Storage,
    away: S3Server,
    shop: Source,
    restores: Restores,
) -> None:
    away.kill()
    rows = list[BackupJob]()
    for _ in range(ROUNDS):
        if len(rows) < 2:
            rows.append(backed_up(backups, schedule, nas))
        plan_missing()
        assert copy_due() == 0
        shift(HOUR / ROUNDS)
    assert {row.status for row in rows} == {"completed"}
    waiting = BackupCopy.objects.filter(storage=bucket)
    assert {copy.state for copy in waiting} == {"failed"}
    assert all("off site" in (copy.error or "") for copy in waiting)
    assert lagging(schedule) == 2
    away.restart()
    shift(HOUR)
    assert copy_due() == 2
    assert {copy.state for copy in waiting.all()} == {"good"}
    assert lagging(schedule) == 0
    assert len(objects(bucket)) == len(objects(nas)) == 6

    kept = Path(nas.folder).rename(Path(nas.folder).with_name(uuid.uuid4().hex))
    Path(nas.folder).mkdir()
    restored(restores, rows[0], shop)
    Path(nas.folder).rmdir()
    kept.rename(nas.folder)
    for key in objects(bucket):
        store_for(bucket).delete(key)
    restored(restores, rows[1], shop)
