"""Real workers and real outages: what one leaves unfinished the next one finishes."""

from __future__ import annotations

import signal

import pytest
from django.utils import timezone

from jobs.copying.lease import take
from jobs.models import BackupCopy, BackupJob, Storage
from tests import s3server
from tests.conftest import StartWorker
from tests.proxy import Proxy
from tests.storage.stores import PART, content
from tests.waiting import until
from tests.workers import RunningWorker

from .conftest import MakeBackup, due, objects, planned, read

pytestmark = pytest.mark.django_db(transaction=True)
ANSWERS = 8  # of the store, after which an upload is under way


def stopped_in_the_middle(worker: RunningWorker, proxy: Proxy, copy: BackupCopy) -> None:
    def uploading() -> bool:
        copy.refresh_from_db()
        assert copy.state == "writing", (copy.state, copy.error)
        return proxy.stalled and bool(copy.upload_token)

    until(uploading, "the copy is under way, and the store silent")
    assert worker.process.poll() is None


def test_killed_in_the_middle_another_worker_makes_the_copy_after_the_lease(
    stored: MakeBackup, s3_storage: Storage, start_worker: StartWorker
) -> None:
    weed = s3server.shared()
    with Proxy(("127.0.0.1", weed.port)) as proxy:
        Storage.objects.filter(id=s3_storage.id).update(endpoint=proxy.url)
        backup = stored(content(4 * PART))
        copy = planned(backup, s3_storage)
        proxy.stall_after(ANSWERS)
        first = start_worker("--queue", "restore")
        stopped_in_the_middle(first, proxy, copy)
        first.kill_all()
        proxy.cut()
        proxy.heal()
        copy.refresh_from_db()
        assert len(weed.open_uploads(s3_storage.bucket)) == 1
        assert copy.next_attempt_at is not None
        assert copy.next_attempt_at > timezone.now()
        assert take() is None  # as long as the lease holds
        due(copy)
        start_worker("--queue", "restore")
        until(lambda: BackupCopy.objects.get(id=copy.id).state == "good", "the copy is made")
        copy = BackupCopy.objects.select_related("storage").get(id=copy.id)
        assert read(copy) == content(4 * PART)
    assert len(objects(s3_storage)) == 3
    assert weed.open_uploads(s3_storage.bucket) == []
    assert BackupJob.objects.get(id=backup.id).status == "completed"


def test_sigterm_gives_the_copy_back_and_leaves_nothing(
    stored: MakeBackup, s3_storage: Storage, start_worker: StartWorker
) -> None:
    weed = s3server.shared()
    with Proxy(("127.0.0.1", weed.port)) as proxy:
        Storage.objects.filter(id=s3_storage.id).update(endpoint=proxy.url)
        copy = planned(stored(content(8 * PART)), s3_storage)
        proxy.stall_after(ANSWERS)
        worker = start_worker("--queue", "restore")
        stopped_in_the_middle(worker, proxy, copy)
        worker.process.send_signal(signal.SIGTERM)
        proxy.heal()
        assert worker.process.wait(30) == 0
    copy.refresh_from_db()
    assert (copy.state, copy.claim_id, copy.attempts, copy.error) == ("writing", None, 0, None)
    assert copy.next_attempt_at is not None
    assert copy.next_attempt_at <= timezone.now()
    assert weed.open_uploads(s3_storage.bucket) == []
    assert objects(s3_storage) == set()
