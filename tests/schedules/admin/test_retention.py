"""Storages and rules in the form, and what they would delete."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import BackupCopy, BackupJob
from schedules.admin import keeping
from schedules.models import Schedule
from schedules.plans import Target, plan_of
from schedules.retention import Policy
from tests.admin.conftest import Belongings, stored_backup
from tests.schedules.admin.conftest import ADD, LIST, form_of, planned, step_of
from tests.schedules.admin.test_form import storage_of

PREVIEW = f"{LIST}preview/"


def history(schedule: Schedule, owned: Belongings, count: int) -> list[BackupJob]:
    """One backup a day, the newest first."""
    now = timezone.now()
    return [
        stored_backup(
            schedule.database, owned.storage, schedule_id=schedule.pk, slot=now - timedelta(days=age)
        )
        for age in range(count)
    ]


def rows(ada: Belongings, url: str, pressed: str, **changed: Any) -> list[str | None]:
    """The storages chosen after a button."""
    response = ada.client.post(url, form_of(ada, url).sent(pressed, **changed))
    assert response.status_code == 200
    return [form["storage"].value() for form in response.context["parts"].rows]


def test_rows_are_added_moved_and_removed_by_buttons(ada: Belongings) -> None:
    near, far = storage_of(ada, "near"), storage_of(ada, "far")
    made = planned(ada, storages=[Target(near), Target(far, Policy(keep_last=2))])
    url = step_of(made, "edit")
    assert rows(ada, url, "row:add") == [str(near.pk), str(far.pk), None]
    assert rows(ada, url, "row:remove:0") == [str(far.pk)]
    assert rows(ada, url, "row:up:1") == [str(far.pk), str(near.pk)]
    for nonsense in (
        "row:up:0",
        "row:up:9",
        "row:remove:x9",
        "row:remove:²",
        "row:what",
        f"row:up:{10**4000}9{10**999}",
    ):
        assert len(rows(ada, url, nonsense)) in (1, 2), nonsense
    moved = ada.client.post(url, form_of(ada, url).sent("row:up:1"))
    assert moved.context["parts"].rows[0]["keep_last"].value() == "2", "rules move with their storage"
    assert [target.storage for target in plan_of(made).storages] == [near, far], "nothing is saved yet"


def test_storages_are_saved_in_order_with_their_rules(ada: Belongings) -> None:
    near, far = storage_of(ada, "near"), storage_of(ada, "far")
    first = form_of(ada, f"{ADD}?database={ada.database.pk}")
    text = ada.client.post(ADD, first.sent("row:add", name="mine")).content.decode()
    form = type(first)(text)
    sent = form.sent(storages__0__storage=str(far.pk), storages__1__storage=str(near.pk))
    ada.client.post(ADD, sent | {"storages-1-keep_monthly": "12", "storages-1-keep_size": "1.5"})
    plan = plan_of(Schedule.objects.get())
    assert list(plan.storages) == [
        Target(far),
        Target(near, Policy(keep_monthly=12, keep_bytes=1_500_000_000)),
    ]


@pytest.mark.parametrize(
    ("chosen", "reason"), [(["a", "a"], "is chosen above already"), (["", "a"], "choose the first one too")]
)
def test_rows_that_do_not_go_together_are_refused(ada: Belongings, chosen: list[str], reason: str) -> None:
    a = storage_of(ada, "a")
    url = step_of(planned(ada, storages=[Target(ada.storage), Target(a)]), "edit")
    given = [str(a.pk) if name else "" for name in chosen]
    response = ada.client.post(
        url, form_of(ada, url).sent(storages__0__storage=given[0], storages__1__storage=given[1])
    )
    assert response.status_code == 400
    assert reason in response.content.decode()


@pytest.mark.parametrize("with_script", [True, False])
def test_the_preview_says_what_would_go_and_why_others_stay(
    ada: Belongings, with_script: bool, settings: Any
) -> None:
    made = planned(ada, policy=Policy(keep_last=4))
    backups = history(made, ada, 5)
    BackupJob.objects.filter(pk=backups[3].pk).update(pinned=True)
    url = step_of(made, "edit")
    form = form_of(ada, url)

    def preview(**changed: Any) -> str:
        sent = form.sent("" if with_script else "preview", **changed)
        response = ada.client.post(PREVIEW if with_script else url, sent)
        assert response.status_code == 200
        return response.content.decode()

    text = preview()
    assert "1 copy would be deleted at once" in text
    assert "would be given up" not in text
    text = preview(keep_last="1")
    assert "2 copies would be given up by these rules" in text
    assert "They wait 7 days in the trash" in text
    assert "1 copy would be deleted at once" in text
    assert "2 copies would stay" in text
    assert "pinned" in text
    settings.TRASH_DAYS = 0
    assert "They are deleted at once: the trash is off." in preview(keep_last="1")
    assert "Nothing would be deleted now." in preview(keep_last=None)
    assert BackupCopy.objects.filter(delete_after=None, state="good").count() == 6, "it only looks"


def test_the_preview_counts_days_in_the_zone_that_is_typed(ada: Belongings) -> None:
    made = planned(ada, timezone="Europe/Berlin", policy=Policy(keep_daily=2))
    for backup, hour in zip(history(made, ada, 2), (23, 22), strict=True):
        BackupJob.objects.filter(pk=backup.pk).update(slot=f"2026-01-10T{hour}:30Z")
    form = form_of(ada, step_of(made, "edit"))

    def preview(zone: str) -> str:
        return ada.client.post(PREVIEW, form.sent("", timezone=zone)).content.decode()

    assert "Nothing would be deleted now." in preview("Europe/Berlin")
    assert "1 copy would be given up" in preview("utc")
    assert "Nothing would be deleted now." in preview("Nowhere/At_All")


def test_the_preview_of_rules_that_are_wrong_says_so(ada: Belongings, nightly: Schedule) -> None:
    form = form_of(ada, step_of(nightly, "edit"))
    wrong = {"keep_daily": "-1", "storages__0__keep_last": "x"}
    text = ada.client.post(PREVIEW, form.sent(**wrong)).content.decode()
    assert "Daily: " in text
    assert "Storage 1, The last: " in text
    response = ada.client.post(step_of(nightly, "edit"), form.sent("preview", **wrong))
    assert response.status_code == 400


def test_the_preview_of_a_new_or_a_broken_schedule_is_calm(ada: Belongings, nightly: Schedule) -> None:
    assert (
        "Nothing would be deleted now." in ada.client.post(PREVIEW, form_of(ada, ADD).sent()).content.decode()
    )
    Schedule.objects.update(timezone="Nowhere/Gone")
    form = form_of(ada, step_of(nightly, "edit"))
    assert "there is no zone" in ada.client.post(PREVIEW, form.sent()).content.decode()


def test_a_tightened_policy_puts_into_the_trash_what_the_preview_said(ada: Belongings) -> None:
    made = planned(ada)
    history(made, ada, 3)
    url = step_of(made, "edit")
    ada.client.post(url, form_of(ada, url).sent(keep_last="1"))
    assert BackupCopy.objects.filter(delete_after__isnull=False).count() == 2
    text = ada.client.get(step_of(made)).content.decode()
    assert "In the trash by a change of the rules" in text
    assert "in 7 days" in text


@pytest.mark.parametrize("count", [1, 999, 1_000_000_000, 1_234_567_891, 5 * 10**13])
def test_a_cap_in_gigabytes_is_the_same_number_again(count: int) -> None:
    shown = keeping.gigabytes(count)
    assert int(Decimal(shown) * keeping.GIGABYTE) == count
    assert "E" not in shown


def test_policies_in_words() -> None:
    assert keeping.in_words(Policy()) == "everything"
    full = Policy(keep_last=3, keep_days=2, keep_daily=7, keep_yearly=1, keep_bytes=5 * 10**10)
    assert keeping.in_words(full) == "the last 3, all of 2 days, 7 daily, 1 yearly, at most 50.0 GB"
