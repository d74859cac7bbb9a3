from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import ActivityEvent, Database, QueuedJob, Storage
from schedules.models import Schedule
from schedules.plans import Plan, Target, plan_of, plan_to_copy
from schedules.retention import Policy
from schedules.tick import tick
from tests.admin.conftest import Belongings
from tests.schedules.admin.conftest import ADD, form_of, planned, step_of
from tests.schedules.conftest import fresh

# As the page has it; `test_the_form_begins_with_every_day_in_utc` sends the page itself.
DEFAULTS = {
    "name": "mine", "preset": "daily", "time": "03:30", "timezone": "UTC", "enabled": "on",
    "format": "custom", "jobs": "1", "lock_wait_timeout": "60",
    "storages-TOTAL_FORMS": "1", "storages-INITIAL_FORMS": "1",
}  # fmt: skip


def new(ada: Belongings, **changed: Any) -> dict[str, Any]:
    """`None`: left out."""
    named = {name.replace("__", "-"): value for name, value in changed.items()}
    fields = DEFAULTS | {"database": str(ada.database.pk)} | named
    return {name: value for name, value in fields.items() if value is not None}


def only() -> Schedule:
    return Schedule.objects.get()


def storage_of(owned: Belongings, name: str) -> Storage:
    return Storage.objects.create(user=owned.user, name=name, kind="folder", folder=f"/srv/{name}")


FULL: dict[str, Any] = {
    "cron_expression": "@daily",
    "timezone": "Australia/Lord_Howe",
    "flags": {"format": "directory", "jobs": 3, "exclude_tables": ["public.logs", "audit.*"], "clean": False},
    "skip_missed": True,
    "overlap": "skip",
    "policy": Policy(keep_last=3, keep_daily=7, keep_yearly=1, keep_bytes=1_234_567_891),
    "keep_failed": 0,
    "ping_start_url": "https://monitor.test/a",
    "ping_success_url": "https://monitor.test/b",
    "ping_failure_url": "https://monitor.test/c",
}


def test_the_form_begins_with_every_day_in_utc(ada: Belongings) -> None:
    form = form_of(ada, f"{ADD}?database={ada.database.pk}")
    response = ada.client.post(ADD, form.sent(name="mine"))
    made = only()
    assert response.headers["Location"] == step_of(made)
    assert (made.cron_expression, made.timezone, made.flags, made.enabled) == ("30 3 * * *", "UTC", {}, True)
    assert (made.user, made.database) == (ada.user, ada.database)
    assert made.next_run_at is not None
    assert ActivityEvent.objects.filter(action="add", object_id=str(made.pk)).exists()


@pytest.mark.parametrize(
    ("given", "expression"),
    [
        ({"preset": "hourly", "minute": "15"}, "15 * * * *"),
        ({"preset": "daily", "time": "23:05"}, "5 23 * * *"),
        ({"preset": "weekly", "time": "04:00", "weekdays": ["0", "3"]}, "0 4 * * 0,3"),
        ({"preset": "monthly", "time": "00:00", "day": "31"}, "0 0 31 * *"),
        ({"preset": "custom", "cron": " 0  */6 * jan-mar  mon "}, "0 */6 * jan-mar mon"),
        ({"preset": "custom", "cron": "@weekly"}, "@weekly"),
        ({"preset": "daily", "time": "01:00", "minute": "99", "day": "x", "cron": "x"}, "0 1 * * *"),
    ],
)
def test_presets_and_expressions(ada: Belongings, given: dict[str, Any], expression: str) -> None:
    ada.client.post(ADD, new(ada, timezone="europe/berlin", **given))
    assert (only().cron_expression, only().timezone) == (expression, "Europe/Berlin")
    again = form_of(ada, step_of(only(), "edit"))
    assert ada.client.post(step_of(only(), "edit"), again.sent()).status_code == 302
    assert only().cron_expression == expression, "opened and saved"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"name": ""}, "required"),
        ({"name": "a\x07b"}, "printable"),
        ({"database": ""}, "Choose the database"),
        ({"preset": "hourly", "minute": "60"}, "less than or equal to 59"),
        ({"preset": "weekly", "weekdays": None}, "This is needed"),
        ({"preset": "daily", "time": "25:00"}, "A time such as 03:30"),
        ({"preset": "custom", "cron": "* * * * * *"}, "Cron expression:"),
        ({"preset": "custom", "cron": "0 0 31 2 *"}, "Cron expression:"),
        ({"preset": "custom", "cron": ""}, "This is needed"),
        ({"preset": "never"}, "Select a valid choice"),
        ({"timezone": "Europe/Berlni"}, "did you mean Europe/Berlin"),
        ({"timezone": ""}, "required"),
        ({"format": "directory", "compress": "bzip2"}, "bzip2"),
        ({"data_only": "on", "schema_only": "on"}, "exclude each other"),
        ({"keep_last": "0"}, "greater than or equal to 1"),
        ({"keep_size": "-1"}, "greater than or equal to"),
        ({"keep_failed": "many"}, "whole number"),
        ({"ping_success_url": "ftp://monitor.test/x"}, "must look like https://"),
        ({"ping_start_url": "https://me:secret@monitor.test/x"}, "no user or password"),
        ({"ping_failure_url": "http://169.254.169.254/"}, "metadata"),
        ({"storages__0__keep_daily": "7"}, "Choose the storage that these rules are for"),
        ({"storages__TOTAL_FORMS": None}, "ManagementForm"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    ada: Belongings, changed: dict[str, Any], reason: str
) -> None:
    response = ada.client.post(ADD, new(ada, **changed))
    assert response.status_code == 400
    assert reason in response.content.decode().replace("&#x27;", "'")
    assert not Schedule.objects.exists()


