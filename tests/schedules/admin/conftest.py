"""The accounts of the admin's tests, with a schedule each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from schedules import services
from schedules.models import Schedule
from schedules.plans import Plan
from tests.admin.conftest import Belongings, ada, belongings_of, eve, root
from tests.admin.forms import Form

__all__ = ["ada", "belongings_of", "eve", "root"]

LIST = "/admin/schedules/schedule/"
ADD = f"{LIST}add/"


@pytest.fixture
def nightly(ada: Belongings) -> Schedule:
    return planned(ada)


def planned(owned: Belongings, name: str = "nightly", **changed: Any) -> Schedule:
    values = {"cron_expression": "30 2 * * *", "timezone": "Europe/Berlin"} | changed
    return services.create(owned.database, Plan(name=name, **values), by=owned.user)


def step_of(schedule: Schedule, step: str = "change") -> str:
    return f"{LIST}{schedule.pk}/{step}/"


Sent = Callable[..., dict[str, Any]]


def form_of(owned: Belongings, address: str) -> Form:
    """What a browser shows of the form at an address."""
    return Form(owned.client.get(address).content.decode())
