"""Rows of job_queue may be written by anybody who may write to pgbr's own database."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from jobs.models import QueuedJob
from jobs.models.history import HISTORY
from jobs.queue.claim import claim
from jobs.worker.runner import JobRun
from tests.admin.conftest import Belongings
from tests.processors.conftest import close_borrowed, in_a_thread

NAMES = [
    "database_id", "database_name", "source_database_id", "source_database_name", "target_database_id",
    "target_database_name", "backup_id", "upload_id", "source_name", "mode", "target_name", "flags",
]  # fmt: skip
QUEUES = ["backup", "restore", "migration"]


def nested(depth: int, name: str) -> str:
    return f'{{"{name}": {"[" * depth}{"]" * depth}}}'


PAYLOADS = {
    "a number of 5000 digits": '{"n": 1' + "0" * 5000 + "}",
    "too many lists to read": "[" * 5000 + "]" * 5000,
    "almost too many lists": nested(900, "flags"),
    "lists for a name": nested(300, "database_name"),
    "no object": "[1, 2]",
    "a number": "17",
    "nothing": "null",
    "names that are none": json.dumps({name: {"a": [1]} for name in NAMES}),
    "flags that are none": json.dumps({"flags": {"jobs": "many", "format": 3, "tables": {"x": 1}}}),
    "long names": json.dumps(dict.fromkeys(NAMES, "x" * 100_000)),
}


def forge(job: QueuedJob, queue: str, payload: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE job_queue SET queue = %s, payload = %s::jsonb WHERE id = %s", [queue, payload, job.pk]
        )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("queue", QUEUES)
def test_a_forged_payload_fails_its_job_and_no_page(ada: Belongings, queue: str, payload: str) -> None:
    forge(ada.waiting, queue, PAYLOADS[payload])
    history = HISTORY[queue]._meta.model_name
    pages = ["/admin/", "/admin/jobs/queuedjob/", f"/admin/jobs/queuedjob/{ada.waiting.pk}/change/"]
    for page in pages:
        assert ada.client.get(page).status_code == 200, page
    (job,) = claim(queue, 1, "w")
    in_a_thread(JobRun(job).run)
    in_a_thread(close_borrowed)
    row: Any = HISTORY[queue]._default_manager.get(pk=ada.waiting.pk)
    assert row.status == "failed"
    assert "defect" not in row.error
    for page in [*pages, f"/admin/jobs/{history}/", f"/admin/jobs/{history}/{row.pk}/change/"]:
        assert ada.client.get(page).status_code == 200, page
