"""Random histories as rows and objects, pruned for real."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.models import BackupCopy, BackupJob, Storage
from jobs.models.storage import CopyState
from schedules import prune
from schedules.models import Schedule
from schedules.plans import rules
from schedules.retention import Policy
from tests.schedules.conftest import MakeSchedule, ago

from .conftest import Backup, objects

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Run:
    hours: int
    status: str
    whose: str
    pinned: bool
    trashed: bool
    lost: bool


runs = st.builds(
    Run,
    hours=st.integers(1, 24 * 60),
    status=st.sampled_from(["completed"] * 5 + ["failed", "cancelled"]),
    whose=st.sampled_from(["mine"] * 5 + ["other", "manual"]),
    pinned=st.sampled_from([False] * 4 + [True]),
    trashed=st.sampled_from([False] * 5 + [True]),
    lost=st.sampled_from([False] * 5 + [True]),
)
numbers = st.none() | st.integers(1, 3)
policies = st.builds(Policy, numbers, numbers, numbers, numbers, numbers, numbers, numbers, numbers)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=st.lists(runs, max_size=9, unique_by=lambda run: run.hours), policy=policies, keep_failed=numbers
)
def test_the_newest_good_one_survives_and_nothing_pinned_or_foreign_is_touched(
    history: list[Run],
    policy: Policy,
    keep_failed: int | None,
    make_schedule: MakeSchedule,
    backup: Backup,
    storage: Storage,
) -> None:
    with transaction.atomic():
        mine = make_schedule(keep_failed=keep_failed, **rules(policy))
        whose = {"mine": mine, "other": make_schedule("other", keep_last=1), "manual": None}
        made = {run: _made(run, backup, whose[run.whose]) for run in history}
        prune.prune(mine)
        stays = set(BackupJob.objects.values_list("id", flat=True))
        lying = objects(storage)
        for run, row in made.items():
            if run.pinned or run.trashed or run.whose != "mine" or (run.lost and run.status == "completed"):
                assert row.id in stays, run
        good = [run for run in history if _is_good(run)]
        if good:
            newest = made[min(good, key=lambda run: run.hours)]
            assert str(newest.id) in lying
            assert BackupCopy.objects.get(backup=newest).state == CopyState.GOOD
        for run in good:
            assert (made[run].id in stays) == (str(made[run].id) in lying), run
        transaction.set_rollback(True)


def _is_good(run: Run) -> bool:
    return run.status == "completed" and run.whose == "mine" and not (run.trashed or run.lost)


def _made(run: Run, backup: Backup, schedule: Schedule | None) -> BackupJob:
    trashed = {"trashed_at": ago(days=1)} if run.trashed else {}
    row = backup(schedule, ago(hours=run.hours), status=run.status, pinned=run.pinned, **trashed)
    if run.lost:
        row.copies.update(state=CopyState.FAILED, error="The object is gone")
    return row
