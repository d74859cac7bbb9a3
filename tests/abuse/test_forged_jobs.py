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


def forge(by: Belongings, queue: str, payload: str) -> QueuedJob:
    job = QueuedJob.objects.create(user=by.user, queue=queue)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE job_queue SET payload = %s::jsonb WHERE id = %s", [payload, job.pk])
    return job


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("queue", QUEUES)
def test_a_forged_payload_fails_its_job_and_no_page(ada: Belongings, queue: str) -> None:
    ada.waiting.delete()
    forged = {name: forge(ada, queue, payload) for name, payload in PAYLOADS.items()}
    history = HISTORY[queue]._meta.model_name
    lists = ["/admin/", "/admin/jobs/queuedjob/", f"/admin/jobs/{history}/"]
    pages = [f"/admin/jobs/queuedjob/{job.pk}/change/" for job in forged.values()]
    for page in [*lists, *pages]:
        assert ada.client.get(page).status_code == 200, page
    for claimed in claim(queue, len(forged), "w"):
        in_a_thread(JobRun(claimed).run)
    in_a_thread(close_borrowed)
    for name, job in forged.items():
        row: Any = HISTORY[queue]._default_manager.get(pk=job.pk)
        assert row.status == "failed", name
        assert "defect" not in row.error, name
        pages.append(f"/admin/jobs/{history}/{job.pk}/change/")
    for page in [*lists, *pages]:
        assert ada.client.get(page).status_code == 200, page
