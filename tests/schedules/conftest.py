"""Schedules of a database of the user's, and their due times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from jobs.models import Database
from jobs.secrets import seal
from schedules.models import Schedule

URL = "postgresql://app:secret@db.example.com/shop"
# Has no slot near any test, so that a due time set by hand is the slot.
RARELY = "0 0 29 2 *"


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
