"""Schedules of a database of the user's, and their due times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from jobs.models import ActivityEvent, Database, Storage
from jobs.secrets import seal
from jobs.stores import default_storage
from schedules import services
from schedules.models import Schedule
from schedules.retention import Policy
from schedules.services import Plan, Target

URL = "postgresql://app:secret@db.example.com/shop"
# Has no slot near any test, so that a due time set by hand is the slot.
RARELY = "0 0 29 2 *"
NIGHTLY = Plan("nightly", "30 2 * * *", "Europe/Berlin")


@pytest.fixture
def database(user: User) -> Database:
    return Database.objects.create(user=user, name="shop", sealed_url=seal(URL))


MakeSchedule = Callable[..., Schedule]


@pytest.fixture
def make_schedule(database: Database) -> MakeSchedule:
    """A row as it is, past the services: `make_schedule("nightly", cron_expression=…, next_run_at=…)`."""

    def make(name: str = "nightly", cron_expression: str = RARELY, **columns: Any) -> Schedule:
        row = {"user": database.user, "database": database, "name": name} | columns
        return Schedule.objects.create(cron_expression=cron_expression, **row)

    return make


def clock() -> datetime:
    """The database's, whatever transaction this is in."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    assert isinstance(now, datetime)
    return now


def ago(**how_long: float) -> datetime:
    """A time so long ago: `ago(minutes=3)`."""
    return clock() - timedelta(**how_long)


def fresh(schedule: Schedule) -> Schedule:
    """The row as it is now."""
    return Schedule.objects.get(id=schedule.id)


def next_of(schedule: Schedule) -> datetime:
    """Its next time, which it must have."""
    found = fresh(schedule).next_run_at
    assert found is not None
    return found


@pytest.fixture
def bucket(user: User) -> Storage:
    return Storage.objects.create(user=user, name="bucket", bucket="b")


@pytest.fixture
def full(bucket: Storage) -> Plan:
    """Everything set that can be."""
    return Plan(
        name="full", cron_expression="0 */6 * * mon-fri", timezone="Asia/Kolkata",
        flags={"format": "directory", "jobs": 2}, skip_missed=True, overlap="skip",
        policy=Policy(keep_last=3, keep_daily=7, keep_bytes=10**12), keep_failed=0,
        storages=(Target(bucket, Policy(keep_yearly=2)), Target(default_storage())),
        ping_start_url="https://example.com/start", ping_success_url="https://hc-ping.com/x",
        ping_failure_url="http://[2001:db8::1]:8080/fail?x=1",
    )  # fmt: skip


@pytest.fixture
def schedule(database: Database, user: User) -> Schedule:
    """Due any moment, as no service leaves it: whoever computes its next time is found out."""
    made = services.create(database, replace(NIGHTLY, cron_expression=RARELY), by=user)
    made.next_run_at = ago(seconds=1)
    made.save()
    return made


def actions() -> list[tuple[str, str]]:
    events = ActivityEvent.objects.filter(object_type="schedule").order_by("id")
    return list(events.values_list("action", "object_name"))
