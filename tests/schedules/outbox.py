"""A schedule with a monitor, and rows of its history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from jobs.models import BackupJob, QueuedJob
from schedules.models import Schedule
from tests.processors_for_tests import STORED
from tests.schedules.conftest import MakeSchedule
from tests.schedules.monitor import Monitor

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor() as started:
        yield started


@pytest.fixture
def pinged(make_schedule: MakeSchedule, monitor: Monitor) -> Schedule:
    urls = {f"ping_{kind}_url": f"{monitor.url}/{kind}" for kind in ("start", "success", "failure")}
    return make_schedule(**urls)


def run_of(schedule: Schedule, status: str = "completed", **columns: Any) -> BackupJob:
    """A row of the history, and of the queue if it has ended. Times are ages: `started_at=HOUR` is an hour
    ago, None never."""
    ended = status in ("completed", "failed", "cancelled")
    ages = {"created_at": timedelta(minutes=3), "started_at": timedelta(minutes=2)}
    ages |= {"completed_at": timedelta(minutes=1)} if ended else {}
    row = ages | (STORED if status == "completed" else {}) | columns
    for name, value in row.items():
        row[name] = Now() - value if isinstance(value, timedelta) else value
    job = QueuedJob(user=schedule.user, queue="backup", schedule_id=schedule.id, created_at=row["created_at"])
    if ended:
        job.status, job.completed_at = status, row["completed_at"]
        job.save()
    return BackupJob.objects.create(
        id=job.id, user=schedule.user, database=schedule.database, database_name="shop",
        schedule_id=schedule.id, status=status, **row,
    )  # fmt: skip
