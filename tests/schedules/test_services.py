"""Making schedules, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.models import Database, QueuedJob, Storage
from jobs.pgtools.errors import InvalidFlags
from jobs.secrets import seal
from jobs.services import NotFound, ServiceError
from schedules import cron, services
from schedules.models import Schedule, ScheduleStorage
from schedules.retention import Policy
from schedules.services import Plan, Target
from tests.schedules.conftest import NIGHTLY, actions, clock, fresh

pytestmark = pytest.mark.django_db

# Making -----------------------------------------------------------------------------------------


def test_new_schedule_fires_at_its_next_time(database: Database, user: User) -> None:
    schedule = services.create(database, NIGHTLY, by=user)

    row = fresh(schedule)
    assert (row.user_id, row.database_id, row.enabled) == (user.pk, database.id, True)
    assert row.next_run_at == cron.next_run("30 2 * * *", "Europe/Berlin", clock())
    assert (row.last_slot, row.broken) == (None, None)
    assert actions() == [("add", "nightly")]
    assert not QueuedJob.objects.exists()


def test_plan_comes_back_as_it_was_given(database: Database, user: User, full: Plan) -> None:
    schedule = services.create(database, full, by=user)

    assert services.plan_of(fresh(schedule)) == full
    assert [row.position for row in ScheduleStorage.objects.all()] == [0, 1]


def test_disabled_schedule_has_no_next_time(database: Database, user: User) -> None:
    assert services.create(database, replace(NIGHTLY, enabled=False), by=user).next_run_at is None


def test_superuser_makes_schedules_that_are_the_owners(
    database: Database, superuser: User, user: User
) -> None:
    assert services.create(database, NIGHTLY, by=superuser).user == user


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"name": "  "}, ServiceError, "1 to 100 printable characters"),
    ({"name": "x" * 101}, ServiceError, "1 to 100 printable characters"),
    ({"name": "a\nb"}, ServiceError, "printable"),
    ({"cron_expression": "0 3 * *"}, cron.CronError, "five fields"),
    ({"cron_expression": "0 0 31 2 *"}, cron.CronError, "31"),
    ({"timezone": "Mars/Phobos"}, cron.CronError, "Mars/Phobos"),
    ({"flags": {"format": "zip"}}, InvalidFlags, "format"),
    ({"flags": {"if_exists": True}}, InvalidFlags, "if_exists needs clean"),
    ({"overlap": "queue"}, ServiceError, "overlap must be one of allow, skip"),
    ({"policy": Policy(keep_last=-1)}, ServiceError, "keep_last must be a whole number from 1 to 100000"),
    ({"policy": Policy(keep_days=10**6)}, ServiceError, "keep_days must be"),
    ({"policy": Policy(keep_bytes=2**63)}, ServiceError, "keep_bytes must be"),
    ({"keep_failed": -1}, ServiceError, "keep_failed must be a whole number from 0"),
    ({"ping_start_url": "ftp://example.com"}, ServiceError, "start ping must look like https://"),
    ({"ping_success_url": "https:///path"}, ServiceError, "success ping must look like https://"),
    ({"ping_success_url": "https://example.com/a b"}, ServiceError, "must look like https://"),
    ({"ping_success_url": "http://[::1"}, ServiceError, "success ping cannot be read"),
    ({"ping_success_url": "http://x:port/"}, ServiceError, "success ping cannot be read"),
    ({"ping_failure_url": "https://me:secret@example.com/"}, ServiceError, "must hold no user or password"),
    ({"ping_failure_url": "http://169.254.169.254/latest"}, ServiceError, "a cloud's metadata"),
    ({"ping_failure_url": "http://[::ffff:169.254.169.254]/"}, ServiceError, "a cloud's metadata"),
    ({"ping_failure_url": "http://[fd00:ec2::254]/"}, ServiceError, "a cloud's metadata"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "words"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_plan_is_refused_when_made_and_when_changed(
    database: Database, user: User, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(")):
        services.create(database, replace(NIGHTLY, **change), by=user)
    assert not Schedule.objects.exists()

    schedule = services.create(database, NIGHTLY, by=user)
    with pytest.raises(error):
        services.update(schedule, replace(NIGHTLY, **change), by=user)
    assert services.plan_of(fresh(schedule)) == NIGHTLY


def test_secret_of_a_refused_ping_is_not_repeated(database: Database, user: User) -> None:
    with pytest.raises(ServiceError) as told:
        services.create(database, replace(NIGHTLY, ping_start_url="https://a:hush@b"), by=user)

    assert "hush" not in str(told.value)


def test_names_are_unique_per_user(database: Database, user: User, other_user: User) -> None:
    services.create(database, NIGHTLY, by=user)
    theirs = Database.objects.create(user=other_user, name="shop", sealed_url=seal("postgresql://h/d"))
    services.create(theirs, NIGHTLY, by=other_user)

    with pytest.raises(ServiceError, match="a schedule called 'nightly' already"):
        services.create(database, replace(NIGHTLY, name=" nightly "), by=user)
    assert Schedule.objects.count() == 2


def test_storages_are_the_owners_and_each_named_once(
    database: Database, user: User, other_user: User, bucket: Storage
) -> None:
    theirs = Storage.objects.create(user=other_user, name="theirs", bucket="b")

    with pytest.raises(NotFound, match="No storage is called 'theirs'"):
        services.create(database, replace(NIGHTLY, storages=[Target(theirs)]), by=user)
    with pytest.raises(ServiceError, match="named twice"):
        services.create(database, replace(NIGHTLY, storages=[Target(bucket), Target(bucket)]), by=user)
    with pytest.raises(ServiceError, match="keep_hourly must be"):
        services.create(
            database, replace(NIGHTLY, storages=[Target(bucket, Policy(keep_hourly=-2))]), by=user
        )
    assert not Schedule.objects.exists()


# Whose ------------------------------------------------------------------------------------------

ATTEMPTS: list[Callable[[Schedule, User], object]] = [
    lambda schedule, by: services.create(schedule.database, NIGHTLY, by=by),
    lambda schedule, by: services.update(schedule, NIGHTLY, by=by),
    lambda schedule, by: services.set_enabled(schedule, False, by=by),
    lambda schedule, by: services.clone(schedule, "mine", by=by),
    lambda schedule, by: services.run_now(schedule, by=by),
    lambda schedule, by: services.delete(schedule, by=by),
    lambda schedule, by: services.find(by, schedule.name),
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_anothers_schedule_is_unknown(
    schedule: Schedule, other_user: User, attempt: Callable[[Schedule, User], object]
) -> None:
    before = Schedule.objects.values().get()

    with pytest.raises(NotFound):
        attempt(schedule, other_user)

    assert Schedule.objects.values().get() == before
    assert not QueuedJob.objects.exists()


def test_found_by_name_ones_own_first(schedule: Schedule, user: User, superuser: User) -> None:
    assert services.find(user, "nightly") == schedule
    assert services.find(superuser, "nightly") == schedule
    with pytest.raises(NotFound, match=r"No schedule is called 'weekly'\. There is: nightly"):
        services.find(user, "weekly")
    with pytest.raises(NotFound, match="none yet"):
        services.find(superuser, "weekly")
