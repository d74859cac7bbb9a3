"""A claim that got through to the database while its answer did not."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from django.db import connection

from jobs.models import QueuedJob, TimelineLine
from tests.conftest import Enqueue, StartWorker
from tests.proxy import Proxy
from tests.waiting import until
from tests.workers import database_url

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_an_unanswered_claim_gave_is_run_at_once_and_is_nobodys_stall(
    enqueue: Enqueue, start_worker: StartWorker, runs: Callable[[], list[tuple[uuid.UUID, str]]]
) -> None:
    job = enqueue()
    port = connection.settings_dict["PORT"]
    with Proxy(("127.0.0.1", int(port))) as proxy:
        proxy.lose_answer(b"WITH due AS MATERIALIZED")
        url = database_url().replace(f":{port}/", f":{proxy.port}/")
        start_worker("--queue", "backup", noop=True, DATABASE_URL=url, STALE_SECONDS=60)
        until(lambda: QueuedJob.objects.get(id=job.id).status == "completed", "the job has run")
    assert proxy.lost.is_set()
    assert (QueuedJob.objects.get(id=job.id).attempts, QueuedJob.objects.get(id=job.id).stalls) == (1, 0)
    assert [ran for ran, _ in runs()] == [job.id]
    lines = TimelineLine.objects.filter(job_id=job.id).order_by("id").values_list("event", flat=True)
    assert list(lines) == ["enqueued", "claimed", "handed_back", "claimed", "completed"]
