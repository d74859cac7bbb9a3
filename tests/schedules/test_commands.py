"""add_schedule, list_schedules and run_schedule."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import databases
from jobs.models import BackupJob, Database, QueuedJob, Storage
from jobs.stores import default_storage
from schedules import cron, services
from schedules.health import Health
from schedules.management import listing
from schedules.models import Schedule
from schedules.retention import Policy
from schedules.services import Plan, Target
from schedules.tick import tick
from schedules.wording import in_words
from tests.commands.conftest import Call, call, manage, shop, url
from tests.conftest import StartWorker
from tests.schedules.conftest import NIGHTLY, ago, clock

__all__ = ["call", "manage", "shop", "url"]

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
AT_NIGHT = in_words("30 2 * * *")
ADD = ("add_schedule", "nightly", "--database", "shop", "--cron", "30 2 * * *")


def test_everything_can_be_said(call: Call, shop: str, superuser: User) -> None:
    bucket = Storage.objects.create(user=superuser, name="bucket", bucket="b")

    said = call(
        *ADD, "--timezone", "Europe/Berlin", "--storage", "bucket", "--storage", default_storage().name,
        "--skip-missed", "--skip-overlap", "--disabled", "--keep-last=1", "--keep-days=2", "--keep-hourly=3",
        "--keep-daily=4", "--keep-weekly=5", "--keep-monthly=6", "--keep-yearly=7", "--keep-bytes=8",
        "--keep-failed=0", "--ping-start=https://a.example/", "--ping-success=https://b.example/",
        "--ping-failure=https://c.example/", "--format=directory", "--jobs=2",
    )  # fmt: skip

    assert said.code == 0, said
    schedule = Schedule.objects.get()
    assert services.plan_of(schedule) == Plan(
        name="nightly", cron_expression="30 2 * * *", timezone="Europe/Berlin", enabled=False,
        flags={"format": "directory", "jobs": 2}, skip_missed=True, overlap="skip",
        policy=Policy(1, 2, 3, 4, 5, 6, 7, 8), keep_failed=0,
        storages=(Target(bucket), Target(default_storage())), ping_start_url="https://a.example/",
        ping_success_url="https://b.example/", ping_failure_url="https://c.example/",
    )  # fmt: skip
    assert (schedule.user, schedule.database.name) == (superuser, "shop")


def test_little_need_be_said(call: Call, shop: str) -> None:
    said = call(*ADD)

    schedule = Schedule.objects.get()
    assert services.plan_of(schedule) == Plan("nightly", "30 2 * * *")
    assert said.out.splitlines() == [
        f"nightly: backs up shop. {AT_NIGHT} (UTC)",
        f"  next run: {schedule.next_run_at:%Y-%m-%d %H:%M:%S}Z",
    ]


def test_json_tells_the_next_run_and_nothing_else(call: Call, shop: str) -> None:
    said = call(*ADD, "--keep-last=7", "--json")

    (told,) = said.objects
    schedule = Schedule.objects.get()
    assert schedule.next_run_at is not None
    assert told["id"] == str(schedule.id)
    assert (told["name"], told["database"], told["keep"]) == ("nightly", "shop", {"last": 7})
    assert told["next_run_at"] == schedule.next_run_at.isoformat()
    assert (told["state"], told["last_success"], told["broken"]) == ("no backup yet", None, None)


def test_what_may_not_be_meant_is_remarked(call: Call, shop: str) -> None:
    said = call("add_schedule", "odd", "--database", "shop", "--cron", "0 3 1 * mon", "--json")

    assert "warning: Day of month and day of week are both set" in said.err
    assert len(said.objects) == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--database", "nosuch"], "No database is called 'nosuch'. Registered: shop"),
        (["--cron", "0 3 * *"], "five fields"),
        (["--cron", "0 0 31 2 *"], "31"),
        (["--timezone", "Mars/Phobos"], "Mars/Phobos"),
        (["--storage", "attic"], "No storage is called 'attic'"),
        (["--if-exists"], "if_exists needs clean"),
        (["--keep-failed=-1"], "keep_failed must be a whole number from 0"),
        (["--ping-success=https://me:pw@host/"], "must hold no user or password"),
        (["--user", "nobody"], "No user is called 'nobody'"),
        (["--keep-last=0"], "must be 1 or more"),
    ],
)
def test_refusal_says_what_is_wrong_and_makes_nothing(
    call: Call, shop: str, arguments: list[str], expected: str
) -> None:
    said = call(*ADD, *arguments)

    assert expected in said.err
    assert said.out == ""
    assert said.code != 0
    assert not Schedule.objects.exists()
    if "1 or more" not in expected:
        assert said.code == 2


def test_taken_name_is_refused(call: Call, shop: str) -> None:
    call(*ADD)

    said = call(*ADD)

    assert (said.code, Schedule.objects.count()) == (2, 1)
    assert "a schedule called 'nightly' already" in said.err


# list_schedules ---------------------------------------------------------------------------------


@pytest.fixture
def several(database: Database, user: User) -> list[Schedule]:
    return [
        services.create(database, replace(NIGHTLY, name=name, enabled=name != "off"), by=user)
        for name in ("broken", "failing", "fine", "off")
    ]


def test_list_says_how_each_does(call: Call, several: list[Schedule], user: User) -> None:
    broken, failing, fine, _ = several
    Schedule.objects.filter(id=broken.id).update(cron_expression="nonsense", next_run_at=ago(minutes=9))
    tick()
    for schedule, status in ((failing, "failed"), (fine, "completed")):
        BackupJob.objects.create(
            user=user, database_name="shop", status=status, schedule_id=schedule.id, storage_key="k", size=1,
            sha256="0", completed_at=clock() - timedelta(hours=1),
        )  # fmt: skip

    said = call("list_schedules", "--user", "ada")

    lines = said.out.splitlines()
    assert [lines[n].split()[0] for n in (0, 1, 3, 4, 5)] == ["NAME", "broken", "failing", "fine", "off"]
    assert [lines[n].split()[-1] for n in (1, 3, 4, 5)] == ["overdue", "failed", "healthy", "off"]
    assert lines[1].endswith("broken, overdue")
    assert "fields" in lines[2]
    assert f"{AT_NIGHT} (Europe/Berlin)" in lines[4]
    assert f"{cron.next_run('30 2 * * *', 'Europe/Berlin', clock()):%Y-%m-%d %H:%M}" in lines[4]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"failures": 2, "copies_lagging": 1}, "failing: 2 times, 1 copy lagging"),
        ({"copies_lagging": 3}, "3 copies lagging"),
        ({"running": True}, "running"),
        ({"last_success": NOON}, "healthy"),
        ({}, "no backup yet"),
    ],
)
def test_health_in_words(columns: dict[str, Any], words: str) -> None:
    found = Health(None, None, 0, "", None, False, False, 0, None)

    assert listing.state(Schedule(), replace(found, **columns)) == words


def test_retention_that_fails_is_told() -> None:
    found = Health(NOON, None, 0, "", None, False, False, 0, None)

    assert listing.state(Schedule(retention_error="The store refuses."), found) == "retention failing"


def test_list_as_json_has_one_object_a_line(call: Call, several: list[Schedule]) -> None:
    told = call("list_schedules", "--user", "ada", "--json").objects

    assert [each["name"] for each in told] == ["broken", "failing", "fine", "off"]
    assert {each["words"] for each in told} == {f"{AT_NIGHT} (Europe/Berlin)"}


def test_list_takes_few_queries_for_many(call: Call, several: list[Schedule]) -> None:
    with CaptureQueriesContext(connection) as queries:
        call("list_schedules", "--user", "ada", "--json")

    assert len(queries) <= 4


def test_others_schedules_are_not_listed(call: Call, several: list[Schedule], other_user: User) -> None:
    assert call("list_schedules", "--user", "eve").out.startswith("No schedules yet")


# run_schedule -----------------------------------------------------------------------------------


def test_run_queues_a_job_at_once(call: Call, several: list[Schedule]) -> None:
    said = call("run_schedule", "fine", "--user", "ada", "--json")

    (told,) = said.objects
    job = QueuedJob.objects.get()
    assert (told["id"], told["status"], told["database"]) == (str(job.id), "pending", "shop")
    assert (job.schedule_id, job.slot) == (several[2].id, None)


def test_unknown_schedule_is_refused(call: Call, several: list[Schedule]) -> None:
    said = call("run_schedule", "fin", "--user", "ada")

    assert said.code == 2
    assert "No schedule is called 'fin'. There is: broken, failing, fine, off" in said.err
    assert not QueuedJob.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_made_run_and_waited_for(manage: Call, start_worker: StartWorker, superuser: User, url: str) -> None:
    databases.register(superuser, "shop", url, by=superuser)
    assert manage(*ADD).code == 0
    start_worker("--queue", "backup")

    said = manage("run_schedule", "nightly", "--wait", "--json")

    assert said.code == 0, said
    (told,) = said.objects
    assert (told["status"], told["database"]) == ("completed", "shop")
    (listed,) = manage("list_schedules", "--json").objects
    assert (listed["state"], listed["last_success_id"]) == ("healthy", told["id"])