def test_a_name_is_given_once_an_account(ada: Belongings, eve: Belongings) -> None:
    planned(ada, "mine")
    planned(eve, "theirs")
    response = ada.client.post(ADD, new(ada))
    assert "A schedule called &#x27;mine&#x27; exists already." in response.content.decode()
    assert ada.client.post(ADD, new(ada, name="theirs")).status_code == 302


def test_saving_what_was_opened_changes_nothing(ada: Belongings) -> None:
    """Zone, flags, storages in their order, rules, switches and pings all survive."""
    near, far = storage_of(ada, "zz near"), storage_of(ada, "aa far")
    own = Policy(keep_last=2, keep_bytes=10**9)
    made = planned(ada, storages=[Target(near), Target(far, own)], **FULL)
    before, row = plan_of(made), Schedule.objects.values().get()
    url = step_of(made, "edit")
    assert ada.client.post(url, form_of(ada, url).sent()).headers["Location"] == step_of(made)
    assert plan_of(fresh(made)) == before
    assert Schedule.objects.values().get() == row
    assert ActivityEvent.objects.get(action="change").detail == {"changed": []}


def test_editing_one_thing_changes_that_alone(ada: Belongings) -> None:
    made = planned(ada, storages=[Target(ada.storage, Policy(keep_weekly=4))], **FULL)
    before, url = plan_of(made), step_of(made, "edit")
    ada.client.post(url, form_of(ada, url).sent(name="renamed"))
    assert plan_of(fresh(made)) == Plan(**vars(before) | {"name": "renamed"})


def test_a_form_that_was_opened_before_a_tick_does_not_fire_the_slot_again(
    ada: Belongings, nightly: Schedule
) -> None:
    slot = timezone.now().replace(microsecond=0) - timedelta(minutes=1)
    Schedule.objects.filter(pk=nightly.pk).update(next_run_at=slot)
    url = step_of(nightly, "edit")
    opened = form_of(ada, url)
    assert tick() == 1
    following = fresh(nightly).next_run_at
    assert ada.client.post(url, opened.sent(name="renamed")).status_code == 302
    assert fresh(nightly).next_run_at == following
    assert tick() == 0
    assert QueuedJob.objects.filter(schedule_id=nightly.pk).count() == 1


def test_a_form_that_was_opened_while_it_was_on_does_not_switch_it_on_again(
    ada: Belongings, nightly: Schedule
) -> None:
    url = step_of(nightly, "edit")
    opened = form_of(ada, url)
    ada.client.post(step_of(nightly, "enable"), {"enabled": "no"})
    ada.client.post(url, opened.sent(name="renamed"))
    assert (fresh(nightly).name, fresh(nightly).enabled) == ("renamed", False)


def test_it_stays_with_its_database(ada: Belongings, nightly: Schedule) -> None:
    other = Database.objects.create(user=ada.user, name="second", sealed_url="x")
    url = step_of(nightly, "edit")
    opened = form_of(ada, url)
    assert "database" not in opened.values
    response = ada.client.post(url, opened.sent(database=str(other.pk)))
    assert response.status_code == 400
    assert "make a new schedule" in response.content.decode()
    assert fresh(nightly).database_id == ada.database.pk


def test_the_same_for_another_database_but_for_the_monitor(ada: Belongings) -> None:
    made = planned(ada, storages=[Target(ada.storage, Policy(keep_weekly=4))], **FULL)
    opened = form_of(ada, f"{ADD}?like={made.pk}&database={ada.database.pk}")
    ada.client.post(ADD, opened.sent(name="again"))
    again = Schedule.objects.get(name="again")
    assert plan_of(again) == replace(plan_to_copy(made), name="again")


def test_the_only_database_is_chosen_already(ada: Belongings) -> None:
    assert ada.client.get(ADD).context["parts"].name["database"].value() == ada.database.pk
    Database.objects.create(user=ada.user, name="other", sealed_url=ada.database.sealed_url)
    assert ada.client.get(ADD).context["parts"].name["database"].value() is None


def test_saving_says_when_it_runs_next(ada: Belongings) -> None:
    text = ada.client.post(ADD, new(ada, timezone="Asia/Tokyo"), follow=True).content.decode()
    assert re.search(r"The schedule mine is saved. It runs next on \w{3} [\d-]+ 03:30 JST\.", text)


def test_off_from_the_start(ada: Belongings) -> None:
    assert "It is off." in ada.client.post(ADD, new(ada, enabled=None), follow=True).content.decode()
    assert (only().enabled, only().next_run_at) == (False, None)


def test_an_expression_that_was_broken_by_hand_can_be_opened_and_mended(
    ada: Belongings, nightly: Schedule
) -> None:
    Schedule.objects.update(cron_expression="61 2 * * *", timezone="Nowhere/Gone", broken="minute")
    url = step_of(nightly, "edit")
    assert ada.client.get(step_of(nightly)).status_code == 200
    assert ada.client.post(url, form_of(ada, url).sent()).status_code == 400
    ada.client.post(
        url, form_of(ada, url).sent(preset="custom", cron="1 2 * * *", timezone="UTC"), follow=True
    )
    assert (fresh(nightly).cron_expression, fresh(nightly).broken) == ("1 2 * * *", None)
    assert fresh(nightly).next_run_at > datetime.now(UTC)  # type: ignore[operator]
