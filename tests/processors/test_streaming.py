"""A dump on its way: how fast, how far, what interrupts it and what does not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from django.db.utils import OperationalError
from django.utils import timezone

from jobs import services
from jobs.models import BackupCopy, BackupJob, QueuedJob, Storage
from jobs.processors import backup, copies
from jobs.processors.control import Control, Stop, Stopped
from jobs.processors.manifest import manifest
from jobs.queue import connections
from tests import s3server
from tests.waiting import until

from .conftest import NOISE_BYTES, Backups, Source, in_a_thread


def progress(row: BackupJob) -> dict[str, Any]:
    return BackupJob.objects.get(id=row.id).progress or {}


def assert_nothing_left(backups: Backups, storage: Storage | None = None) -> None:
    assert (backups.files(), backups.scratch(), BackupCopy.objects.count()) == (set(), [], 0)
    if storage is not None:
        weed = s3server.shared()
        assert (weed.keys(storage.bucket), weed.open_uploads(storage.bucket)) == ([], [])


def test_the_bandwidth_limit_holds_and_progress_tells_the_rate(backups: Backups, noise: Source) -> None:
    limit = NOISE_BYTES // 3
    row = backups.take(noise.url, {"compress": "none"}, bandwidth_limit=limit)
    backups.assert_whole(row)
    took = (row.completed_at or timezone.now()) - (row.started_at or timezone.now())
    assert NOISE_BYTES / took.total_seconds() < limit
    seen = progress(row)
    assert 0 < seen["bytes"] <= (row.size or 0)
    assert 0 < seen["rate"] < 2 * limit
    assert 0 < seen["share"] <= 1
    assert seen["table"] == "public.noise"
    assert (seen["tables"], seen["phase"]) == (1, "dumping")


def test_a_bucket_that_is_away_for_seconds_in_mid_upload_is_waited_for(
    backups: Backups, noise: Source, s3_storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    database = backups.register(noise.url, bandwidth_limit=NOISE_BYTES // 3)
    job_id = backups.order(database, {"compress": "none"}, s3_storage)
    thread = backups.start()
    weed = s3server.shared()
    until(lambda: BackupCopy.objects.filter(backup=job_id).exclude(upload_token=""), "the upload has begun")
    weed.kill()
    until(lambda: "Trying again for up to" in caplog.text, "the upload meets the outage")
    weed.restart()
    thread.join(60)
    row = BackupJob.objects.get(id=job_id)
    backups.assert_whole(row)
    assert len(backups.artifact(row)) == row.size
    assert weed.open_uploads(s3_storage.bucket) == []


def test_a_cancelled_upload_is_taken_away(backups: Backups, noise: Source, s3_storage: Storage) -> None:
    database = backups.register(noise.url, bandwidth_limit=NOISE_BYTES // 3)
    job_id = backups.order(database, {"compress": "none"}, s3_storage)
    thread = backups.start()
    until(lambda: BackupCopy.objects.filter(backup=job_id).exclude(upload_token=""), "the upload has begun")
    assert services.cancel_job(job_id, by=backups.user) == "requested"
    asked = time.monotonic()
    backups.runs[-1].control.stop(Stop.CANCEL)  # as the queue's process does when it hears of it
    thread.join(30)
    assert time.monotonic() - asked < 10
    row = BackupJob.objects.get(id=job_id)
    assert (row.status, row.error) == ("cancelled", "Cancelled.")
    assert_nothing_left(backups, s3_storage)


@pytest.mark.parametrize("where", ["folder", "s3"])
def test_a_worker_that_lost_its_claim_takes_its_object_away_after_the_sweep_took_the_row(
    backups: Backups,
    noise: Source,
    where: str,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = request.getfixturevalue("s3_storage") if where == "s3" else None
    database = backups.register(noise.url, bandwidth_limit=NOISE_BYTES // 2)
    job_id = backups.order(database, {"compress": "none"}, storage)
    thread = backups.start()
    until(lambda: BackupCopy.objects.filter(backup=job_id).exclude(upload_token=""), "the dump has begun")
    QueuedJob.objects.filter(id=job_id).update(status="cancelled", claim_id=None)  # as if reaped and ended
    in_a_thread(copies.sweep_unfinished)
    assert BackupCopy.objects.count() == 0
    thread.join(60)
    assert "claim lost: nothing was written" in caplog.text
    assert "defect" not in caplog.text
    assert_nothing_left(backups, storage)


def test_a_claim_lost_after_the_artifact_was_stored_leaves_no_manifest(
    backups: Backups, noise: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep comes between the artifact and its manifest, which would be left alone for ever."""

    def reaped_and_swept() -> None:
        QueuedJob.objects.update(status="cancelled", claim_id=None)
        copies.sweep_unfinished()

    def meanwhile(*arguments: Any, **values: Any) -> dict[str, Any]:
        in_a_thread(reaped_and_swept)
        return manifest(*arguments, **values)

    monkeypatch.setattr(backup, "manifest", meanwhile)
    backups.order(backups.register(noise.url))
    backups.start().join(60)
    assert_nothing_left(backups)


def test_every_write_of_a_backup_outlives_a_database_that_is_away(
    backups: Backups, noise: Source, s3_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one meets it once."""
    turns: Iterator[int] = itertools.count()
    real: Callable[[], AbstractContextManager[None]] = connections.borrowed

    @contextmanager
    def flaky() -> Iterator[None]:
        if next(turns) % 2 == 0:
            raise OperationalError("the server is away")
        with real():
            yield

    monkeypatch.setattr(connections, "borrowed", flaky)
    row = backups.take(noise.url, {"compress": "none"}, s3_storage)
    backups.assert_whole(row)
    assert next(turns) >= 10


def test_told_to_stop_while_the_database_is_away_a_job_is_stopped_and_has_not_failed() -> None:
    control, seen = Control(), []

    def write() -> None:
        control.stop(Stop.SHUTDOWN)
        raise OperationalError("the server is away")

    def job() -> None:
        with pytest.raises(Stopped) as stopped:
            control.patiently(write)
        seen.append(stopped.value.why)

    in_a_thread(job)
    assert seen == [Stop.SHUTDOWN]
