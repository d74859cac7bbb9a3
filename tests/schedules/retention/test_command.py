"""manage.py prune"""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User

from jobs.models import BackupJob, Database
from schedules.models import Schedule
from tests.commands.conftest import Call, call
from tests.schedules.conftest import MakeSchedule, ago

from .conftest import Backup, remaining

__all__ = ["call"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(
    make_schedule: MakeSchedule, backup: Backup, superuser: User, database: Database
) -> tuple[Schedule, list[BackupJob]]:
    schedule = make_schedule(keep_last=1, keep_failed=0)
    backup(schedule, ago(days=4), status="failed")
    return schedule, [backup(schedule, ago(days=days)) for days in (1, 2)]


Made = tuple[Schedule, list[BackupJob]]


def test_a_dry_run_tells_all_and_deletes_nothing(call: Call, made: Made) -> None:
    said = call("prune", "--dry-run")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].split() == ["SCHEDULE", "STORAGE", "BACKUP", "OF", "SIZE", "FATE"]
    assert "kept: the newest good one, 1 of the last 1" in lines[1]
    assert lines[2].endswith("deleted")
    assert "1 failed runs would go" in lines[3]
    assert len(remaining()) == 3


def test_a_dry_run_as_json(call: Call, made: Made) -> None:
    schedule, backups = made
    kept, gone, failed = [json.loads(line) for line in call("prune", "--dry-run", "--json").out.splitlines()]
    assert (kept["backup"], kept["delete"]) == (str(backups[0].id), False)
    assert (gone["backup"], gone["delete"], gone["reasons"]) == (str(backups[1].id), True, "")
    assert gone.keys() == {"schedule", "storage", "backup", "of", "size", "delete", "reasons"}
    assert failed == {"schedule": schedule.name, "failed_runs": 1, "delete": True}


def test_it_prunes_those_of_the_user_or_the_one_that_is_named(
    call: Call, made: Made, make_schedule: MakeSchedule, backup: Backup, other_user: User
) -> None:
    other = make_schedule("other", keep_last=1)
    for days in (1, 2):
        backup(other, ago(days=days))
    assert "There are no schedules" in call("prune", "--user", other_user.username).out
    assert call("prune", "--schedule", "nightly").out == "nightly: 2 deleted.\n"
    assert json.loads(call("prune", "--json").out.splitlines()[-1]) == {
        "schedule": "other",
        "deleted": 1,
        "error": None,
    }
    assert call("prune", "--schedule", "nothing").code == 2


def test_trouble_is_told_and_ends_it_with_1(call: Call, made: Made) -> None:
    Schedule.objects.update(timezone="Mars/Base")
    for arguments in (["prune"], ["prune", "--dry-run"]):
        said = call(*arguments)
        assert said.code == 1
        assert "Mars/Base" in said.err
    assert BackupJob.objects.filter(status="completed").count() == 2
