"""Processors that the registry can be given instead of the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from jobs.processors.base import JobFailed, Outcome
from jobs.processors.control import Control
from jobs.queue.connections import borrowed
from jobs.queue.rows import Job

STORED: dict[str, Any] = {"storage_key": "none", "size": 1, "sha256": "0" * 64}


class Noop:
    """Writes one line a run into the table `runs`, sleeps `seconds` of the payload, fails if it says so."""

    @contextmanager
    def work(self, job: Job, control: Control) -> Iterator[Outcome]:
        with borrowed(), connection.cursor() as cursor:
            cursor.execute("INSERT INTO runs (job, worker) VALUES (%s, %s)", [job.id, job.worker])
        control.wait(job.payload.get("seconds", 0))
        control.check()
        if "fail" in job.payload:
            raise JobFailed(job.payload["fail"])
        yield Outcome(STORED if job.queue == "backup" else {})
