"""Three workers that are killed and come back, and one schedule that is made due forty times."""

from __future__ import annotations

import random
import secrets
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import datetime

import pytest

from jobs.models import BackupJob, QueuedJob
from schedules.models import Schedule
from tests.conftest import StartWorker
from tests.schedules.conftest import MakeSchedule, ago, clock, next_of
from tests.waiting import until
from tests.workers import RunningWorker

pytestmark = pytest.mark.django_db(transaction=True)

TIMES, WORKERS, KILLS = 40, 3, 8
TIMINGS = {"TICK_SECONDS": 0.1, "STALL_LIMIT": 50, "POLL_SECONDS": 0.2}


def test_forty_slots_give_one_job_each_while_workers_are_killed(
    make_schedule: MakeSchedule, start_worker: StartWorker, runs: Callable[[], list[tuple[uuid.UUID, str]]]
) -> None:
    schedule = make_schedule(next_run_at=ago(seconds=0))
    workers = [start_worker("--queue", "backup", noop=True, **TIMINGS) for _ in range(WORKERS)]
    until(lambda: next_of(schedule) > clock(), "the first slot is ticked")
    slots = {schedule.next_run_at}
    chance = random.Random(seed := secrets.randbelow(10**6))  # noqa: S311
    print(f"seed {seed}")
    deadly = set(chance.sample(range(TIMES - 1), KILLS))

    for number in range(TIMES - 1):
        slots.add(_make_due(schedule))
        if number in deadly:
            _replace(workers, chance.randrange(WORKERS), start_worker)
        until(lambda: next_of(schedule) > clock(), f"the tick sees slot {number}")

    until(lambda: not QueuedJob.objects.exclude(status="completed").exists(), "all jobs have ended")
    assert len(slots) == TIMES
    assert Counter(QueuedJob.objects.values_list("slot", flat=True)) == Counter(slots)
    assert Counter(BackupJob.objects.values_list("slot", flat=True)) == Counter(slots)
    assert {job for job, _ in runs()} == set(QueuedJob.objects.values_list("id", flat=True))


def _make_due(schedule: Schedule) -> datetime:
    due = clock()
    Schedule.objects.filter(id=schedule.id).update(next_run_at=due)
    return due


def _replace(workers: list[RunningWorker], place: int, start_worker: StartWorker) -> None:
    """SIGKILL to all of one worker, and another one in its place."""
    workers[place].kill_all()
    workers[place] = start_worker("--queue", "backup", noop=True, **TIMINGS)
